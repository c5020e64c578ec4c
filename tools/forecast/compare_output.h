// Formats a comparison: tables and sentences for people, JSON for programs.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_
#define MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "predictor/compare/comparison.h"

namespace mosa::cli {

// Printed with the comparison itself.
struct CompareReport {
  std::string workflow;
  std::string platform;       // Path of the platform file.
  std::string configuration;  // In the syntax of `mosa predict --config`.
  uint32_t draws_failed = 0;
  std::vector<std::string> notes;  // What could not be compared, and caveats.
};

void PrintComparison(const CompareReport& report, const predict::Comparison& comparison);
nlohmann::json ToJson(const CompareReport& report, const predict::Comparison& comparison);
// The same, but with only the cells that PrintComparison shows, and without requests.
nlohmann::json ShownToJson(const CompareReport& report, const predict::Comparison& comparison);
// "Slower: The last 2 of 5 runs took ..."; or "Not slower", "Faster than predicted", "Not judged".
std::string VerdictOf(const predict::Comparison& comparison);
// For a comparison without runs: the prediction for every cell.
nlohmann::json PredictedToJson(const predict::Comparison& comparison);
nlohmann::json RequestsToJson(const std::vector<predict::RequestCell>& cells);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_
