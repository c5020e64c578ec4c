// Tells the store which tasks of a run have succeeded, so that files with a lifetime go when their
// readers have succeeded (`readers:N`) or when the run is done (`temporary`). One thread.
//
// A store that cannot be told stops no run: its files stay, and the run says so.
#ifndef MOSA_TOOLS_RUNNER_TASK_REPORTS_H_
#define MOSA_TOOLS_RUNNER_TASK_REPORTS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// Whether the store removes the output by itself, as its hints say.
bool GoesByItself(const RunRecord& record, predict::PathIndex file);

// Has the store begin the run, as `record.store_run`, if any of its outputs goes by itself.
// `record.store_run` is not empty if an earlier run is resumed.
Status BeginInStore(HostMount& mount, RunRecord& record);

// Ends the run with the record at `path` in the store, if it was begun there and has not ended.
void EndEarlierRun(const std::string& path, HostMount& mount);

class TaskReports {
 public:
  // Reports nothing if `run` is empty.
  explicit TaskReports(std::string run) : run_(std::move(run)) {}

  // What the task's processes get as MOSA_TASK.
  std::string NameOf(const std::string& task) const {
    return run_.empty() ? task : run_ + "/" + task;
  }
  // Notes that the task has succeeded, or has failed for good.
  void Note(const std::string& task, bool succeeded) {
    if (!run_.empty()) noted_.emplace_back(NameOf(task), succeeded);
  }
  // Tells what has been noted. After a failure it is tried again no sooner than kRetryEach later.
  void Tell(HostMount& mount, Time now);
  // Tells the rest and, if the run is done, ends it in the store, so that its temporary files go.
  Status Finish(HostMount& mount, bool done);

 private:
  static constexpr Duration kRetryEach = Seconds(2);

  const std::string run_;
  std::vector<std::pair<std::string, bool>> noted_;
  Time retry_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_TASK_REPORTS_H_
