#include "tools/mosa/run_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "tools/cluster/process.h"

namespace mosa::cli {
namespace {

using predict::HostIndex;
using predict::PathIndex;
using predict::Task;
using predict::TaskIndex;
using predict::TaskState;

// Signals are looked at as often.
constexpr Duration kWaitMax = Milliseconds(200);
constexpr Duration kProgressEach = Seconds(5);
constexpr Duration kProgressEachOnTerminal = Milliseconds(250);
constexpr Duration kRecordEach = Seconds(2);
constexpr Duration kGrace = Seconds(5);
constexpr size_t kLogNameMax = 80;

std::vector<bool> DoneOf(const RunRecord& record) {
  std::vector<bool> done;
  for (const TaskRecord& task : record.tasks) done.push_back(task.kept);
  return done;
}

std::vector<predict::SchedulerHost> SchedulerHosts(const RunRecord& record) {
  std::vector<predict::SchedulerHost> hosts;
  for (const RunHost& host : record.hosts)
    hosts.push_back({host.slots, host.link_bytes_per_second});
  return hosts;
}

// A file's name for a task's output: the id as far as it is one.
std::string LogName(const Task& task, TaskIndex index, size_t attempt) {
  std::string name;
  for (const char c : task.id.substr(0, kLogNameMax)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  return fmt::format("{:05}-{}.{}", index.value, name, attempt);
}

}  // namespace

Engine::Engine(const predict::Workflow& workflow, RunRecord& record, const EngineOptions& options)
    : workflow_(workflow),
      record_(record),
      options_(options),
      execution_(workflow, DoneOf(record)),
      scheduler_(record.system, SchedulerHosts(record)),
      tries_(workflow.tasks.size()),
      lost_(record.hosts.size(), false),
      made_(record.hosts.size()) {
  for (uint32_t i = 0; i < record.hosts.size(); ++i)
    host_names_.emplace(record.hosts[i].name, HostIndex{i});
  for (TaskRecord& task : record.tasks) {
    if (!task.kept) continue;
    task.state = TaskState::kDone;
    files_.insert(task.outputs.begin(), task.outputs.end());
  }
}

Status Engine::Run() {
  record_.start = clock_.Now();
  record_kept_ = progress_shown_ = Now();
  while (!Stopped()) {
    AddReady();
    StartAll();
    if (running_.empty() && scheduler_.waiting() == 0) break;
    for (const auto& ended : processes_.Wait(WaitAtMost())) Handle(ended);
    if (cluster::InterruptGuard::Interrupted() != 0) {
      Interrupt();
      break;
    }
    KeepRecord(false);
    ShowProgress(false);
  }
  return End();
}

// Nothing more is to be done: all is finished, or nothing new may start and the rest has ended.
bool Engine::Stopped() const {
  if (cluster::InterruptGuard::Interrupted() != 0) return true;
  const bool giving_up = !first_failure_.ok() && !options_.keep_going;
  const bool no_host = std::find(lost_.begin(), lost_.end(), false) == lost_.end();
  return (giving_up || no_host) && running_.empty();
}

// ---- what may start

void Engine::AddReady() {
  // A task whose input is lost makes others ready.
  for (auto ready = execution_.TakeReady(); !ready.empty(); ready = execution_.TakeReady()) {
    ExpectEnds(Now());
    for (const TaskIndex task : ready) {
      if (execution_.state(task) != TaskState::kReady) continue;
      if (auto look = Look(task)) scheduler_.AddReady(*std::move(look), Now());
    }
  }
}

// Where the inputs are. Nothing if one is lost: then the task waits for it, or has failed.
std::optional<predict::ReadyTask> Engine::Look(TaskIndex task) {
  predict::ReadyTask ready;
  ready.task = task;
  ready.levels_to_end = workflow_.at(task).levels_to_end;
  ready.avoid = tries_[task.value].avoid;
  std::map<HostIndex, uint64_t> held;
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (workflow_.at(input).path.starts_with('/')) continue;
    if (!LocateInput(task, input)) return std::nullopt;
    const FileFacts& facts = files_.at(input);
    ready.input_bytes += facts.size_bytes;
    for (const auto& [node, bytes] : facts.bytes_by_node) {
      if (const auto host = host_names_.find(node); host != host_names_.end())
        held[host->second] += bytes;
    }
  }
  for (const auto& [host, bytes] : held) ready.held.push_back({host, bytes});
  return ready;
}

bool Engine::LocateInput(TaskIndex task, PathIndex input) {
  if (files_.contains(input)) return true;
  const Status located = OnLivingHost([&](HostIndex host) {
    auto facts = Locate(PathOn(host, input));
    if (facts.ok()) files_[input] = *std::move(facts);
    return facts.status();
  });
  if (located.ok()) return true;
  if (workflow_.at(input).producer && ++tries_[task.value].excused <= kExcusedMax) {
    Undo(*workflow_.at(input).producer, input);
  } else {
    execution_.Start(task);
    GiveUp(task, fmt::format("cannot read '{}': {}", workflow_.at(input).path, MessageOf(located)));
  }
  return false;
}

void Engine::StartAll() {
  if (!first_failure_.ok() && !options_.keep_going) return;
  while (const auto assignment = scheduler_.Next(Now())) Launch(*assignment);
}

void Engine::Launch(const predict::Assignment& assignment) {
  const TaskIndex task = assignment.task;
  const RunHost& host = at(assignment.host);
  execution_.Start(task);
  TaskRecord& record = at(task);
  record.state = TaskState::kRunning;
  record.inputs.clear();
  record.outputs.clear();
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (const auto facts = files_.find(input); facts != files_.end()) record.inputs.insert(*facts);
  }
  for (const PathIndex output : workflow_.at(task).outputs) files_.erase(output);
  Attempt attempt;
  attempt.host = host.name;
  attempt.start = attempt.end = clock_.Now();
  attempt.placed = predict::ToText(assignment.reason);
  attempt.local_bytes = assignment.local_bytes;
  attempt.remote_bytes = assignment.remote_bytes;
  const std::string log = fmt::format(
      "{}/{}", options_.logs, LogName(workflow_.at(task), task, record.attempts.size() + 1));
  attempt.output_path = log + ".out";
  attempt.error_path = log + ".err";
  record.attempts.push_back(attempt);
  ++changes_;
  const Status prepared = Prepare(task, host);
  if (!prepared.ok()) {
    scheduler_.Release(assignment.host);
    FailAttempt(task, assignment.host, MessageOf(prepared));
    return;
  }
  const auto pid = processes_.Start(CommandOf(task, assignment.host, attempt));
  if (!pid.ok()) {
    scheduler_.Release(assignment.host);
    FailAttempt(task, assignment.host, MessageOf(pid.status()));
    return;
  }
  running_.emplace(*pid, Running{task, assignment.host});
}

