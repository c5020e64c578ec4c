#include "predictor/explore/lower_bound.h"

#include <algorithm>
#include <vector>

#include "common/model/ids.h"
#include "predictor/model/cost.h"
#include "predictor/workflow/streams.h"

namespace mosa::predict {
namespace {

// Each work of a task is rounded twice.
constexpr double kRoundingNs = 2;
// Covers rounding of sums in double precision.
constexpr double kRoundingShare = 1e-9;

// What one task needs at least.
struct TaskNeed {
  double elapsed_ns = 0;
  double application_ns = 0;
  double store_ns = 0;
};

class Needs {
 public:
  Needs(const Workflow& workflow, const Platform& platform, bool storage_apart)
      : workflow_(workflow), platform_(platform), apart_(storage_apart) {}

  TaskNeed Of(const Task& task) const {
    TaskNeed need;
    const std::vector<TaskOperation> steps = StreamSteps(workflow_, task);
    need.application_ns = Processor(platform_.runner.dispatch.ns_per_call) +
                          Processor(platform_.runner.launch.ns_per_call);
    if (!steps.empty() || !task.operations.empty())
      need.application_ns += Computing(steps.empty() ? task.operations : steps);
    else
      need.application_ns += Processor(static_cast<double>(task.expected.value_or(Duration()).ns));
    need.elapsed_ns = need.application_ns + static_cast<double>(platform_.runner.notice_ns);
    if (!steps.empty() || !task.operations.empty()) return need;
    for (const PathIndex input : task.inputs) AddFile(need, workflow_.at(input), true);
    for (const PathIndex output : task.outputs) AddFile(need, workflow_.at(output), false);
    return need;
  }
  // Whether the file's bytes cross a link when they are written and when they are first read.
  bool CrossesLinks(const WorkflowFile& file) const {
    return apart_ && IsOnTheStore(file) && BytesOf(file) > kInlineBytesMax;
  }
  bool MayBeCached(const WorkflowFile& file) const {
    return BytesOf(file) <= platform_.host.page_cache_bytes;
  }
  static uint64_t BytesOf(const WorkflowFile& file) { return file.size_bytes.value_or(0); }
  // Whether one of these tasks reads or writes the whole file.
  bool IsWhole(const std::vector<TaskIndex>& tasks) const {
    return std::any_of(tasks.begin(), tasks.end(),
                       [this](TaskIndex task) { return workflow_.at(task).operations.empty(); });
  }
  // Time on one core.
  double Processor(double ns) const {
    constexpr auto kMost = static_cast<double>(kServiceMax.ns);
    return std::max(0.0, std::min(std::min(ns, kMost) / platform_.host.speed, kMost) - kRoundingNs);
  }

 private:
  double Computing(const std::vector<TaskOperation>& operations) const {
    double ns = 0;
    for (const TaskOperation& each : operations)
      ns += Processor(static_cast<double>(each.before.ns));
    return ns;
  }
  void AddFile(TaskNeed& need, const WorkflowFile& file, bool read) const {
    if (!IsOnTheStore(file)) return;
    const uint64_t bytes = BytesOf(file);
    const ClientPlatform& client = platform_.client;
    double processor = (read && bytes == 0 ? 1 : 2) * Processor(client.call.ns_per_call);
    if (bytes > 0) processor += read ? CheapestRead(file, bytes) : CheapestWrite(bytes);
    double elapsed = processor;
    if (CrossesLinks(file) && !(read && MayBeCached(file))) {
      const uint64_t rate =
          read ? platform_.host.in_bytes_per_second : platform_.host.out_bytes_per_second;
      const uint64_t limited = bytes - std::min(bytes, platform_.network.burst_bytes);
      elapsed = std::max(elapsed, OnLink(static_cast<double>(limited), static_cast<double>(rate)));
    }
    need.store_ns += processor;
    need.elapsed_ns += elapsed;
  }
  double CheapestRead(const WorkflowFile& file, uint64_t bytes) const {
    const ClientPlatform& client = platform_.client;
    double least = ThroughFuse(client.fuse_read, bytes, client.fuse_read_bytes);
    if (client.passthrough && !apart_)
      least = std::min(least, Whole(client.passthrough_read, bytes));
    if (MayBeCached(file)) least = std::min(least, Whole(client.page_cache_read, bytes));
    return least;
  }
  double CheapestWrite(uint64_t bytes) const {
    const ClientPlatform& client = platform_.client;
    const double least = ThroughFuse(client.fuse_write, bytes, client.fuse_write_bytes);
    return client.passthrough && !apart_ ? std::min(least, Whole(client.passthrough_write, bytes))
                                         : least;
  }
  double Whole(const Cost& cost, uint64_t bytes) const {
    return Processor(cost.ns_per_call + static_cast<double>(bytes) * cost.ns_per_byte);
  }
  // Small files are read in one request.
  double ThroughFuse(const Cost& cost, uint64_t bytes, uint64_t step) const {
    if (bytes <= kInlineBytesMax) return std::min(Whole(cost, bytes), Steps(cost, bytes, step));
    return Steps(cost, bytes, step);
  }
  double Steps(const Cost& cost, uint64_t bytes, uint64_t step) const {
    const auto full = static_cast<double>(bytes / step);
    double sum = full * Whole(cost, step);
    if (bytes % step != 0) sum += Whole(cost, bytes % step);
    return sum;
  }
  static double OnLink(double bytes, double bytes_per_second) {
    return std::max(
        0.0, bytes * 1e9 / bytes_per_second - bytes / static_cast<double>(kChunkBytesMin) - 1);
  }

