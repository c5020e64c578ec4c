#include "predictor/plan/estimate.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

constexpr double kNanosecond = 1e-9;
// With more hosts, no other host's link has much to do with one host's striped file.
constexpr size_t kSendersMax = 128;

double SecondsOfCall(const Cost& cost) { return cost.ns_per_call * kNanosecond; }

// What a task moves of a file in all, by its operations if they are known.
double MovedBy(const Task& task, PathIndex file, uint64_t size_bytes, bool writes) {
  if (task.operations.empty()) return static_cast<double>(size_bytes);
  const auto kind = writes ? TaskOperation::Kind::kWrite : TaskOperation::Kind::kRead;
  double bytes = 0;
  for (const TaskOperation& each : task.operations)
    if (each.kind == kind && each.file == file) bytes += static_cast<double>(each.size_bytes);
  // An output for which no write is known is written as a whole.
  const bool is_whole = writes && bytes == 0;
  return is_whole ? static_cast<double>(size_bytes)
                  : std::min(bytes, static_cast<double>(size_bytes));
}

}  // namespace

RunEstimator::RunEstimator(const Workflow& workflow, const Platform& platform,
                           const Configuration& configuration)
    : workflow_(workflow),
      shared_cores_(platform.shared_cores),
      storage_apart_(configuration.storage_hosts > 0),
      dispatch_s_(SecondsOfCall(platform.runner.dispatch) / platform.host.speed) {
  for (uint32_t i = 0; i < configuration.hosts; ++i) {
    const HostPlatform host = HostOf(platform, configuration, i);
    hosts_.push_back({1.0 / static_cast<double>(host.in_bytes_per_second),
                      1.0 / static_cast<double>(host.out_bytes_per_second), host.speed,
                      host.page_cache_bytes, MemoryOf(configuration, i),
                      SlotsOf(platform, configuration, i), host.cores});
  }
  double in = 0, out = 0;
  for (uint32_t i = 0; i < configuration.storage_hosts; ++i) {
    const HostPlatform host = HostOf(platform, configuration, configuration.hosts + i);
    in += static_cast<double>(host.in_bytes_per_second);
    out += static_cast<double>(host.out_bytes_per_second);
  }
  if (storage_apart_) storage_s_per_byte_in_ = 1 / in;
  if (storage_apart_) storage_s_per_byte_out_ = 1 / out;
  const ClientPlatform& client = platform.client;
  read_s_per_byte_ =
      kNanosecond * (client.passthrough ? client.passthrough_read : client.local_read).ns_per_byte;
  write_s_per_byte_ =
      kNanosecond *
      (client.passthrough ? client.passthrough_write : client.local_write).ns_per_byte;
  const double launch_s = SecondsOfCall(platform.runner.launch) +
                          static_cast<double>(platform.runner.notice_ns) * kNanosecond;
  // Open and close; a file that is written is made and told to the manager as well.
  const double read_s = 2 * SecondsOfCall(client.call) + SecondsOfCall(platform.manager.open);
  const double write_s =
      read_s + SecondsOfCall(platform.manager.make) + SecondsOfCall(platform.manager.commit);
  for (const Task& task : workflow.tasks) {
    Needs needs;
    needs.calls_s = launch_s;
    for (const TaskOperation& each : task.operations) needs.computing_s += SecondsOf(each.before);
    if (task.operations.empty()) needs.computing_s = SecondsOf(task.expected.value_or(Duration()));
    for (const bool writes : {false, true}) {
      for (const PathIndex path : writes ? task.outputs : task.inputs) {
        const WorkflowFile& file = workflow.at(path);
        if (!IsOnTheStore(file)) continue;
        const double bytes = MovedBy(task, path, file.size_bytes.value_or(0), writes);
        (writes ? needs.writes : needs.reads).push_back({path, bytes});
        needs.calls_s += writes ? write_s : read_s;
      }
    }
    needs_.push_back(std::move(needs));
  }
}

// One run, event by event.
class EstimatedRun {
 public:
  EstimatedRun(const RunEstimator& estimator, const std::vector<HostIndex>& hosts,
               const std::vector<FilePlace>& places)
      : its_(estimator),
        workflow_(estimator.workflow_),
        hosts_of_(hosts),
        places_(places),
        in_free_(estimator.hosts_.size()),
        out_free_(estimator.hosts_.size()),
        free_slots_(estimator.hosts_.size()),
        free_memory_(estimator.hosts_.size()),
        waiting_(estimator.hosts_.size()),
        cores_(estimator.shared_cores_ > 0 ? 1 : estimator.hosts_.size()),
        missing_(workflow_.tasks.size()),
        seen_(workflow_.files.size() * estimator.hosts_.size()) {
    for (size_t i = 0; i < its_.hosts_.size(); ++i) {
      free_slots_[i] = its_.hosts_[i].slots;
      free_memory_[i] = its_.hosts_[i].memory_bytes;
    }
    for (size_t i = 0; i < cores_.size(); ++i)
      cores_[i].resize(its_.shared_cores_ > 0 ? its_.shared_cores_ : its_.hosts_[i].cores);
    estimate_.starts.resize(workflow_.tasks.size());
    estimate_.ends.resize(workflow_.tasks.size());
  }

