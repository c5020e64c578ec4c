// The part of Engine that handles the end of an attempt.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "tools/cluster/process.h"
#include "tools/runner/engine.h"

namespace mosa::cli {
namespace {

using predict::HostIndex;
using predict::PathIndex;
using predict::Task;
using predict::TaskIndex;
using predict::TaskState;

constexpr std::streamoff kTailBytes = 4096;
constexpr const char* kStale = "one of its inputs is being written again";

std::string LastLine(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::string line, last;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.substr(0, 300);
}

// Whether the file, or any file of the directory, is among the lost ones.
bool IsLost(const predict::WorkflowFile& file, const std::set<std::string>& lost) {
  if (!file.is_directory) return lost.contains(file.path);
  const auto first = lost.lower_bound(predict::NameOf(file));
  return first != lost.end() && first->starts_with(predict::NameOf(file));
}

}  // namespace

void Engine::Handle(const TaskProcesses::Ended& ended) {
  if (readers_.Handle(ended)) return;
  const auto found = running_.find(ended.pid);
  if (found == running_.end()) return;
  const auto [task, host] = found->second;
  running_.erase(found);
  scheduler_.Release(host, workflow_.at(task).needs);
  Attempt& attempt = at(task).attempts.back();
  attempt.end = clock_.Now();
  attempt.exit_code = ended.exit_code;
  attempt.signal = ended.signal;
  if (at(host).exec.empty()) attempt.processor = ended.processor;
  ++changes_;
  const Status held = lost_[host.value] ? OkStatus() : streams_.End(task, mounts_[host.value]);
  if (execution_.is_stale(task)) {
    FailAttempt(task, host, kStale);
    return;
  }
  std::string failure;
  if (ended.signal != 0 || ended.exit_code != 0 || lost_[host.value]) {
    const std::string last = LastLine(attempt.error_path);
    failure = fmt::format("{}{}{}",
                          ended.signal != 0 ? fmt::format("ended by signal {}", ended.signal)
                                            : fmt::format("exit code {}", ended.exit_code),
                          last.empty() ? "" : ": ", last);
  } else if (!held.ok()) {
    failure = fmt::format("exit code 0, but {}", MessageOf(held));
  }
  // What a reader of a stream is worth is known when the writer has ended.
  if (!execution_.MayFinish(task) && !lost_[host.value])
    ended_early_.emplace(task, EndedEarly{host, std::move(failure)});
  else
    Conclude(task, host, failure);
}

// A task that was tried again wrote its outputs without their hints. Those for speed come too late,
// but files must still go when they should.
Status Engine::GiveLifetimes(TaskIndex task, HostIndex host) {
  if (tries_[task.value].failures == 0) return OkStatus();
  HostMount::HintsOfFiles files;
  for (const PathIndex output : workflow_.at(task).outputs)
    if (GoesByItself(record_, output))
      files.push_back({predict::NameOf(workflow_.at(output)),
                       {{"lifetime", record_.hints.at(output).at("lifetime")}}});
  return files.empty() ? OkStatus() : mounts_[host.value].GiveHints(files);
}

void Engine::Conclude(TaskIndex task, HostIndex host, const std::string& failure) {
  if (!failure.empty()) return FailAttempt(task, host, failure);
  Status located = LocateOutputs(task, host);
  if (located.ok()) located = GiveLifetimes(task, host);
  if (!located.ok()) {
    FailAttempt(task, host, fmt::format("exit code 0, but {}", MessageOf(located)));
    return;
  }
  const Attempt& attempt = at(task).attempts.back();
  StageTime& stage = stages_[workflow_.at(task).stage];
  stage.total_ns += (attempt.end - attempt.start).ns;
  ++stage.tasks;
  RecordInputs(task);
  execution_.Finish(task);
  at(task).state = TaskState::kDone;
  reports_.Note(workflow_.at(task).id, true);
  for (const TaskIndex next : workflow_.at(task).successors) {
    const auto ended = ended_early_.find(next);
    if (ended == ended_early_.end() || !execution_.MayFinish(next)) continue;
    const EndedEarly early = std::move(ended->second);
    ended_early_.erase(ended);
    Conclude(next, early.host, early.failure);
  }
}

void Engine::HoldBack(const std::vector<TaskIndex>& withdrawn) {
  for (const TaskIndex waiting : withdrawn) scheduler_.Withdraw(waiting);
  for (const auto& [pid, running] : running_) {
    if (execution_.is_stale(running.task)) processes_.Kill(pid);
  }
  const auto is_stale = [this](const auto& ended) { return execution_.is_stale(ended.first); };
  // Each may hold back others, too.
  for (auto ended = std::ranges::find_if(ended_early_, is_stale); ended != ended_early_.end();
       ended = std::ranges::find_if(ended_early_, is_stale)) {
    const auto [task, early] = *ended;
    ended_early_.erase(ended);
    FailAttempt(task, early.host, kStale);
  }
}

Status Engine::LocateOutputs(TaskIndex task, HostIndex host) {
  const std::vector<PathIndex>& outputs = workflow_.at(task).outputs;
  if (outputs.empty()) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(HostMount::Found found,
                        mounts_[host.value].LocateWritten(PathsOf(workflow_, outputs)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    MOSA_RETURN_IF_ERROR(found[i].status());
    NoteFile(outputs[i], *found[i]);
    at(task).outputs[outputs[i]] = *std::move(found[i]);
  }
  return OkStatus();
}

// Precondition: the task is running, but its process has ended.
void Engine::FailAttempt(TaskIndex task, HostIndex host, const std::string& why) {
  TaskRecord& record = at(task);
  Attempt& attempt = record.attempts.back();
  Tries& tries = tries_[task.value];
  attempt.failure = why;
  record.state = TaskState::kWaiting;
  record.outputs.clear();
  LoseHostIfSilent(host);
  const bool host_lost = lost_[host.value];
  if (host_lost) attempt.failure += fmt::format(" (host {} is lost)", at(host).name);
  const bool input_lost = UndoLostInputs(task);
  if (input_lost) attempt.failure += " (an input is lost)";
  if ((host_lost || input_lost) && ++tries.excused <= kExcusedMax) {
    HoldBack(execution_.Retry(task));
    return;
  }
  ++tries.failures;
  tries.avoid.insert(host);
  // If it has failed on every host, only the last one is avoided.
  if (tries.avoid.size() >= lost_.size() - record_.hosts_lost.size()) tries.avoid = {host};
  if (tries.failures > options_.retries) {
    GiveUp(task, attempt.failure);
    return;
  }
  progress_.Say(fmt::format("{} failed on {} (attempt {} of {}): {}",
                            predict::Describe(workflow_.at(task)), at(host).name, tries.failures,
                            options_.retries + 1, attempt.failure));
  HoldBack(execution_.Retry(task));
}

// Checks whether the inputs of a failed task are still readable, and runs the writers of lost ones
// again.
bool Engine::UndoLostInputs(TaskIndex task) {
  bool any = false;
  std::vector<PathIndex> written;
  for (const PathIndex input : workflow_.at(task).inputs) {
    const auto& producer = workflow_.at(input).producer;
    if (!producer) continue;
    if (execution_.state(*producer) == TaskState::kDone) {
      written.push_back(input);
    } else if (!streams_.IsBeingWritten(input) || execution_.is_stale(task)) {
      any = true;
    }
  }
  if (written.empty()) return any;
  const Found found = OnLivingHost(
      [&](HostMount& mount) { return mount.LocateReadable(PathsOf(workflow_, written)); });
  for (size_t i = 0; found.ok() && i < written.size(); ++i) {
    if ((*found)[i].ok()) continue;
    Undo(*workflow_.at(written[i]).producer, written[i]);
    any = true;
  }
  return any;
}

// Also ends running tasks that read its outputs, because it cannot start before they end.
void Engine::Undo(TaskIndex task, PathIndex lost) {
  if (execution_.state(task) != TaskState::kDone) return;
  progress_.Say(fmt::format("'{}' is lost: {} runs again", workflow_.at(lost).path,
                            predict::Describe(workflow_.at(task))));
  const std::vector<TaskIndex> withdrawn = execution_.Undo(task);
  for (const PathIndex output : workflow_.at(task).outputs) DropFile(output);
  at(task).state = TaskState::kWaiting;
  at(task).kept = false;
  at(task).outputs.clear();
  ++changes_;
  HoldBack(withdrawn);
}

// Runs again the writers of lost outputs that no task reads, once all tasks are done: nothing else
// checks these.
bool Engine::UndoLostResults() {
  if (execution_.count(TaskState::kDone) < workflow_.tasks.size()) return false;
  Result<std::vector<std::string>> paths = UnavailableError("no host is left to run tasks");
  for (size_t i = 0; i < mounts_.size() && !paths.ok(); ++i) {
    if (!lost_[i]) paths = mounts_[i].ListLost();
  }
  if (!paths.ok() || paths->empty()) return false;
  const std::set<std::string> lost(paths->begin(), paths->end());
  bool any = false;
  for (uint32_t i = 0; i < workflow_.files.size(); ++i) {
    const predict::WorkflowFile& file = workflow_.files[i];
    if (!file.producer || !file.consumers.empty() || !IsLost(file, lost)) continue;
    if (++tries_[file.producer->value].excused > kExcusedMax) continue;
    Undo(*file.producer, PathIndex{i});
    any = true;
  }
  return any;
}

void Engine::LoseHostIfSilent(HostIndex host) {
  if (lost_[host.value] || mounts_[host.value].Answers()) return;
  // A signal also interrupts the wait for an answer, which then does not mean that the host is
  // lost.
  if (cluster::InterruptGuard::Interrupted() == 0) LoseHost(host);
}

void Engine::LoseHost(HostIndex host) {
  lost_[host.value] = true;
  scheduler_.Remove(host, Now());
  record_.hosts_lost.push_back(at(host).name);
  ++changes_;
  progress_.Say(fmt::format(
      "host {} is lost: {}its mount {} does not answer; its tasks run elsewhere", at(host).name,
      at(host).exec.empty() ? "" : "commands cannot be run there, or ", at(host).mount_point));
  readers_.Lose(host);
  for (const auto& [pid, running] : running_) {
    if (running.host == host) processes_.Kill(pid);
  }
}

void Engine::GiveUp(TaskIndex task, const std::string& why) {
  HoldBack(execution_.Fail(task));
  reports_.Note(workflow_.at(task).id, false);
  at(task).state = TaskState::kFailed;
  ++changes_;
  const TaskRecord& record = at(task);
  const std::string sentence =
      record.attempts.empty()
          ? fmt::format("{}: {}", predict::Describe(workflow_.at(task)), why)
          : fmt::format("{} failed {} time{}, most recently on {}: {} (see {})",
                        predict::Describe(workflow_.at(task)), tries_[task.value].failures,
                        tries_[task.value].failures == 1 ? "" : "s", record.attempts.back().host,
                        why, record.attempts.back().error_path);
  progress_.Say(sentence);
  if (first_failure_.ok()) first_failure_ = FailedPreconditionError(sentence);
}

}  // namespace mosa::cli
