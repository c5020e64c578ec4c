// `mosa predict --bound`: simulated rates beside what the store was measured to do at most, as an
// envelope or a capacity.
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

// A file of `mosa envelope run` or `mosa capacity run`.
struct Bound {
  std::string path;
  std::variant<predict::Envelope, predict::Capacity> measured;
};
// `system` chooses one of an envelope's stores; empty: it has one.
Result<Bound> ReadBound(const std::string& path, const std::string& system);

// What is furthest above the bound of one stage's input or output.
struct AboveBound {
  std::string stage;
  predict::Excess excess;
  uint32_t tasks_max = 0;  // That had files open at once.
  double own_share = 0;    // Share of the bytes read: from the task's own host, or its pages.
};
struct NotCompared {
  std::string stage;
  bool is_input = true;
  std::string why;  // It is too short for a rate, or of more clients than were measured.
};
struct BoundComparison {
  std::vector<AboveBound> above;
  std::vector<NotCompared> not_compared;
};
// Precondition: the run does not fail. InvalidArgument: as ProfileOf().
Result<BoundComparison> Compare(const Bound& bound, const predict::Workflow& workflow,
                                const predict::Prediction& prediction);
// Sentences.
std::string Describe(const AboveBound& above, const Bound& bound);
std::string Describe(const NotCompared& each, const Bound& bound);
nlohmann::json ToJson(const BoundComparison& comparison, const Bound& bound);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_BOUND_H_
