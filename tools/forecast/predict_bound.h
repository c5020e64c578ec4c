// Implements `mosa predict --bound`: compares simulated rates with the highest rates measured on a
// store, taken from an envelope or a capacity.
#ifndef MOSA_TOOLS_FORECAST_PREDICT_BOUND_H_
#define MOSA_TOOLS_FORECAST_PREDICT_BOUND_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/bound.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

// A file written by `mosa envelope run` or `mosa capacity run`.
struct Bound {
  std::string path;
  std::variant<predict::Envelope, predict::Capacity> measured;
};
// `system` selects one of an envelope's stores. Empty: the envelope has only one.
Result<Bound> ReadBound(const std::string& path, const std::string& system);

// The rate of one stage's input or output that exceeds its bound most.
struct AboveBound {
  std::string stage;
  predict::Excess excess;
  uint32_t tasks_max = 0;  // Most tasks that had files open at once.
  double own_share = 0;    // Share of bytes read from the own host or its page cache.
};
struct NotCompared {
  std::string stage;
  bool is_input = true;
  std::string why;  // It is too short for a rate, or has more clients than were measured.
};
struct BoundComparison {
  std::vector<AboveBound> above;
  std::vector<NotCompared> not_compared;
};
// Precondition: the run does not fail. InvalidArgument in the same cases as ProfileOf().
Result<BoundComparison> Compare(const Bound& bound, const predict::Workflow& workflow,
                                const predict::Prediction& prediction);
// Each returns a sentence.
std::string Describe(const AboveBound& above, const Bound& bound);
std::string Describe(const NotCompared& each, const Bound& bound);
nlohmann::json ToJson(const BoundComparison& comparison, const Bound& bound);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_BOUND_H_