Status Engine::Prepare(TaskIndex task, const RunHost& host) {
  static const predict::HintMap kNone;
  // Some programs refuse to replace a file that is there: those do without hints the second time.
  const bool tag = tries_[task.value].failures == 0;
  for (const PathIndex output : workflow_.at(task).outputs) {
    const auto hints = record_.hints.find(output);
    const bool own = tag && hints != record_.hints.end() && !record_.inheriting.contains(output);
    MOSA_RETURN_IF_ERROR(PrepareOutput(host.directory, workflow_.at(output).path,
                                       own ? hints->second : kNone,
                                       made_[host_names_.at(host.name).value]));
  }
  return OkStatus();
}

TaskCommand Engine::CommandOf(TaskIndex task, HostIndex host, const Attempt& attempt) {
  TaskCommand command;
  command.host = &at(host);
  command.argv = workflow_.at(task).command;
  command.environment["MOSA_TASK"] = workflow_.at(task).id;
  command.output_path = attempt.output_path;
  command.error_path = attempt.error_path;
  return command;
}

// When each host's next task should end, by what is said of tasks and what their stage took so far.
void Engine::ExpectEnds(Time now) {
  std::vector<std::optional<Time>> ends(record_.hosts.size());
  std::vector<bool> unknown(record_.hosts.size(), false);
  for (const auto& [pid, running] : running_) {
    const Task& task = workflow_.at(running.task);
    const auto stage = stages_.find(task.stage);
    std::optional<Duration> expected = task.expected;
    if (stage != stages_.end()) expected = Duration{stage->second.total_ns / stage->second.tasks};
    const Time started = at(running.task).attempts.back().start;
    const Duration run = clock_.Now() - started;
    const uint32_t host = running.host.value;
    if (!expected || *expected < run) {
      unknown[host] = true;
      continue;
    }
    const Time end = now + (*expected - run);
    if (!ends[host] || end < *ends[host]) ends[host] = end;
  }
  for (uint32_t i = 0; i < ends.size(); ++i)
    scheduler_.ExpectFree(HostIndex{i}, unknown[i] ? std::nullopt : ends[i]);
}

