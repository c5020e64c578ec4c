// How an exploration is shown: tables for people, JSON for programs.
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
  std::vector<std::string> dimensions;  // Those with more than one value; of "nodes" all hosts.
  std::vector<std::string> varied;      // Names of a configuration that differ in the space.
  std::vector<predict::Explored> explored;
  std::optional<size_t> best;
  bool with_energy = false;
  uint32_t draws = 0;
  size_t simulations = 0;  // Asked for,
  size_t remembered = 0;   // and of those, known from the file or an equal one before.
  double seconds = 0;
};

// The settings that differ between points, as in "hosts=4,storage=0,...".
std::string VariedText(const Exploration& exploration, size_t point);
// What a point has of a dimension.
std::string ValueOf(const predict::Point& point, std::string_view dimension);
// The points on the front, the fastest first.
std::vector<size_t> OnFront(const Exploration& exploration);

void PrintExploration(const Exploration& exploration);
nlohmann::json ToJson(const Exploration& exploration);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_EXPLORE_OUTPUT_H_
