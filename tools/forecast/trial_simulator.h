// Simulates, on all cores, the runs by which hints, deployments and plans are judged.
#ifndef MOSA_TOOLS_FORECAST_TRIAL_SIMULATOR_H_
#define MOSA_TOOLS_FORECAST_TRIAL_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "predictor/advise/search.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/run/prediction.h"
#include "tools/console/parallel.h"
#include "tools/console/progress.h"

namespace mosa::cli {

struct Simulation {
  std::shared_ptr<const predict::Workflow> workflow;
  predict::Configuration configuration;
  uint32_t draw = 0;
  std::shared_ptr<const predict::Prediction>* prediction = nullptr;  // Gets it, if set.
};

class TrialSimulator {
 public:
  // `threads` 0: one per core. `platform` must outlive this.
  TrialSimulator(const predict::Platform& platform, uint32_t threads)
      : platform_(platform), threads_(threads) {}

  // Many threads call `make(i)`; its result is used until the simulation ends.
  template <typename Make>
  Result<std::vector<predict::TrialOutcome>> Run(size_t count, Make make) {
    std::vector<predict::TrialOutcome> outcomes(count);
    asked_ += count;
    MOSA_RETURN_IF_ERROR(InParallel(count, threads_, [&](size_t i) -> Status {
      const Simulation its = make(i);
      MOSA_ASSIGN_OR_RETURN(predict::Prediction prediction,
                            predict::Predict(*its.workflow, predict::Perturbed(platform_, its.draw),
                                             predict::OfDraw(its.configuration, its.draw)));
      outcomes[i] = predict::TrialOutcomeOf(prediction);
      outcomes[i].factor = predict::ModelFactor(platform_, its.draw);
      if (its.prediction != nullptr)
        *its.prediction = std::make_shared<const predict::Prediction>(std::move(prediction));
      const SystemMutexLock lock(mutex_);
      const double each = seconds() / static_cast<double>(++done_);
      bar_.Show(done_, asked_, each * static_cast<double>(asked_ - done_), "simulations");
      return OkStatus();
    }));
    return outcomes;
  }
  size_t done() const {
    const SystemMutexLock lock(mutex_);
    return done_;
  }
  double seconds() const { return static_cast<double>((clock_.Monotonic() - begin_).ns) / 1e9; }

 private:
  const predict::Platform& platform_;
  const uint32_t threads_;
  const SystemClock clock_;
  const Time begin_ = clock_.Monotonic();
  mutable SystemMutex mutex_;
  ProgressBar bar_ ABSL_GUARDED_BY(mutex_);
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t asked_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_TRIAL_SIMULATOR_H_
