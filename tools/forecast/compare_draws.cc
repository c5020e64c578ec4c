#include "tools/forecast/compare_draws.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "predictor/model/draws.h"
#include "tools/forecast/draws.h"

namespace mosa::cli {

Result<DrawnRuns> DrawRuns(const Inputs& inputs, const predict::Configuration& configuration,
                           uint32_t draws, const std::vector<std::string>& hosts) {
  DrawnRuns drawn;
  MOSA_ASSIGN_OR_RETURN(drawn.prediction, PredictInputs(inputs, inputs.platform, configuration,
                                                        {.with_residence = true}));
  if (drawn.prediction.failure)
    return FailedPreconditionError(
        fmt::format("the run would fail: {}", *drawn.prediction.failure));
  struct Outcome {
    predict::SeenRun seen;
    std::optional<std::string> failure;
  };
  std::vector<Outcome> outcomes(draws);
  MOSA_RETURN_IF_ERROR(ForEachDraw(
      inputs, configuration, draws, {.with_layouts = true, .with_residence = true},
      [&](const Draw& draw) {
        Outcome& outcome = outcomes[draw.number - 1];
        outcome.failure = draw.prediction.failure;
        outcome.seen = predict::SeenOf(inputs.workflow, draw.prediction, draw.platform, hosts);
        outcome.seen.factor = draw.factor;
      }));
  for (Outcome& outcome : outcomes) {
    if (!outcome.failure) {
      drawn.draws.push_back(std::move(outcome.seen));
    } else if (drawn.failed++ == 0) {
      drawn.failure = *outcome.failure;
    }
  }
  if (drawn.draws.size() < predict::kDrawsMin)
    return FailedPreconditionError(fmt::format(
        "the run would fail in {} of {} draws, for example: {}; at least {} draws must succeed",
        drawn.failed, draws, drawn.failure, predict::kDrawsMin));
  return drawn;
}

}  // namespace mosa::cli
