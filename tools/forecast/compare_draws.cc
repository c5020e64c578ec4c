#include "tools/forecast/compare_draws.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "predictor/model/cost.h"
#include "predictor/model/draws.h"
#include "tools/console/parallel.h"
#include "tools/console/progress.h"

namespace mosa::cli {

Result<DrawnRuns> DrawRuns(const Inputs& inputs, const predict::Configuration& configuration,
                           uint32_t draws, const std::vector<std::string>& hosts) {
  DrawnRuns drawn;
  MOSA_ASSIGN_OR_RETURN(drawn.prediction, PredictInputs(inputs, inputs.platform, configuration,
                                                        {.with_residence = true}));
  if (drawn.prediction.failure)
    return FailedPreconditionError(
        fmt::format("the run would fail: {}", *drawn.prediction.failure));
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  std::mutex mutex;  // Guards the bar.
  ProgressBar bar;
  size_t done = 0;
  struct Outcome {
    predict::SeenRun seen;
    std::optional<std::string> failure;
  };
  std::vector<Outcome> outcomes(draws);
  MOSA_RETURN_IF_ERROR(InParallel(draws, 0, [&](size_t i) -> Status {
    // As the draws of `mosa predict`.
    const auto seed = static_cast<uint64_t>(i + 1);
    predict::Configuration elsewhere = configuration;
    elsewhere.seed += i;
    const predict::Platform platform = predict::Perturbed(inputs.platform, seed);
    MOSA_ASSIGN_OR_RETURN(
        const predict::Prediction prediction,
        PredictInputs(inputs, platform, elsewhere, {.with_layouts = true, .with_residence = true}));
    Outcome& outcome = outcomes[i];
    outcome.failure = prediction.failure;
    outcome.seen = predict::SeenOf(inputs.workflow, prediction, platform, elsewhere, hosts);
    outcome.seen.factor = predict::ModelFactor(inputs.platform, seed);
    const std::lock_guard lock(mutex);
    const double each = predict::SecondsOf(clock.Monotonic() - begin) / static_cast<double>(++done);
    bar.Show(done, draws, each * static_cast<double>(draws - done), "predictions");
    return OkStatus();
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
