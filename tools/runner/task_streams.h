// TaskStreams: the outputs that other tasks may read while a task writes them (the hint
// stream=append). Their files are held open for as long as the task runs, however often it opens
// and closes them. One thread.
#ifndef MOSA_TOOLS_RUNNER_TASK_STREAMS_H_
#define MOSA_TOOLS_RUNNER_TASK_STREAMS_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/workflow/execution.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/record.h"

namespace mosa::cli {

class TaskStreams {
 public:
  // Both must outlive it.
  TaskStreams(const predict::Workflow& workflow, const predict::Execution& execution)
      : workflow_(workflow), execution_(execution) {}

  // False: tasks start only when their inputs are whole. Only Mosa has streams, and an unaware run
  // gives no hints.
  static bool IsUsedBy(const RunRecord& record);

  // A task may read the file now while another one writes it.
  bool IsBeingWritten(predict::PathIndex file) const;
  // Call it before the task starts, when its outputs are prepared.
  Status Begin(predict::TaskIndex task, HostMount& mount) const;
  // Call it when the task has ended. Fails if a file was not held all the time: its readers may
  // have seen its end too early.
  Status End(predict::TaskIndex task, HostMount& mount) const;

 private:
  std::vector<std::string> Of(predict::TaskIndex task) const;

  const predict::Workflow& workflow_;
  const predict::Execution& execution_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_TASK_STREAMS_H_
