// Runs the simulations that an explorer requests, on all cores.
#ifndef MOSA_TOOLS_FORECAST_EXPLORE_SIMULATOR_H_
#define MOSA_TOOLS_FORECAST_EXPLORE_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "predictor/explore/canonical.h"
#include "predictor/explore/explorer.h"
#include "tools/console/progress.h"
#include "tools/forecast/explore_results.h"

namespace mosa::cli {

// Not thread-safe; starts its own threads. All arguments must outlive this object.
class ExploreSimulator {
 public:
  // Does not repeat simulations that `results` has. `threads` 0: one per core.
  ExploreSimulator(const predict::Workflow& workflow, const predict::Platform& platform,
                   predict::Explorer& explorer, ExploreResults& results, uint32_t threads);

  // Runs until the explorer needs nothing more. `points` are those of the explorer.
  Status Run(const std::vector<predict::Point>& points);
  size_t remembered() const { return remembered_; }
  double seconds() const { return static_cast<double>((clock_.Monotonic() - begin_).ns) / 1e9; }

 private:
  uint64_t KeyOf(const predict::Point& point, const predict::Job& job);
  Status RunOne(const predict::Point& point, const predict::Job& job, uint64_t key,
                predict::Outcome& outcome);

  const predict::Workflow& workflow_;
  const predict::Canonical canonical_;
  predict::Explorer& explorer_;
  ExploreResults& results_;
  const uint32_t threads_;
  const uint64_t workflow_digest_;
  const SystemClock clock_;
  const Time begin_ = clock_.Monotonic();
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> platform_digests_;
  SystemMutex mutex_;
  // Guarded by mutex_ while a batch runs, like results_.
  ProgressBar bar_;
  size_t done_ = 0, simulated_ = 0, remembered_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_EXPLORE_SIMULATOR_H_
