#include "tools/forecast/draws.h"

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "predictor/model/cost.h"
#include "tools/console/parallel.h"
#include "tools/console/progress.h"

namespace mosa::cli {

Status ForEachDraw(const Inputs& inputs, const predict::Configuration& configuration,
                   uint32_t draws, const predict::PredictOptions& options,
                   const std::function<void(const Draw& draw)>& take) {
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  SystemMutex mutex;  // Guards what follows, and `take`.
  ProgressBar bar;
  size_t done = 0;
  return InParallel(draws, 0, [&](size_t i) -> Status {
    Draw draw;
    draw.number = static_cast<uint32_t>(i + 1);
    draw.platform = predict::Perturbed(inputs.platform, draw.number);
    draw.configuration = predict::OfDraw(configuration, draw.number);
    draw.factor = predict::ModelFactor(inputs.platform, draw.number);
    MOSA_ASSIGN_OR_RETURN(draw.prediction,
                          PredictInputs(inputs, draw.platform, draw.configuration, options));
    const SystemMutexLock lock(mutex);
    const double each = predict::SecondsOf(clock.Monotonic() - begin) / static_cast<double>(++done);
    bar.Show(done, draws, each * static_cast<double>(draws - done), "predictions");
    take(draw);
    return OkStatus();
  });
}

}  // namespace mosa::cli