  const Workflow& workflow_;
  const Platform& platform_;
  const bool apart_;
};

}  // namespace

LeastWork LeastWorkOf(const Workflow& workflow, const Platform& platform, bool storage_apart) {
  const Needs needs(workflow, platform, storage_apart);
  LeastWork work;
  std::vector<double> begin_ns(workflow.tasks.size(), 0), end_ns(workflow.tasks.size(), 0);
  for (const TaskIndex index : workflow.order) {
    const Task& task = workflow.at(index);
    const TaskNeed need = needs.Of(task);
    double& begin = begin_ns[index.value];
    double& end = end_ns[index.value];
    for (const TaskIndex before : task.predecessors) {
      const bool streams = std::ranges::binary_search(task.stream_writers, before);
      begin = std::max(begin, (streams ? begin_ns : end_ns)[before.value]);
    }
    end = begin + need.elapsed_ns;
    work.path_ns = std::max(work.path_ns, end_ns[index.value]);
    work.slots_ns += need.elapsed_ns;
    work.application_ns += need.application_ns;
    work.store_ns += need.store_ns;
    work.runner_ns += needs.Processor(platform.runner.dispatch.ns_per_call);
    for (const PathIndex output : task.outputs)
      if (IsOnTheStore(workflow.at(output)))
        work.runner_ns += needs.Processor(platform.runner.look.ns_per_call);
  }
  for (const WorkflowFile& file : workflow.files) {
    if (!needs.CrossesLinks(file)) continue;
    const auto bytes = static_cast<double>(Needs::BytesOf(file));
    if (file.producer && needs.IsWhole({*file.producer})) work.written_bytes += bytes;
    if (needs.IsWhole(file.consumers) && !needs.MayBeCached(file)) work.read_bytes += bytes;
    const double pieces = bytes / static_cast<double>(kChunkBytesMin) + 1;
    work.transfers += 2 * (pieces + (file.is_stream ? kStreamStepsMax : 0));
  }
  return work;
}

Duration TimeAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration) {
  const double hosts = configuration.hosts;
  const double cores =
      platform.shared_cores > 0 ? platform.shared_cores : hosts * platform.host.cores;
  double ns = std::max({work.path_ns, work.slots_ns / (hosts * SlotsOf(platform, configuration)),
                        (work.application_ns + work.store_ns) / cores, work.runner_ns});
  if (configuration.storage_hosts > 0) {
    const auto out = static_cast<double>(platform.host.out_bytes_per_second) / 1e9;
    const auto in = static_cast<double>(platform.host.in_bytes_per_second) / 1e9;
    const double nodes = configuration.storage_hosts;
    // In a given time a link carries at most a burst plus what its rate allows.
    const auto burst = static_cast<double>(platform.network.burst_bytes);
    const auto on = [burst](double bytes, double links, double rate) {
      return (bytes / links - burst) / rate;
    };
    const double links =
        std::max({on(work.written_bytes, hosts, out), on(work.written_bytes, nodes, in),
                  on(work.read_bytes, nodes, out), on(work.read_bytes, hosts, in)});
    ns = std::max(ns, links - work.transfers);
  }
  return Nanoseconds(static_cast<int64_t>(std::max(0.0, ns * (1 - kRoundingShare) - 1)));
}

double EnergyAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration, const PowerLevel& level, Duration time) {
  HostUse use;
  use.application_core_s = work.application_ns / 1e9 * (1 - kRoundingShare);
  use.store_core_s = work.store_ns / 1e9 * (1 - kRoundingShare);
  return EnergyOf(level, platform.host.cores, HostsInAll(configuration), time, use);
}

}  // namespace mosa::predict