// ---- around it

Status Engine::OnLivingHost(const std::function<Status(HostIndex)>& ask) {
  Status answer = UnavailableError("no host is left");
  for (uint32_t i = 0; i < lost_.size(); ++i) {
    if (lost_[i]) continue;
    answer = ask(HostIndex{i});
    if (answer.ok()) return answer;
    LoseHostIfSilent(HostIndex{i});
    if (!lost_[i]) return answer;
  }
  return answer;
}

std::string Engine::PathOn(HostIndex host, PathIndex file) const {
  return std::filesystem::path(at(host).directory) / workflow_.at(file).path;
}

Duration Engine::WaitAtMost() const {
  const auto change = scheduler_.NextChange();
  if (!change) return kWaitMax;
  return std::clamp(*change - Now(), Milliseconds(0), kWaitMax);
}

// A long record is written less often: it never takes more than a twentieth of the time.
void Engine::KeepRecord(bool now) {
  const Time begin = Now();
  const Duration each = std::max(kRecordEach, record_took_ * 20);
  if (!now && (changes_ == changes_kept_ || begin - record_kept_ < each)) return;
  record_.end = clock_.Now();
  const Status kept = WriteRecord(options_.record_path, ToJson(record_, workflow_));
  if (!kept.ok() && first_failure_.ok()) {
    fmt::print(stderr, "mosa run: {}\n", MessageOf(kept));
    first_failure_ = kept;
  }
  changes_kept_ = changes_;
  record_kept_ = Now();
  record_took_ = record_kept_ - begin;
}

void Engine::ShowProgress(bool now) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const Duration each = terminal ? kProgressEachOnTerminal : kProgressEach;
  if (!now && Now() - progress_shown_ < each) return;
  progress_shown_ = Now();
  const uint32_t failed = execution_.count(TaskState::kFailed);
  const std::string line = fmt::format(
      "mosa run: {} of {} tasks done, {} running{}, {:.1f} s", execution_.count(TaskState::kDone),
      workflow_.tasks.size(), running_.size(), failed > 0 ? fmt::format(", {} failed", failed) : "",
      static_cast<double>((clock_.Now() - record_.start).ns) / 1e9);
  // The line overwrites itself until it is the last.
  fmt::print(stderr, "{}{}{}", terminal ? "\r\033[K" : "", line, terminal && !now ? "" : "\n");
  std::fflush(stderr);
}

Status Engine::End() {
  processes_.EndAll(kGrace);
  const bool done = execution_.count(TaskState::kDone) == workflow_.tasks.size();
  const bool interrupted = cluster::InterruptGuard::Interrupted() != 0;
  record_.outcome = interrupted && !done ? "interrupted" : done ? "done" : "failed";
  ShowProgress(true);
  KeepRecord(true);
  if (done) return first_failure_;
  const std::string on =
      fmt::format("'--resume --record {}' goes on from here", options_.record_path);
  if (interrupted) return AbortedError(fmt::format("interrupted: {}", on));
  if (!first_failure_.ok())
    return Status(first_failure_.code(), fmt::format("{}; {}", MessageOf(first_failure_), on));
  return UnavailableError(fmt::format("no host is left ({} lost) with {} of {} tasks done; {}",
                                      record_.hosts_lost.size(), execution_.count(TaskState::kDone),
                                      workflow_.tasks.size(), on));
}

void Engine::Interrupt() {
  for (const auto& ended : processes_.EndAll(kGrace)) {
    const auto found = running_.find(ended.pid);
    if (found == running_.end()) continue;
    Attempt& attempt = at(found->second.task).attempts.back();
    attempt.end = clock_.Now();
    attempt.exit_code = ended.exit_code;
    attempt.signal = ended.signal;
    attempt.failure = "ended because the run was interrupted";
    running_.erase(found);
  }
}

}  // namespace mosa::cli
