// How a comparison is shown: tables and sentences for people, JSON for programs.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_
#define MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "predictor/compare/comparison.h"

namespace mosa::cli {

// What is said beside the comparison itself.
struct CompareReport {
  std::string workflow;
  std::string platform;       // The file,
  std::string configuration;  // as of `mosa predict`.
  uint32_t draws_failed = 0;
  std::vector<std::string> notes;  // What could not be compared, and what to mind.
};

void PrintComparison(const CompareReport& report, const predict::Comparison& comparison);
nlohmann::json ToJson(const CompareReport& report, const predict::Comparison& comparison);
// The same with those cells alone that PrintComparison shows, and no requests.
nlohmann::json ShownToJson(const CompareReport& report, const predict::Comparison& comparison);
// Counts times of tasks and classes of requests: each is one.
size_t CountAnomalies(const predict::Comparison& comparison);
// Counts, in both, what is off by no more than others' work on the machines explains.
size_t CountMachineBusy(const predict::Comparison& comparison);
// "No anomaly in 3 runs"; "2 anomalies in 3 runs"; the same ", and 6 classes of requests are off";
// "No task is off in 3 runs, but 6 classes of requests are".
std::string VerdictOf(const predict::Comparison& comparison);
// For a comparison without runs: what is predicted for every cell.
nlohmann::json PredictedToJson(const predict::Comparison& comparison);
nlohmann::json RequestsToJson(const std::vector<predict::RequestCell>& cells);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_OUTPUT_H_
