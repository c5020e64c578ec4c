#include "tools/runner/engine.h"

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

// The longest time between two checks for signals.
constexpr Duration kWaitMax = Milliseconds(200);
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
    hosts.push_back({host.slots, host.memory_bytes, host.link_bytes_per_second});
  return hosts;
}

// A task's id with the characters that file names should not have replaced.
std::string PlainName(const Task& task) {
  std::string name;
  for (const char c : task.id.substr(0, kLogNameMax)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  return name;
}

// The path of the next attempt's output, without extension. `attempts`: those before it.
std::string LogOf(const EngineOptions& options, TaskIndex index, const Task& task,
                  size_t attempts) {
  const std::string name = fmt::format("{}/{:05}-{}", options.logs, index.value, PlainName(task));
  size_t attempt = attempts + 1;
  std::error_code error;
  while (options.keep_logs &&
         std::filesystem::exists(fmt::format("{}.{}.out", name, attempt), error))
    ++attempt;
  return fmt::format("{}.{}", name, attempt);
}

bool ReadsFrom(const predict::Workflow& workflow, TaskIndex reader, TaskIndex writer) {
  return std::ranges::any_of(workflow.at(reader).inputs, [&](PathIndex input) {
    return workflow.at(input).producer == writer;
  });
}

// How many bytes of the file each host holds.
std::map<HostIndex, uint64_t> HeldOf(const FileFacts& facts,
                                     const std::map<std::string, HostIndex>& host_names) {
  std::map<HostIndex, uint64_t> held;
  for (const auto& [node, bytes] : facts.bytes_by_node) {
    if (const auto host = host_names.find(node); host != host_names.end())
      held[host->second] += bytes;
  }
  return held;
}

}  // namespace

Engine::Engine(const predict::Workflow& workflow, RunRecord& record, const EngineOptions& options)
    : workflow_(workflow),
      record_(record),
      options_(options),
      execution_(workflow, DoneOf(record), TaskStreams::IsUsedBy(record)),
      scheduler_(record.system, SchedulerHosts(record)),
      streams_(workflow, execution_),
      progress_(execution_, workflow.tasks.size(), options.quiet),
      reports_(record.store_run, record.reports_tasks),
      processes_(options.held),
      readers_(workflow, record.hosts, processes_),
      tries_(workflow.tasks.size()),
      lost_(record.hosts.size(), false) {
  for (const RunHost& host : record.hosts) mounts_.emplace_back(host, record.reuses);
  for (uint32_t i = 0; i < record.hosts.size(); ++i)
    host_names_.emplace(record.hosts[i].name, HostIndex{i});
  for (uint32_t i = 0; i < record.tasks.size(); ++i)
    if (record.tasks[i].kept) readers_.files().Skip(TaskIndex{i});
  for (const auto& [file, facts] : record.outside) NoteFile(file, facts);
  for (uint32_t i = 0; i < record.tasks.size(); ++i)
    if (record.tasks[i].kept) NoteKept(TaskIndex{i});
}

Status Engine::Run() {
  record_.start = clock_.Now();
  record_kept_ = Now();
  progress_.Begin(Now());
  while (!Stopped()) {
    LookAtHosts();
    // A task that has started may have made others ready, which read its streams.
    do {
      AddReady();
      StartAll();
    } while (execution_.has_ready() && !Stopped());
    readers_.Start(lost_);
    if (running_.empty() && scheduler_.waiting() == 0) {
      // A task that could not be started may be tried again at once.
      if (execution_.count(TaskState::kReady) > 0) continue;
      if (!UndoLostResults()) break;
      continue;
    }
    for (const auto& ended : processes_.Wait(WaitAtMost())) Handle(ended);
    TellStore();
    KeepRecord(false);
    progress_.Show(Now(), running_.size());
  }
  if (cluster::InterruptGuard::Interrupted() != 0) Interrupt();
  return End();
}

// A task on a mount that hangs would wait forever instead of failing, so mounts are checked here.
void Engine::LookAtHosts() {
  for (uint32_t i = 0; i < mounts_.size(); ++i) {
    if (!lost_[i] && !mounts_[i].SeemsAlive(Now())) LoseHost(HostIndex{i});
  }
}

// All tasks have ended, or nothing new may start and the running tasks have ended.
bool Engine::Stopped() const {
  if (cluster::InterruptGuard::Interrupted() != 0) return true;
  const bool giving_up = !first_failure_.ok() && !options_.keep_going;
  return (giving_up || NoHostIsLeft()) && running_.empty();
}

// ---- what may start

