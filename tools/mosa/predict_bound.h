// `mosa predict --bound`: simulated rates beside what the store was measured to do at most, as an
// envelope or a capacity.
#ifndef MOSA_TOOLS_MOSA_PREDICT_BOUND_H_
#define MOSA_TOOLS_MOSA_PREDICT_BOUND_H_

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

// Of one stage, what is furthest above the bound of its input or of its output.
struct AboveBound {
  std::string stage;
  predict::Excess excess;
  double tasks_at_once = 0;  // The mean.
  double own_share = 0;      // Of the bytes read: from the task's own host, or its pages.
};
// Of a stage's time, reading and writing of all of its tasks are shared out to as many as ran at
// once. FailedPrecondition: the envelope has fewer clients than that. Precondition: the run does
// not fail.
Result<std::vector<AboveBound>> Above(const Bound& bound, const predict::Workflow& workflow,
                                      const predict::Prediction& prediction);
// A sentence.
std::string Describe(const AboveBound& above, const Bound& bound);
nlohmann::json ToJson(const std::vector<AboveBound>& all, const Bound& bound);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_PREDICT_BOUND_H_
