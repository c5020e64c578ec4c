#include "predictor/workflow/execution.h"

#include <algorithm>

#include "common/base/check.h"

namespace mosa::predict {

Execution::Execution(const Workflow& workflow, const std::vector<bool>& done, bool uses_streams)
    : workflow_(workflow),
      uses_streams_(uses_streams),
      states_(workflow.tasks.size(), TaskState::kWaiting),
      missing_(workflow.tasks.size(), 0),
      stale_(workflow.tasks.size(), false) {
  MOSA_CHECK(done.empty() || done.size() == workflow.tasks.size());
  counts_[static_cast<size_t>(TaskState::kWaiting)] = static_cast<uint32_t>(states_.size());
  const auto is_done = [&done](TaskIndex task) { return !done.empty() && done[task.value]; };
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (is_done(TaskIndex{i})) Set(TaskIndex{i}, TaskState::kDone);
  }
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const auto& before = workflow.tasks[i].predecessors;
    missing_[i] = static_cast<uint32_t>(std::count_if(
        before.begin(), before.end(), [&](TaskIndex task) { return !is_done(task); }));
    MakeReadyIfNothingIsMissing(TaskIndex{i});
  }
}

std::vector<TaskIndex> Execution::TakeReady() {
  std::vector<TaskIndex> ready(fresh_.begin(), fresh_.end());
  fresh_.clear();
  return ready;
}

void Execution::Start(TaskIndex task) {
  MOSA_CHECK(state(task) == TaskState::kReady);
  fresh_.erase(task);
  Set(task, TaskState::kRunning);
  for (const TaskIndex next : workflow_.at(task).successors) {
    if (!Streams(task, next)) continue;
    --missing_[next.value];
    MakeReadyIfNothingIsMissing(next);
  }
}

bool Execution::Streams(TaskIndex writer, TaskIndex reader) const {
  return uses_streams_ && std::ranges::binary_search(workflow_.at(reader).stream_writers, writer);
}

bool Execution::MayFinish(TaskIndex task) const {
  return !is_stale(task) &&
         std::ranges::all_of(workflow_.at(task).predecessors, [this](TaskIndex before) {
           return state(before) == TaskState::kDone;
         });
}

void Execution::Finish(TaskIndex task) {
  MOSA_CHECK(state(task) == TaskState::kRunning && MayFinish(task));
  Leave(task, TaskState::kDone);
  for (const TaskIndex next : workflow_.at(task).successors) {
    if (Streams(task, next)) continue;  // Since Start().
    --missing_[next.value];
    MakeReadyIfNothingIsMissing(next);
  }
}

std::vector<TaskIndex> Execution::Retry(TaskIndex task) {
  std::vector<TaskIndex> withdrawn = HoldBack(task, /*only_streams=*/true);
  Leave(task, TaskState::kWaiting);
  MakeReadyIfNothingIsMissing(task);
  return withdrawn;
}

std::vector<TaskIndex> Execution::Fail(TaskIndex task) {
  std::vector<TaskIndex> withdrawn = HoldBack(task, /*only_streams=*/true);
  Leave(task, TaskState::kFailed);
  return withdrawn;
}

std::vector<TaskIndex> Execution::HoldBack(TaskIndex task, bool only_streams) {
  std::vector<TaskIndex> withdrawn;
  for (const TaskIndex next : workflow_.at(task).successors) {
    if (only_streams && !Streams(task, next)) continue;
    ++missing_[next.value];
    if (state(next) == TaskState::kRunning) stale_[next.value] = true;
    if (state(next) != TaskState::kReady) continue;
    Set(next, TaskState::kWaiting);
    if (fresh_.erase(next) == 0) withdrawn.push_back(next);
  }
  return withdrawn;
}

// Ends a running task. Undone predecessors that waited only for that become ready.
void Execution::Leave(TaskIndex task, TaskState state) {
  MOSA_CHECK(states_[task.value] == TaskState::kRunning);
  Set(task, state);
  if (!is_stale(task)) return;
  stale_[task.value] = false;
  for (const TaskIndex before : workflow_.at(task).predecessors)
    MakeReadyIfNothingIsMissing(before);
}

std::vector<TaskIndex> Execution::Undo(TaskIndex task) {
  if (state(task) != TaskState::kDone) return {};
  Set(task, TaskState::kWaiting);
  std::vector<TaskIndex> withdrawn = HoldBack(task, /*only_streams=*/false);
  MakeReadyIfNothingIsMissing(task);
  return withdrawn;
}

void Execution::Set(TaskIndex task, TaskState state) {
  --counts_[static_cast<size_t>(states_[task.value])];
  ++counts_[static_cast<size_t>(state)];
  states_[task.value] = state;
}

void Execution::MakeReadyIfNothingIsMissing(TaskIndex task) {
  if (state(task) != TaskState::kWaiting || missing_[task.value] > 0) return;
  // Only successors of an undone task, and readers of its streams, can run before it is done.
  const auto& after = workflow_.at(task).successors;
  if (std::any_of(after.begin(), after.end(),
                  [this](TaskIndex next) { return states_[next.value] == TaskState::kRunning; }))
    return;
  Set(task, TaskState::kReady);
  fresh_.insert(task);
}

std::vector<bool> PlanResume(const Workflow& workflow, const std::vector<EarlierRun>& earlier) {
  MOSA_CHECK(earlier.size() == workflow.tasks.size());
  std::vector<bool> writes_anew(earlier.size(), false);
  std::vector<bool> keep(earlier.size(), false);
  for (const TaskIndex task : workflow.order) {
    const EarlierRun& run = earlier[task.value];
    const auto& before = workflow.at(task).predecessors;
    writes_anew[task.value] = !run.done || !run.same ||
                              std::any_of(before.begin(), before.end(),
                                          [&](TaskIndex t) { return writes_anew[t.value]; });
  }
  for (auto task = workflow.order.rbegin(); task != workflow.order.rend(); ++task) {
    const EarlierRun& run = earlier[task->value];
    const bool misses_none = std::all_of(run.spent.begin(), run.spent.end(), [&](PathIndex file) {
      const auto& readers = workflow.at(file).consumers;
      return std::all_of(readers.begin(), readers.end(),
                         [&](TaskIndex reader) { return keep[reader.value]; });
    });
    keep[task->value] = !writes_anew[task->value] && run.outputs_intact && misses_none;
  }
  return keep;
}

}  // namespace mosa::predict
