#include "predictor/run/simulated_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/model/task_names.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/streams.h"

namespace mosa::predict {
namespace {

std::vector<SchedulerHost> HostsOf(const Platform& platform, const Configuration& configuration) {
  std::vector<SchedulerHost> hosts(configuration.hosts);
  for (uint32_t i = 0; i < hosts.size(); ++i) {
    const HostPlatform host = HostOf(platform, configuration, i);
    hosts[i].slots = SlotsOf(platform, configuration, i);
    hosts[i].memory_bytes = MemoryOf(configuration, i);
    hosts[i].link_bytes_per_second = std::min(host.in_bytes_per_second, host.out_bytes_per_second);
  }
  return hosts;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

SimulatedRunner::SimulatedRunner(des::EventLoop& loop, const Workflow& workflow,
                                 const SyntheticPart* part, const Platform& platform,
                                 const Configuration& configuration, Machines& machines,
                                 SimulatedManager& manager,
                                 std::vector<std::unique_ptr<SimulatedClient>>& clients,
                                 Prediction& prediction)
    : loop_(loop),
      workflow_(workflow),
      part_(part),
      platform_(platform),
      configuration_(configuration),
      machines_(machines),
      manager_(manager),
      clients_(clients),
      prediction_(prediction),
      execution_(workflow, {},
                 configuration.system == System::kWass && part == nullptr && HasStreams(workflow)),
      scheduler_(configuration.system, HostsOf(platform, configuration)),
      read_ahead_(workflow, configuration.hosts),
      being_read_(configuration.hosts),
      running_on_(configuration.hosts),
      wake_(loop) {
  prediction_.tasks.resize(workflow.tasks.size());
  const bool is_hinted = configuration.system == System::kWass;
  PatternOptions options;
  options.hosts = configuration.hosts;
  if (is_hinted)
    for (FileHints& plan : PlanHints(workflow, options))
      if (!plan.hints.empty()) hints_.emplace(plan.file, std::move(plan.hints));
  for (uint32_t i = 0; i < workflow.files.size(); ++i)
    if (const std::string& node = workflow.files[i].placed_on; !node.empty())
      hints_[PathIndex{i}]["placement"] = "node:" + node;
  if (!is_hinted) return;
  // Files with a lifetime go when the tasks that read them have succeeded.
  const auto goes = [](const auto& hints) {
    const auto lifetime = hints.second.find("lifetime");
    return lifetime != hints.second.end() && lifetime->second != "keep";
  };
  if (std::ranges::none_of(hints_, goes)) return;
  const std::string run = OwnRunName(0);
  manager_.BeginRun(run);
  for (const Task& task : workflow.tasks) names_in_store_.push_back(run + "/" + task.id);
}

const std::string& SimulatedRunner::NameOf(TaskIndex task) const {
  return names_in_store_.empty() ? workflow_.at(task).id : names_in_store_[task.value];
}

const HintMap& SimulatedRunner::HintsOf(PathIndex file) const {
  static const HintMap kNone;
  const auto hints = hints_.find(file);
  // Those who read a stream find it from the start.
  const bool own =
      hints != hints_.end() && (!inheriting_.contains(file) || hints->second.contains("stream"));
  return own ? hints->second : kNone;
}

des::Activity<void> SimulatedRunner::StageIn() {
  static const std::string kTask = "stage in";
  SimulatedClient& client = *clients_.front();
  begun_ = loop_.now();
  for (const PathIndex input : OutsideInputs(workflow_)) {
    const WorkflowFile& file = workflow_.at(input);
    if (!IsOnTheStore(file)) continue;
    auto done = co_await client.PrepareOutput(file.path, file.hints);
    if (done.ok()) done = co_await client.WriteFile(file.path, *file.size_bytes, kTask);
    if (done.ok()) continue;
    Fail(fmt::format("staging '{}' in", file.path), HostIndex{0}, done.failure(), kTask);
    break;
  }
}

des::Activity<void> SimulatedRunner::Run() {
  if (prediction_.failure) {
    prediction_.turnaround = prediction_.failed_at;
    co_return;
  }
  if (part_ != nullptr && HasRegions(*part_))
    co_await RunPinned();
  else
    co_await RunScheduled();
  prediction_.turnaround = Elapsed();
}

des::Activity<void> SimulatedRunner::RunScheduled() {
  co_await HintDirectories();
  if (workflow_.reads_ahead) co_await LookAtInputs();
  begun_ = loop_.now();  // The run begins with the first task.
  if (prediction_.failure) co_return;
  for (;;) {
    // A task that has started may have made others ready, which read its streams.
    do {
      co_await AddReady();
      while (!prediction_.failure) {
        const std::optional<Assignment> assignment = scheduler_.Next(loop_.now());
        if (!assignment) break;
        co_await Launch(*assignment);
      }
    } while (execution_.has_ready() && !prediction_.failure);
    StartReadingAhead();
    const bool gives_up = prediction_.failure.has_value();
    if (running_ == 0 && ended_.empty() && (gives_up || scheduler_.waiting() == 0)) break;
    if (ended_.empty()) {
      // Do not schedule a wake-up when nothing more starts: a change that has passed would be due
      // now, forever.
      if (const auto change = scheduler_.NextChange(); change && !gives_up)
        loop_.At(std::max(*change, loop_.now()), [this] { wake_.Give(); });
      co_await wake_.Wait();
    }
    const std::vector<Ended> ended = std::exchange(ended_, {});
    for (const Ended& each : ended) co_await Handle(each);
  }
}

// Makes all directories before the first task. If all outputs in a directory want the same hints,
// the directory carries them.
des::Activity<void> SimulatedRunner::HintDirectories() {
  struct Wanted {
    std::vector<PathIndex> files;
    HintMap hints;
    bool same = true;
  };
  std::map<std::string, Wanted> directories;
  for (uint32_t i = 0; i < workflow_.files.size(); ++i) {
    const std::string parent = ParentOf(workflow_.files[i].path);
    if (!workflow_.files[i].producer || parent.empty()) continue;
    const HintMap& hints = HintsOf(PathIndex{i});
    Wanted& wanted = directories[parent];
    if (wanted.files.empty()) wanted.hints = hints;
    wanted.same = wanted.same && wanted.hints == hints;
    wanted.files.push_back(PathIndex{i});
  }
  for (const auto& [path, wanted] : directories) {
    HintMap hints = wanted.same ? wanted.hints : HintMap();
    hints.erase("stream");  // Other files of the directory are none.
    const auto made = co_await clients_.front()->MakeDirectory(path, hints);
    if (!made.ok()) Fail(fmt::format("making '{}'", path), HostIndex{0}, made.failure());
    if (!hints.empty()) inheriting_.insert(wanted.files.begin(), wanted.files.end());
  }
}

// Files that no task writes are there from the beginning.
des::Activity<void> SimulatedRunner::LookAtInputs() {
  for (const PathIndex input : OutsideInputs(workflow_)) {
    if (!IsOnTheStore(workflow_.at(input))) continue;
    const auto look = co_await clients_.front()->Look(workflow_.at(input).path);
    if (look.ok()) NoteFile(input, *look);
  }
}

void SimulatedRunner::NoteFile(PathIndex file, const FileLook& look) {
  files_[file] = look;
  std::map<HostIndex, uint64_t> held;
  for (const auto& [machine, bytes] : look.bytes_by_machine)
    if (machine.value < configuration_.hosts) held[HostIndex{machine.value}] += bytes;
  read_ahead_.AddFile(file, look.size_bytes, held);
}

void SimulatedRunner::StartReadingAhead() {
  if (prediction_.failure) return;
  for (uint32_t i = 0; i < configuration_.hosts; ++i)
    if (const auto file = read_ahead_.Next(HostIndex{i}))
      des::Spawn(loop_, ReadOneAhead(HostIndex{i}, *file));
}

des::Activity<void> SimulatedRunner::ReadOneAhead(HostIndex host, PathIndex file) {
  static const std::string kTask(kReadAheadTask);
  const std::string& path = workflow_.at(file).path;
  const auto reading =
      being_read_[host.value].emplace(path, std::make_unique<des::Signal>(loop_)).first;
  co_await machines_.Work(at(host).machine(), platform_.runner.launch.Of(0), WorkOf::kApplication);
  const auto read = co_await at(host).ReadFile(path, kTask);
  reading->second->Give();
  being_read_[host.value].erase(reading);
  read_ahead_.End(host, read.ok());
  wake_.Give();
}

des::Activity<void> SimulatedRunner::AddReady() {
  const std::vector<TaskIndex> ready = execution_.TakeReady();
  const Time asked_at = loop_.now();
  for (const TaskIndex task : ready) {
    std::optional<ReadyTask> look = co_await Look(task);
    if (!look) continue;
    ExpectEnds(*look, asked_at);
    scheduler_.AddReady(*std::move(look), loop_.now());
  }
}

// Finds where the task's inputs are.
des::Activity<std::optional<ReadyTask>> SimulatedRunner::Look(TaskIndex task) {
  ReadyTask ready;
  ready.task = task;
  ready.levels_to_end = workflow_.at(task).levels_to_end;
  ready.planned = workflow_.at(task).planned;
  ready.needs = workflow_.at(task).needs;
  std::map<HostIndex, uint64_t> held;
  for (const PathIndex input : workflow_.at(task).inputs) {
    const WorkflowFile& file = workflow_.at(input);
    if (!IsOnTheStore(file) || IsBeingWritten(input)) continue;
    if (!files_.contains(input)) {
      const auto look = co_await clients_.front()->Look(file.path);
      if (!look.ok()) {
        Fail(Describe(workflow_.at(task)), HostIndex{0}, look.failure());
        co_return std::nullopt;
      }
      NoteFile(input, *look);
    }
    const FileLook& facts = files_.at(input);
    ready.input_bytes += facts.size_bytes;
    for (const auto& [machine, bytes] : facts.bytes_by_machine)
      if (machine.value < configuration_.hosts) held[HostIndex{machine.value}] += bytes;
  }
  for (const auto& [host, bytes] : held) ready.held.push_back({host, bytes});
  co_return ready;
}

des::Activity<void> SimulatedRunner::Launch(Assignment assignment) {
  const TaskIndex task = assignment.task;
  const HostIndex host = assignment.host;
  execution_.Start(task);
  read_ahead_.Start(task, host);
  PredictedTask& predicted = at(task);
  predicted.ran = true;
  predicted.host = host;
  predicted.start = Elapsed();
  predicted.reason = assignment.reason;
  co_await machines_.Work(at(HostIndex{0}).machine(), platform_.runner.dispatch.Of(0),
                          WorkOf::kApplication);
  for (const PathIndex output : workflow_.at(task).outputs) {
    const WorkflowFile& file = workflow_.at(output);
    if (!IsOnTheStore(file)) continue;
    const auto prepared = co_await at(host).PrepareOutput(file.path, HintsOf(output));
    if (!prepared.ok()) Fail(Describe(workflow_.at(task)), host, prepared.failure());
  }
  co_await HoldStreams(task, host);
  ++running_;
  running_on_[host.value].push_back(task);
  des::Spawn(loop_, RunTask(task, host));
}

des::Activity<void> SimulatedRunner::RunTask(TaskIndex task, HostIndex host) {
  PredictedTask& predicted = at(task);
  const MachineIndex machine = at(host).machine();
  Time last = loop_.now();
  const auto lap = [this, &last] { return loop_.now() - std::exchange(last, loop_.now()); };
  co_await machines_.Work(machine, platform_.runner.launch.Of(0), WorkOf::kApplication);
  predicted.launching = lap();
  const std::vector<TaskOperation> steps = execution_.uses_streams()
                                               ? StreamSteps(workflow_, workflow_.at(task))
                                               : std::vector<TaskOperation>();
  if (!steps.empty()) {
    co_await PlayOperations(task, host, steps);
  } else if (!workflow_.at(task).operations.empty()) {
    co_await PlayOperations(task, host, workflow_.at(task).operations);
  } else {
    const Time opening = loop_.now();
    const bool has_read = co_await ReadInputs(task, host);
    predicted.reads.push_back({opening, loop_.now()});
    predicted.reading = lap();
    if (has_read) {
      const Duration compute = part_ != nullptr ? ComputingOf(*part_, task)
                                                : workflow_.at(task).expected.value_or(Duration());
      const Time begin = loop_.now();
      co_await Compute(loop_, machines_, machine, compute, workflow_.at(task).needs.cores,
                       SlotsOf(platform_, configuration_, host.value));
      predicted.computes.push_back({begin, loop_.now()});
      predicted.computing = lap();
      const Time making = loop_.now();
      co_await WriteOutputs(task, host);
      predicted.writes.push_back({making, loop_.now()});
      predicted.writing = lap();
    }
  }
  predicted.end = Elapsed();
  co_await loop_.Sleep(Nanoseconds(static_cast<int64_t>(platform_.runner.notice_ns)));
  ended_.push_back({task, host});
  wake_.Give();
}

des::Activity<void> SimulatedRunner::PlayOperations(TaskIndex task, HostIndex host,
                                                    const std::vector<TaskOperation>& operations) {
  SimulatedOperations player(loop_, workflow_, task, NameOf(task), operations, machines_, at(host),
                             being_read_[host.value],
                             SlotsOf(platform_, configuration_, host.value), at(task));
  const auto played = co_await player.Play();
  if (!played.ok()) Fail(Describe(workflow_.at(task)), host, played.failure(), NameOf(task));
}

// Returns false if a read fails; the task then computes nothing.
des::Activity<bool> SimulatedRunner::ReadInputs(TaskIndex task, HostIndex host) {
  if (part_ != nullptr) {
    for (const Transfer& transfer : part_->tasks[task.value].reads) {
      std::optional<ByteRange> part;
      if (transfer.is_region) part = ByteRange{transfer.begin, transfer.begin + transfer.bytes};
      const bool has_read = co_await Read(task, host, transfer.path, part);
      if (!has_read) co_return false;
    }
    co_return true;
  }
  for (const PathIndex input : workflow_.at(task).inputs) {
    const WorkflowFile& file = workflow_.at(input);
    if (!IsOnTheStore(file)) continue;
    const bool has_read = co_await Read(task, host, file.path, std::nullopt);
    if (!has_read) co_return false;
  }
  co_return true;
}

des::Activity<bool> SimulatedRunner::Read(TaskIndex task, HostIndex host, const std::string& path,
                                          std::optional<ByteRange> part) {
  PredictedTask& predicted = at(task);
  const auto being_read = being_read_[host.value].find(path);
  if (being_read != being_read_[host.value].end()) co_await being_read->second->Wait();
  const auto read = co_await at(host).ReadFile(path, NameOf(task), part);
  if (!read.ok()) {
    Fail(Describe(workflow_.at(task)), host, read.failure());
    co_return false;
  }
  predicted.read_local += read->local;
  predicted.read_remote += read->remote;
  predicted.read_cached += read->cached;
  co_return true;
}

des::Activity<void> SimulatedRunner::WriteOutputs(TaskIndex task, HostIndex host) {
  if (part_ != nullptr) co_return co_await WriteTransfers(task, host);
  for (const PathIndex output : workflow_.at(task).outputs) {
    const WorkflowFile& file = workflow_.at(output);
    if (!IsOnTheStore(file)) continue;
    const auto written = co_await at(host).WriteFile(file.path, *file.size_bytes, NameOf(task));
    if (!written.ok()) {
      Fail(Describe(workflow_.at(task)), host, written.failure(), NameOf(task));
      co_return;
    }
    at(task).written += *file.size_bytes;
  }
}

des::Activity<void> SimulatedRunner::Handle(Ended ended) {
  --running_;
  std::erase(running_on_[ended.host.value], ended.task);
  scheduler_.Release(ended.host, workflow_.at(ended.task).needs);
  co_await EndStreams(ended.task, ended.host);
  if (prediction_.failure) co_return;
  ended_early_.emplace(ended.task, ended.host);
  for (std::vector<TaskIndex> may_end{ended.task}; !may_end.empty();) {
    const TaskIndex task = may_end.back();
    may_end.pop_back();
    const auto waiting = ended_early_.find(task);
    if (waiting == ended_early_.end() || !execution_.MayFinish(task)) continue;
    const HostIndex host = waiting->second;
    ended_early_.erase(waiting);
    co_await Conclude({task, host});
    if (prediction_.failure) co_return;
    const auto& after = workflow_.at(task).successors;
    may_end.insert(may_end.end(), after.begin(), after.end());
  }
}

des::Activity<void> SimulatedRunner::HoldStreams(TaskIndex task, HostIndex host) {
  if (!execution_.uses_streams()) co_return;
  for (const PathIndex output : workflow_.at(task).outputs) {
    const WorkflowFile& file = workflow_.at(output);
    if (!file.is_stream || !IsOnTheStore(file)) continue;
    auto opened =
        co_await at(host).OpenToWrite(file.path, {}, SimulatedClient::Content::kKept, NameOf(task));
    if (opened.ok())
      held_streams_[task].push_back(*std::move(opened));
    else
      Fail(Describe(workflow_.at(task)), host, opened.failure());
  }
}

des::Activity<void> SimulatedRunner::EndStreams(TaskIndex task, HostIndex host) {
  const auto held = held_streams_.find(task);
  if (held == held_streams_.end()) co_return;
  const auto streams = std::move(held->second);
  held_streams_.erase(held);
  for (const auto& each : streams) {
    const auto closed = co_await at(host).CloseWrite(*each);
    if (!closed.ok()) Fail(Describe(workflow_.at(task)), host, closed.failure());
  }
}

bool SimulatedRunner::IsBeingWritten(PathIndex stream) const {
  const WorkflowFile& file = workflow_.at(stream);
  return execution_.uses_streams() && file.is_stream && file.producer &&
         execution_.state(*file.producer) == TaskState::kRunning;
}

des::Activity<void> SimulatedRunner::Conclude(Ended ended) {
  const bool located = co_await LocateOutputs(ended.task, ended.host);
  if (!located) co_return;
  StageTime& stage = stage_times_[workflow_.at(ended.task).stage];
  stage.total_ns += (at(ended.task).end - at(ended.task).start).ns;
  ++stage.tasks;
  execution_.Finish(ended.task);
  if (!names_in_store_.empty())
    des::Spawn(loop_, manager_.TellSucceeded(at(HostIndex{0}).machine(), NameOf(ended.task)));
}

std::map<MachineIndex, uint64_t> SimulatedRunner::HeldOf(PathIndex file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? std::map<MachineIndex, uint64_t>()
                               : found->second.bytes_by_machine;
}

des::Activity<bool> SimulatedRunner::LocateOutputs(TaskIndex task, HostIndex host) {
  for (const PathIndex output : workflow_.at(task).outputs) {
    if (!IsOnTheStore(workflow_.at(output))) continue;
    const auto look = co_await at(host).Look(workflow_.at(output).path);
    if (!look.ok()) {
      Fail(Describe(workflow_.at(task)), host, look.failure());
      co_return false;
    }
    NoteFile(output, *look);
  }
  co_return true;
}

// Tells the scheduler when slots should become free on the hosts that hold some of the task's
// input. It does not use those of other hosts.
void SimulatedRunner::ExpectEnds(const ReadyTask& ready, Time asked_at) {
  for (const HostBytes& held : ready.held)
    scheduler_.ExpectFree(held.host, NextEndOn(held.host, asked_at));
}

// The estimate uses the tasks' expected runtimes, or what their stage took so far. Returns nothing
// if neither is known for some task on the host, or if one has run for longer.
std::optional<Time> SimulatedRunner::NextEndOn(HostIndex host, Time asked_at) const {
  std::optional<Time> next;
  for (const TaskIndex index : running_on_[host.value]) {
    const Task& task = workflow_.at(index);
    const auto stage = stage_times_.find(task.stage);
    std::optional<Duration> expected = task.expected;
    if (stage != stage_times_.end())
      expected = Duration{stage->second.total_ns / stage->second.tasks};
    const Duration run = asked_at - begun_ - prediction_.tasks[index.value].start;
    if (!expected || *expected < run) return std::nullopt;
    const Time end = asked_at + (*expected - run);
    if (!next || end < *next) next = end;
  }
  return next;
}

// Only the first failure is reported.
void SimulatedRunner::Fail(const std::string& what, HostIndex host, const Failure& why,
                           const std::string& writer) {
  if (prediction_.failure) return;
  prediction_.failed_at = Elapsed();
  if (why.reason == ErrorReason::kNoSpace)
    if (const FullStore* full = at(host).FullOf(writer))
      prediction_.full = PredictedFull{full->nodes, full->path};
  prediction_.failure = fmt::format("{} fails on h{} at {:.3f} s: {}", what, host.value + 1,
                                    static_cast<double>(Elapsed().ns) / 1e9, why.message);
}

}  // namespace mosa::predict