void Engine::AddReady() {
  // Handling a task whose input is lost can make others ready, hence the loop.
  for (auto ready = execution_.TakeReady(); !ready.empty(); ready = execution_.TakeReady()) {
    ExpectEnds(Now());
    for (const TaskIndex task : ready) {
      if (execution_.state(task) != TaskState::kReady) continue;
      if (auto look = Look(task); look && !Reuse(task))
        scheduler_.AddReady(*std::move(look), Now());
    }
  }
}

// Finds where the inputs are. Nothing if one is lost: the task then waits for it, or has failed.
std::optional<predict::ReadyTask> Engine::Look(TaskIndex task) {
  predict::ReadyTask ready;
  ready.task = task;
  ready.levels_to_end = workflow_.at(task).levels_to_end;
  ready.avoid = tries_[task.value].avoid;
  ready.planned = workflow_.at(task).planned;
  ready.needs = workflow_.at(task).needs;
  if (!LocateInputs(task)) return std::nullopt;
  std::map<HostIndex, uint64_t> held;
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (workflow_.at(input).path.starts_with('/') || !files_.contains(input)) continue;
    const FileFacts& facts = files_.at(input);
    ready.input_bytes += facts.size_bytes;
    for (const auto& [host, bytes] : HeldOf(facts, host_names_)) held[host] += bytes;
  }
  for (const auto& [host, bytes] : held) ready.held.push_back({host, bytes});
  return ready;
}

// Takes the results of an earlier run if the task would now read what it read then.
bool Engine::Reuse(TaskIndex task) {
  TaskRecord& own = at(task);
  const std::shared_ptr<const TaskRecord> earlier = std::exchange(own.earlier, nullptr);
  if (earlier == nullptr) return false;
  for (const PathIndex input : workflow_.at(task).inputs) {
    const auto then = earlier->inputs.find(input);
    const auto now = files_.find(input);
    if (then == earlier->inputs.end() || now == files_.end() ||
        !HasSameBytes(then->second, now->second))
      return false;
  }
  // What it comes after, without reading from it, may have done anything.
  for (const TaskIndex before : workflow_.at(task).predecessors)
    if (!at(before).kept && !ReadsFrom(workflow_, task, before)) return false;
  own = *earlier;
  execution_.Start(task);
  execution_.Finish(task);
  readers_.files().Skip(task);
  NoteKept(task);
  ++changes_;
  return true;
}

void Engine::NoteKept(TaskIndex task) {
  TaskRecord& own = at(task);
  own.kept = true;
  own.state = TaskState::kDone;
  for (const auto& [file, facts] : own.outputs) NoteFile(file, facts);
  // A store that has been restarted knows of no task.
  reports_.Note(workflow_.at(task).id, true);
}

void Engine::NoteFile(PathIndex file, FileFacts facts) {
  readers_.files().AddFile(file, facts.size_bytes, HeldOf(facts, host_names_));
  files_[file] = std::move(facts);
}

void Engine::DropFile(PathIndex file) {
  readers_.files().RemoveFile(file);
  files_.erase(file);
}

bool Engine::LocateInputs(TaskIndex task) {
  std::vector<PathIndex> unknown;
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (!files_.contains(input) && !streams_.IsBeingWritten(input)) unknown.push_back(input);
  }
  if (unknown.empty()) return true;
  Found found =
      OnLivingHost([&](HostMount& mount) { return mount.Locate(PathsOf(workflow_, unknown)); });
  if (!found.ok() && NoHostIsLeft()) return false;
  bool all = true;
  for (size_t i = 0; i < unknown.size(); ++i) {
    const Status located = found.ok() ? (*found)[i].status() : found.status();
    const auto& producer = workflow_.at(unknown[i]).producer;
    if (located.ok()) {
      NoteFile(unknown[i], *std::move((*found)[i]));
      continue;
    }
    all = false;
    if (producer && found.ok() && ++tries_[task.value].excused <= kExcusedMax) {
      Undo(*producer, unknown[i]);
    } else if (execution_.state(task) == TaskState::kReady) {
      execution_.Start(task);
      GiveUp(task, fmt::format("cannot read '{}': {}", workflow_.at(unknown[i]).path,
                               MessageOf(located)));
    }
  }
  return all;
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
  RecordInputs(task);
  for (const PathIndex output : workflow_.at(task).outputs) DropFile(output);
  readers_.files().Start(task, assignment.host);
  Attempt attempt;
  attempt.host = host.name;
  attempt.start = attempt.end = clock_.Now();
  attempt.placed = predict::ToText(assignment.reason);
  attempt.local_bytes = assignment.local_bytes;
  attempt.remote_bytes = assignment.remote_bytes;
  const std::string log =
      LogOf(options_, task, workflow_.at(task), record_.tasks[task.value].attempts.size());
  attempt.output_path = log + ".out";
  attempt.error_path = log + ".err";
  record.attempts.push_back(attempt);
  ++changes_;
  const Status prepared = Prepare(task, assignment.host);
  if (!prepared.ok()) {
    scheduler_.Release(assignment.host, workflow_.at(task).needs);
    FailAttempt(task, assignment.host, MessageOf(prepared));
    return;
  }
  const auto pid = processes_.Start(CommandOf(task, assignment.host, attempt));
  if (!pid.ok()) {
    streams_.End(task, mounts_[assignment.host.value]).IgnoreError();
    scheduler_.Release(assignment.host, workflow_.at(task).needs);
    FailAttempt(task, assignment.host, MessageOf(pid.status()));
    return;
  }
  running_.emplace(*pid, Running{task, assignment.host});
}

