// RunProgress: what a run says on standard error while it goes on. One thread.
#ifndef MOSA_TOOLS_RUNNER_RUN_PROGRESS_H_
#define MOSA_TOOLS_RUNNER_RUN_PROGRESS_H_

#include <cstddef>
#include <string>

#include "common/base/time.h"
#include "predictor/workflow/execution.h"

namespace mosa::cli {

class RunProgress {
 public:
  // `quiet`: says nothing.
  RunProgress(const predict::Execution& execution, size_t tasks, bool quiet)
      : execution_(execution), tasks_(tasks), quiet_(quiet) {}

  void Begin(Time now) { begun_ = shown_ = now; }
  void Say(const std::string& sentence) const;
  // Shows how far the run is: every few seconds, more often on a terminal, and at its `end`.
  // `now` is monotonic.
  void Show(Time now, size_t running, bool end = false);

 private:
  const predict::Execution& execution_;
  const size_t tasks_;
  const bool quiet_;
  Time begun_;
  Time shown_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_RUN_PROGRESS_H_
