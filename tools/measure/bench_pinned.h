// Carries out a workflow whose tasks have their hosts beforehand, or learn them when they are
// ready: for what is said of regions of files, which no file graph says.
#ifndef MOSA_TOOLS_MEASURE_BENCH_PINNED_H_
#define MOSA_TOOLS_MEASURE_BENCH_PINNED_H_

#include <functional>
#include <string>

#include "common/base/status.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"
#include "tools/runner/record.h"

namespace mosa::cli {

struct PinnedOptions {
  std::string logs;  // A directory that exists: standard output and error of every task.
  // Makes a task's place ready and says which host it runs on; called when the task is.
  std::function<Result<predict::HostIndex>(predict::TaskIndex)> pin;
  int held = -1;  // As of TaskProcesses.
};

// OK if every task is done; else what the first that failed last said. `record` has hosts and as
// many tasks as the workflow; it gets one attempt of each. Aborted by a signal
// (cluster::InterruptGuard). No task runs on when this returns.
Status RunPinned(const predict::Workflow& workflow, RunRecord& record,
                 const PinnedOptions& options);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_PINNED_H_