void Engine::RecordInputs(TaskIndex task) {
  for (const PathIndex input : workflow_.at(task).inputs) {
    if (const auto facts = files_.find(input); facts != files_.end())
      at(task).inputs.insert(*facts);
  }
}

Status Engine::Prepare(TaskIndex task, HostIndex host) {
  // Some programs refuse to replace an existing file, so a retry creates no file to carry hints.
  const bool tag = tries_[task.value].failures == 0;
  std::vector<std::pair<std::string, predict::HintMap>> outputs;
  for (const PathIndex output : workflow_.at(task).outputs) {
    const auto hints = record_.hints.find(output);
    // Those who read a stream find it from the start.
    const bool own =
        hints != record_.hints.end() &&
        ((tag && !record_.inheriting.contains(output)) || hints->second.contains("stream"));
    outputs.emplace_back(predict::NameOf(workflow_.at(output)),
                         own ? hints->second : predict::HintMap());
  }
  if (outputs.empty()) return OkStatus();
  MOSA_RETURN_IF_ERROR(mounts_[host.value].PrepareOutputs(outputs));
  return streams_.Begin(task, mounts_[host.value]);
}

TaskCommand Engine::CommandOf(TaskIndex task, HostIndex host, const Attempt& attempt) {
  TaskCommand command;
  command.host = &at(host);
  command.argv = workflow_.at(task).command;
  command.environment["MOSA_CORES"] =
      fmt::format("{}", std::min(workflow_.at(task).needs.cores, at(host).slots));
  command.environment["MOSA_TASK"] = reports_.NameOf(workflow_.at(task).id);
  command.output_path = attempt.output_path;
  command.error_path = attempt.error_path;
  return command;
}

// Tells the scheduler when each host's next task should end, from the tasks' expected times and
// from the times of their stage so far.
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

HostMount* Engine::LivingMount() {
  for (size_t i = 0; i < mounts_.size(); ++i) {
    if (!lost_[i]) return &mounts_[i];
  }
  return nullptr;
}

void Engine::TellStore() {
  if (HostMount* const mount = LivingMount()) reports_.Tell(*mount, Now());
}

Engine::Found Engine::OnLivingHost(const std::function<Found(HostMount&)>& ask) {
  Found answer = UnavailableError("no host is left to run tasks");
  for (uint32_t i = 0; i < lost_.size(); ++i) {
    if (lost_[i]) continue;
    answer = ask(mounts_[i]);
    const bool all = answer.ok() && std::all_of(answer->begin(), answer->end(),
                                                [](const auto& one) { return one.ok(); });
    if (all) return answer;
    LoseHostIfSilent(HostIndex{i});
    if (!lost_[i]) return answer;
  }
  return answer;
}

Duration Engine::WaitAtMost() const {
  const auto change = scheduler_.NextChange();
  if (!change) return kWaitMax;
  return std::clamp(*change - Now(), Milliseconds(0), kWaitMax);
}

// A long record is written less often, so that writing takes at most a twentieth of the time.
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

Status Engine::End() {
  processes_.EndAll(kGrace);
  record_.read_ahead_bytes = readers_.files().read_bytes();
  record_.read_ahead_used_bytes = readers_.files().used_bytes();
  const bool done = execution_.count(TaskState::kDone) == workflow_.tasks.size();
  const bool interrupted = cluster::InterruptGuard::Interrupted() != 0;
  record_.outcome = interrupted && !done ? "interrupted" : done ? "done" : "failed";
  progress_.Show(Now(), running_.size(), /*end=*/true);
  KeepRecord(true);
  if (HostMount* const mount = LivingMount()) {
    if (const Status told = reports_.Finish(*mount, done); !told.ok())
      fmt::print(stderr, "mosa run: {}\n", MessageOf(told));
  }
  if (done) return first_failure_;
  const std::string on =
      fmt::format("use '--resume --record {}' to continue", options_.record_path);
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
    if (at(found->second.host).exec.empty()) attempt.processor = ended.processor;
    attempt.failure = "ended because the run was interrupted";
    running_.erase(found);
  }
}

}  // namespace mosa::cli
