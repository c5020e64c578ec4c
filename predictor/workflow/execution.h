// Which parts of a workflow are done, under way, ready or waiting: the state that whatever runs it
// (the real runner, the predictor) steps through. Pure; one owner, one thread.
//
// A task whose outputs are lost is undone and runs again. What reads them at that time is stale:
// it may have read half of the old bytes and half of the new ones, so that whatever it says of its
// end, it has to run again as well; and the undone task is not ready before they all have ended.
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
  // `done`: tasks that need not run. Empty: none. `workflow` must outlive this.
  Execution(const Workflow& workflow, const std::vector<bool>& done);

  // Tasks that became ready since the last call, lowest first. Each is given once until Retry().
  std::vector<TaskIndex> TakeReady();

  // Preconditions: the task is ready; running and not stale; running; running.
  void Start(TaskIndex task);
  void Finish(TaskIndex task);
  void Retry(TaskIndex task);  // It is ready again, or waits if a predecessor was undone meanwhile.
  void Fail(TaskIndex task);   // For good: its successors never run.

  // The outputs of a done task are lost: it runs again. Returns the tasks that had been given as
  // ready and must wait again. Nothing happens to a task that is not done.
  std::vector<TaskIndex> Undo(TaskIndex task);

  // It is running, and a predecessor was undone since it was started.
  bool is_stale(TaskIndex task) const { return stale_[task.value]; }
  TaskState state(TaskIndex task) const { return states_[task.value]; }
  uint32_t count(TaskState state) const { return counts_[static_cast<size_t>(state)]; }

 private:
  void Set(TaskIndex task, TaskState state);
  void MakeReadyIfNothingIsMissing(TaskIndex task);
  void Leave(TaskIndex task, TaskState state);

  const Workflow& workflow_;
  std::vector<TaskState> states_;
  std::vector<uint32_t> missing_;  // Predecessors that are not done.
  std::vector<bool> stale_;
  std::set<TaskIndex> fresh_;  // Ready, and not given yet.
  uint32_t counts_[5] = {};
};

// What is known of a task from an earlier run.
struct EarlierRun {
  bool done = false;            // It succeeded.
  bool same = false;            // With the same command, inputs and outputs.
  bool outputs_intact = false;  // They are as it left them.
};

// Which tasks need not run again. One that was changed or did not finish makes all behind it run
// again; one whose outputs are lost only itself, as it will write the same.
std::vector<bool> PlanResume(const Workflow& workflow, const std::vector<EarlierRun>& earlier);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_EXECUTION_H_
