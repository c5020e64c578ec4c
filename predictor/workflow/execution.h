// Tracks which tasks of a workflow are done, running, ready or waiting. The real runner and the
// predictor step through this same state. Pure. Not thread-safe: one owner, one thread.
//
// If streams are used, a task starts once the tasks whose streams it reads have started, and ends
// after them.
//
// A task whose outputs are lost is undone and runs again. Tasks that read those outputs at that
// time are stale: they may have read a mixture of old and new bytes. They must run again whatever
// their exit status, and the undone task is not ready before they have all ended.
#ifndef MOSA_PREDICTOR_WORKFLOW_EXECUTION_H_
#define MOSA_PREDICTOR_WORKFLOW_EXECUTION_H_

#include <cstdint>
#include <set>
#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

enum class TaskState : uint8_t { kWaiting, kReady, kRunning, kDone, kFailed };

class Execution {
 public:
  // `done`: tasks that need not run; empty: none. Without `uses_streams` they are files like any
  // other. `workflow` must outlive this.
  Execution(const Workflow& workflow, const std::vector<bool>& done, bool uses_streams = false);

  // Returns the tasks that became ready since the last call, lowest first. Each is returned once
  // until Retry().
  std::vector<TaskIndex> TakeReady();
  bool has_ready() const { return !fresh_.empty(); }  // TakeReady() returns some.

  // Start() requires a ready task, Finish() a running task that MayFinish(), Retry() and Fail() a
  // running task.
  void Start(TaskIndex task);
  // False while a task whose stream it reads runs, or if it is stale.
  bool MayFinish(TaskIndex task) const;
  void Finish(TaskIndex task);
  // Makes it ready again, or waiting if a predecessor was undone meanwhile. Those who read its
  // streams become stale. Returns what Undo() does.
  std::vector<TaskIndex> Retry(TaskIndex task);
  std::vector<TaskIndex> Fail(TaskIndex task);  // Final: its successors never run.

  // Undoes a done task whose outputs are lost, so that it runs again. Returns the tasks that
  // TakeReady() had returned and that must wait again. Has no effect on a task that is not done.
  std::vector<TaskIndex> Undo(TaskIndex task);

  bool uses_streams() const { return uses_streams_; }
  // True if the task is running and a predecessor was undone since it started.
  bool is_stale(TaskIndex task) const { return stale_[task.value]; }
  TaskState state(TaskIndex task) const { return states_[task.value]; }
  uint32_t count(TaskState state) const { return counts_[static_cast<size_t>(state)]; }

 private:
  bool Streams(TaskIndex writer, TaskIndex reader) const;
  // Successors wait for the task again, all or those who read its streams. Returns what Undo()
  // does.
  std::vector<TaskIndex> HoldBack(TaskIndex task, bool only_streams);
  void Set(TaskIndex task, TaskState state);
  void MakeReadyIfNothingIsMissing(TaskIndex task);
  void Leave(TaskIndex task, TaskState state);

  const Workflow& workflow_;
  const bool uses_streams_;
  std::vector<TaskState> states_;
  // Predecessors that are not done; of those whose streams are read, that do not run either.
  std::vector<uint32_t> missing_;
  std::vector<bool> stale_;
  std::set<TaskIndex> fresh_;  // Ready, and not yet returned by TakeReady().
  uint32_t counts_[5] = {};
};

// What an earlier run says about a task.
struct EarlierRun {
  bool done = false;  // It succeeded.
  bool same = false;  // Its command, inputs and outputs are unchanged.
  // Its outputs are as it left them, apart from those that are spent: they were removed because
  // their lifetime had ended.
  bool outputs_intact = false;
  std::vector<PathIndex> spent;
};

// Returns which tasks need not run again. A task that was changed or did not finish makes all its
// successors run again. A task whose outputs are lost reruns alone, since it writes the same bytes.
// One that has spent outputs reruns if a task that reads one of them does.
std::vector<bool> PlanResume(const Workflow& workflow, const std::vector<EarlierRun>& earlier);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_EXECUTION_H_