  RunEstimate Run() {
    // The first host has written what no task writes, as in a simulation.
    for (const PathIndex input : OutsideInputs(workflow_)) See(input, HostIndex{0});
    for (uint32_t i = 0; i < workflow_.tasks.size(); ++i) {
      missing_[i] = static_cast<uint32_t>(workflow_.tasks[i].predecessors.size());
      if (missing_[i] == 0) MakeReady(TaskIndex{i});
    }
    for (uint32_t i = 0; i < its_.hosts_.size(); ++i) StartOn(HostIndex{i});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (event.is_end)
        End(event.task);
      else
        Write(event.task);
    }
    return std::move(estimate_);
  }

 private:
  struct Event {
    double at = 0;
    TaskIndex task;
    bool is_end = false;  // Else its outputs come now.
    bool operator>(const Event& other) const {
      return std::tuple(at, task, is_end) > std::tuple(other.at, other.task, other.is_end);
    }
  };

  uint32_t SlotsOf(TaskIndex task) const {
    const uint32_t all = its_.hosts_[hosts_of_[task.value].value].slots;
    return std::min(workflow_.at(task).needs.cores, all);
  }

  // What it takes of its host's memory: all of a host that has less.
  uint64_t MemoryOf(TaskIndex task) const {
    return std::min(workflow_.at(task).needs.memory_bytes,
                    its_.hosts_[hosts_of_[task.value].value].memory_bytes);
  }

  void MakeReady(TaskIndex task) {
    waiting_[hosts_of_[task.value].value].insert(
        {UINT32_MAX - workflow_.at(task).levels_to_end, task});
  }

  // Tasks with the longest path ahead of them first, as the Scheduler has it.
  void StartOn(HostIndex host) {
    auto& waiting = waiting_[host.value];
    while (!waiting.empty()) {
      const TaskIndex task = waiting.begin()->second;
      if (SlotsOf(task) > free_slots_[host.value] || MemoryOf(task) > free_memory_[host.value])
        return;
      free_slots_[host.value] -= SlotsOf(task);
      free_memory_[host.value] -= MemoryOf(task);
      waiting.erase(waiting.begin());
      Start(task, host);
    }
  }

  void Start(TaskIndex task, HostIndex host) {
    const RunEstimator::Needs& needs = its_.needs_[task.value];
    estimate_.starts[task.value] = now_;
    runner_free_ = std::max(runner_free_, now_) + its_.dispatch_s_;
    const double begin = runner_free_ + needs.calls_s / its_.hosts_[host.value].speed;
    double has_read = begin;
    double local_s = 0;
    for (const RunEstimator::Access& each : needs.reads) {
      local_s += each.bytes * its_.read_s_per_byte_;
      has_read = std::max(has_read, Fetch(host, each, begin));
    }
    const double computed = Compute(task, host, has_read + local_s, needs.computing_s);
    events_.push({computed, task, false});
  }

  // The time at which the file's bytes are there.
  double Fetch(HostIndex host, const RunEstimator::Access& read, double from) {
    if (See(read.file, host)) return from;
    const FilePlace place = PlaceOf(read.file);
    return Cross(host, place, read.bytes * (1 - ShareHere(place, host, place.copies)), from,
                 /*comes=*/true);
  }

  // The share of a file's bytes of which this host's node has one of so many copies.
  double ShareHere(const FilePlace& place, HostIndex host, uint32_t copies) const {
    if (its_.storage_apart_) return 0;
    if (place.kind != FilePlace::Kind::kStriped) return place.host == host ? 1 : 0;
    return std::min(1.0, copies / static_cast<double>(its_.hosts_.size()));
  }

  // Bytes cross the host's link, and those of the hosts that have them or get them. Returns when
  // the last has.
  double Cross(HostIndex host, const FilePlace& place, double bytes, double from, bool comes) {
    using Host = RunEstimator::Host;
    if (bytes <= 0) return from;
    auto& here = comes ? in_free_ : out_free_;
    auto& there = comes ? out_free_ : in_free_;
    const auto each_here = comes ? &Host::seconds_per_byte_in : &Host::seconds_per_byte_out;
    const auto each_there = comes ? &Host::seconds_per_byte_out : &Host::seconds_per_byte_in;
    const auto cross = [&](HostIndex other, double part) {
      return Take(there[other.value], from, part * its_.hosts_[other.value].*each_there);
    };
    double end = Take(here[host.value], from, bytes * its_.hosts_[host.value].*each_here);
    if (its_.storage_apart_) {
      const double each = comes ? its_.storage_s_per_byte_out_ : its_.storage_s_per_byte_in_;
      return std::max(end, Take(comes ? storage_out_free_ : storage_in_free_, from, bytes * each));
    }
    if (place.kind != FilePlace::Kind::kStriped) return std::max(end, cross(place.host, bytes));
    if (its_.hosts_.size() > kSendersMax) return end;
    const double part = bytes / static_cast<double>(its_.hosts_.size() - 1);
    for (uint32_t i = 0; i < its_.hosts_.size(); ++i)
      if (i != host.value) end = std::max(end, cross(HostIndex{i}, part));
    return end;
  }

  double Compute(TaskIndex task, HostIndex host, double from, double seconds) {
    auto& cores = cores_[its_.shared_cores_ > 0 ? 0 : host.value];
    double end = from;
    const auto count = std::min<size_t>(workflow_.at(task).needs.cores, cores.size());
    for (size_t i = 0; i < count; ++i) {
      double& core = *std::ranges::min_element(cores);
      core = std::max(core, from) + seconds / its_.hosts_[host.value].speed;
      end = std::max(end, core);
    }
    return end;
  }

  void Write(TaskIndex task) {
    const HostIndex host = hosts_of_[task.value];
    double end = now_;
    double local_s = 0;
    for (const RunEstimator::Access& each : its_.needs_[task.value].writes) {
      local_s += each.bytes * its_.write_s_per_byte_;
      end = std::max(end, Send(host, each));
    }
    events_.push({end + local_s, task, true});
  }

  double Send(HostIndex host, const RunEstimator::Access& write) {
    See(write.file, host);
    const FilePlace place = PlaceOf(write.file);
    return Cross(host, place, write.bytes * (1 - ShareHere(place, host, 1)), now_,
                 /*comes=*/false);
  }

  static double Take(double& free, double from, double seconds) {
    free = std::max(free, from) + seconds;
    return free;
  }

  // A file that no task writes comes from the first host.
  FilePlace PlaceOf(PathIndex file) const {
    FilePlace place = places_[file.value];
    if (place.kind != FilePlace::Kind::kOnWriter) return place;
    const auto& writer = workflow_.at(file).producer;
    return {FilePlace::Kind::kOnHost, writer ? hosts_of_[writer->value] : HostIndex{0},
            place.copies};
  }

  // Whether the host's page cache has the file, which it has from now on.
  bool See(PathIndex file, HostIndex host) {
    if (workflow_.at(file).size_bytes.value_or(0) > its_.hosts_[host.value].page_cache_bytes)
      return false;
    auto seen = seen_[file.value * its_.hosts_.size() + host.value];
    const bool before = seen;
    seen = true;
    return before;
  }

  void End(TaskIndex task) {
    const HostIndex host = hosts_of_[task.value];
    estimate_.ends[task.value] = now_;
    estimate_.seconds = std::max(estimate_.seconds, now_);
    free_slots_[host.value] += SlotsOf(task);
    free_memory_[host.value] += MemoryOf(task);
    std::vector<HostIndex> changed = {host};
    for (const TaskIndex next : workflow_.at(task).successors) {
      if (--missing_[next.value] > 0) continue;
      MakeReady(next);
      changed.push_back(hosts_of_[next.value]);
    }
    for (const HostIndex each : changed) StartOn(each);
  }

  const RunEstimator& its_;
  const Workflow& workflow_;
  const std::vector<HostIndex>& hosts_of_;
  const std::vector<FilePlace>& places_;
  double now_ = 0;
  double runner_free_ = 0;
  std::vector<double> in_free_, out_free_;  // By host: when the link's direction is idle.
  double storage_in_free_ = 0, storage_out_free_ = 0;
  std::vector<uint32_t> free_slots_;
  std::vector<uint64_t> free_memory_;
  std::vector<std::set<std::pair<uint32_t, TaskIndex>>> waiting_;
  std::vector<std::vector<double>> cores_;  // When each core is idle; of each host, or of all.
  std::vector<uint32_t> missing_;
  std::vector<bool> seen_;  // By file and host: the host has its pages.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  RunEstimate estimate_;
};

RunEstimate RunEstimator::Of(const std::vector<HostIndex>& hosts,
                             const std::vector<FilePlace>& places) const {
  return EstimatedRun(*this, hosts, places).Run();
}

}  // namespace mosa::predict
