// Tells the store which tasks of a run have succeeded, so that files with a lifetime go when their
// readers have succeeded (`readers:N`) or when the run is done (`temporary`). One thread.
//
// A store that cannot be told stops no run: its files stay, and the run says so.
#ifndef MOSA_TOOLS_RUNNER_TASK_REPORTS_H_
#define MOSA_TOOLS_RUNNER_TASK_REPORTS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// Whether the store removes the output by itself, as its hints say.
bool GoesByItself(const RunRecord& record, predict::PathIndex file);

// Has the store begin the run, as `record.store_run`, if any of its outputs goes by itself, and
// sets `record.reports_tasks`. `record.store_run` is not empty if an earlier run is resumed.
Status BeginInStore(HostMount& mount, RunRecord& record);

// Ends a run in the store that was begun there and has not ended; nothing if `run` is empty.
void EndEarlierRun(const std::string& run, HostMount& mount);

class TaskReports {
 public:
  // `run`: what the store calls the run; empty: it knows of none. `reports`: it has begun there.
  TaskReports(std::string run, bool reports) : run_(std::move(run)), reports_(reports) {}

  // What the task's processes get as MOSA_TASK.
  std::string NameOf(const std::string& task) const {
    return run_.empty() ? task : run_ + "/" + task;
  }
  // Notes that the task has succeeded, or has failed for good.
  void Note(const std::string& task, bool succeeded) {
    if (reports_) noted_.emplace_back(NameOf(task), succeeded);
  }
  // Tells some of what has been noted, without waiting for an answer. After a failure it is tried
  // again no sooner than kRetryEach later.
  void Tell(HostMount& mount, Time now);
  // Tells the rest, within kFinishMax, and if the run is done ends it in the store, so that its
  // temporary files go. A failure says what stays.
  Status Finish(HostMount& mount, bool done);

 private:
  static constexpr Duration kRetryEach = Seconds(2);
  static constexpr Duration kFinishMax = Seconds(20);
  static constexpr size_t kToldAtOnce = 256;

  // Takes the answer to what was told, if there is one yet.
  Status Take(HostMount& mount, Duration at_most);

  const std::string run_;
  const bool reports_;
  std::deque<std::pair<std::string, bool>> noted_;
  bool is_telling_ = false;
  Time retry_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_TASK_REPORTS_H_
