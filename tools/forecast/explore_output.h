// Formats an exploration: tables for people, JSON for programs.
#ifndef MOSA_TOOLS_FORECAST_EXPLORE_OUTPUT_H_
#define MOSA_TOOLS_FORECAST_EXPLORE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predictor/explore/explorer.h"
#include "predictor/explore/space.h"

namespace mosa::cli {

struct Exploration {
  std::string workflow;
  predict::Space space;
  std::vector<std::string> dimensions;  // Those with more than one value. "nodes" counts all hosts.
  std::vector<std::string> varied;      // Configuration fields that differ within the space.
  std::vector<predict::Explored> explored;
  std::optional<size_t> best;
  bool with_energy = false;
  uint32_t draws = 0;
  size_t simulations = 0;  // Requested.
  size_t remembered = 0;   // Requested, but known from the file or from an equal one.
  double seconds = 0;
};

// The settings that differ between points, as in "hosts=4,storage=0,...".
std::string VariedText(const Exploration& exploration, size_t point);
// A point's value of a dimension.
std::string ValueOf(const predict::Point& point, std::string_view dimension);
// The points on the Pareto front, fastest first.
std::vector<size_t> OnFront(const Exploration& exploration);

void PrintExploration(const Exploration& exploration);
nlohmann::json ToJson(const Exploration& exploration);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_EXPLORE_OUTPUT_H_
