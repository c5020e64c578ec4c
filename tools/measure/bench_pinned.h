// Runs a workflow whose tasks have their hosts assigned beforehand, or when they become ready: for
// hints on regions of files, which a file graph cannot express.
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
  std::string logs;  // An existing directory for the standard output and error of every task.
  // Prepares a task's place and returns the host that runs it; called when the task is ready.
  std::function<Result<predict::HostIndex>(predict::TaskIndex)> pin;
  int held = -1;  // As in TaskProcesses.
};

// OK if every task is done; else the last message of the first task that failed. `record` has the
// hosts and as many tasks as the workflow; each task gets one attempt. Aborted by a signal
// (cluster::InterruptGuard). No task is still running when this returns.
Status RunPinned(const predict::Workflow& workflow, RunRecord& record,
                 const PinnedOptions& options);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_PINNED_H_
