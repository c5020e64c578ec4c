#include "predictor/compare/suspicion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "predictor/compare/busy.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {
namespace {

// The objects' added time per byte for size 1: 10 ns, as of a disk of 100 MB/s.
constexpr double kObjectNsPerByte = 10;
// Such a share of the bytes counts as all.
constexpr double kHeldShare = 0.95;
// However busy a machine is, some of it is left.
constexpr double kTakenMax = 0.9;

uint32_t MachinesOf(const Configuration& configuration) {
  return configuration.hosts + configuration.storage_hosts + (configuration.manager_apart ? 1 : 0);
}

std::string NameOf(uint32_t machine, const Configuration& configuration,
                   const std::vector<std::string>& hosts) {
  if (machine < hosts.size()) return hosts[machine];
  if (configuration.manager_apart && machine + 1 == MachinesOf(configuration)) return "-";
  return fmt::format("h{}", machine + 1);
}

Duration WaitOf(double size) {
  return Nanoseconds(static_cast<int64_t>(size * static_cast<double>(kWaitUnit.ns)));
}

Cost Times(Cost cost, double times) {
  cost.ns_per_call *= times;
  cost.ns_per_byte *= times;
  return cost;
}

void SlowMounts(double times, Platform& platform) {
  ClientPlatform& client = platform.client;
  for (Cost* cost : {&client.call, &client.fuse_read, &client.fuse_write, &client.send,
                     &client.receive, &client.passthrough_read, &client.passthrough_write,
                     &client.local_read, &client.local_write, &platform.node.make,
                     &platform.node.read, &platform.node.write, &platform.network.loopback})
    *cost = Times(*cost, times);
}

void SlowLinks(double times, Platform& platform, Configuration& configuration) {
  const auto slower = [times](uint64_t rate) {
    return std::max(kLinkBytesPerSecondMin,
                    static_cast<uint64_t>(static_cast<double>(rate) / times));
  };
  platform.host.out_bytes_per_second = slower(platform.host.out_bytes_per_second);
  platform.host.in_bytes_per_second = slower(platform.host.in_bytes_per_second);
  for (auto& [host, change] : configuration.unequal_hosts)
    for (std::optional<uint64_t>* rate :
         {&change.out_bytes_per_second, &change.in_bytes_per_second})
      if (*rate) *rate = slower(**rate);
}

void SlowComputing(const std::string& stage, double times, Workflow& workflow) {
  const auto slower = [times](Duration time) {
    const double ns = static_cast<double>(time.ns) * times;
    return std::min(kServiceMax, Nanoseconds(static_cast<int64_t>(ns)));
  };
  for (Task& task : workflow.tasks) {
    if (!stage.empty() && task.stage != stage) continue;
    if (task.expected) task.expected = slower(*task.expected);
    for (TaskOperation& operation : task.operations) operation.before = slower(operation.before);
  }
}

// Has each task run where and in the order in which it did.
void Follow(const SeenRun& like, Workflow& workflow) {
  constexpr Duration kAlways = Seconds(1'000'000);
  std::vector<size_t> order;
  for (size_t i = 0; i < like.tasks.size(); ++i)
    if (like.tasks[i].ran) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&like](size_t a, size_t b) {
    return like.tasks[a].start < like.tasks[b].start;
  });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    Task& task = workflow.tasks[order[rank]];
    task.planned = {like.tasks[order[rank]].host, kAlways};
    task.levels_to_end = static_cast<uint32_t>(order.size() - rank);
  }
}

// Has files lie on the nodes that held them, as far as is known, and in chunks as they were.
void LieAs(const SeenRun& like, const Configuration& configuration, Workflow& workflow,
           uint64_t& chunk_bytes) {
  for (size_t i = 0; i < like.tasks.size(); ++i) {
    const BytesByNodeName& written = like.tasks[i].written;
    uint64_t all = 0;
    std::pair<std::string, uint64_t> most;
    for (const auto& [node, bytes] : written) {
      all += bytes;
      if (bytes > most.second) most = {node, bytes};
    }
    if (all == 0 || static_cast<double>(most.second) < kHeldShare * static_cast<double>(all))
      continue;
    for (uint32_t machine = 0; machine < MachinesOf(configuration); ++machine)
      if (NameOf(machine, configuration, like.hosts) == most.first)
        for (const PathIndex output : workflow.tasks[i].outputs)
          workflow.files[output.value].placed_on = fmt::format("h{}", machine + 1);
  }
  uint64_t all = 0;
  for (const auto& [chunk, bytes] : like.bytes_by_chunk) all += bytes;
  for (const auto& [chunk, bytes] : like.bytes_by_chunk)
    if (static_cast<double>(bytes) >= kHeldShare * static_cast<double>(all)) chunk_bytes = chunk;
}

// Cores go slower by what others took of them.
void Suffer(const SeenRun& like, const Configuration& configuration, Slowdown& slower) {
  const auto suffer = [&slower](uint32_t machine, double taken) {
    if (taken > kBusyShare) slower.hosts[machine].work /= 1 - std::min(taken, kTakenMax);
  };
  for (uint32_t i = 0; i < like.hosts.size(); ++i) suffer(i, TakenShareAt(like, like.hosts[i]));
  if (configuration.manager_apart) suffer(MachinesOf(configuration) - 1, TakenShareAtManager(like));
}

void SlowHost(SlowBy how, double size, HostSlowdown& host) {
  const double times = 1 + size;
  if (how == SlowBy::kLink || how == SlowBy::kLinkOut) host.out *= times;
  if (how == SlowBy::kLink || how == SlowBy::kLinkIn) host.in *= times;
  if (how == SlowBy::kWay) host.latency = host.latency + WaitOf(size);
  if (how == SlowBy::kCores) host.quota *= times;
  if (how == SlowBy::kTasks) host.tasks *= times;
  if (how == SlowBy::kNodeWait) host.node_wait = host.node_wait + WaitOf(size);
  if (how == SlowBy::kObjects) host.object_ns_per_byte += size * kObjectNsPerByte;
  if (how == SlowBy::kMountWait) host.mount_wait = host.mount_wait + WaitOf(size);
  if (how == SlowBy::kNodePause) host.node_pause = size / times;
  if (how == SlowBy::kMountPause) host.mount_pause = size / times;
  if (how == SlowBy::kNoPages) host.keeps_pages = false;
}

// Whether size is a wait, not a share of a predicted time; or a share of the time in which the part
// stands still: size / (1 + size).
bool IsWait(SlowBy how) {
  return how == SlowBy::kWay || how == SlowBy::kNodeWait || how == SlowBy::kMountWait ||
         how == SlowBy::kManagerWait || how == SlowBy::kManagerWork || how == SlowBy::kManagerLog ||
         how == SlowBy::kWays;
}

bool IsPause(SlowBy how) {
  return how == SlowBy::kNodePause || how == SlowBy::kMountPause || how == SlowBy::kManagerPause;
}

}  // namespace

const char* ToText(SlowBy how) {
  static constexpr const char* kNames[] = {
      "link",         "link out",      "link in",      "way",         "cores",       "tasks",
      "node wait",    "objects",       "node pause",   "mount wait",  "mount pause", "no pages",
      "manager wait", "manager pause", "manager work", "manager log", "links",       "ways",
      "computing",    "launch",        "mounts",       "places"};
  return kNames[static_cast<size_t>(how)];
}

Part PartOf(SlowBy how) {
  switch (how) {
    case SlowBy::kLink:
    case SlowBy::kLinkOut:
    case SlowBy::kLinkIn:
    case SlowBy::kWay:
      return Part::kLink;
    case SlowBy::kCores:
    case SlowBy::kTasks:
      return Part::kProcessor;
    case SlowBy::kNodeWait:
    case SlowBy::kNodePause:
    case SlowBy::kObjects:
      return Part::kNode;
    case SlowBy::kMountWait:
    case SlowBy::kMountPause:
      return Part::kMount;
    case SlowBy::kNoPages:
      return Part::kPageCache;
    case SlowBy::kManagerWait:
    case SlowBy::kManagerPause:
    case SlowBy::kManagerWork:
    case SlowBy::kManagerLog:
      return Part::kManager;
    case SlowBy::kLinks:
    case SlowBy::kWays:
      return Part::kNetwork;
    case SlowBy::kComputing:
      return Part::kComputing;
    case SlowBy::kLaunch:
      return Part::kLaunch;
    case SlowBy::kMounts:
      return Part::kMounts;
    case SlowBy::kPlaces:
      return Part::kPlaces;
  }
  return Part::kPlaces;
}

Suspect SuspectOf(const Suspicion& suspicion) {
  return {PartOf(suspicion.how), suspicion.how == SlowBy::kComputing ? "" : suspicion.at};
}

bool IsWhole(SlowBy how) { return how == SlowBy::kNoPages || how == SlowBy::kPlaces; }

std::string SizeInWords(const Suspicion& suspicion) {
  if (IsWhole(suspicion.how)) return "";
  if (suspicion.how == SlowBy::kObjects)
    return fmt::format("{:.3g} MB/s", 1000 / (suspicion.size * kObjectNsPerByte));
  if (IsPause(suspicion.how))
    return fmt::format("{:.0f} % of the time", 100 * suspicion.size / (1 + suspicion.size));
  if (IsWait(suspicion.how))
    return fmt::format("{:.3g} ms later", suspicion.size * static_cast<double>(kWaitUnit.ns) / 1e6);
  return fmt::format("{:.3g} times as long", 1 + suspicion.size);
}

std::vector<double> FirstSizesOf(SlowBy how) {
  if (IsWhole(how)) return {1};
  if (how == SlowBy::kCores || how == SlowBy::kTasks || how == SlowBy::kObjects) return {2, 8, 30};
  if (IsWait(how) || how == SlowBy::kLaunch) return {0.5, 4, 25};
  return {0.3, 1, 4};  // Half of the time, for a pause: the middle one.
}

std::vector<Suspicion> SuspicionsOf(const Workflow& workflow, const Configuration& configuration,
                                    const std::vector<std::string>& hosts) {
  std::vector<Suspicion> all;
  for (const SlowBy how :
       {SlowBy::kManagerWait, SlowBy::kManagerPause, SlowBy::kManagerWork, SlowBy::kManagerLog,
        SlowBy::kLinks, SlowBy::kWays, SlowBy::kLaunch, SlowBy::kMounts, SlowBy::kComputing})
    all.push_back({how, "", 1});
  std::set<std::string> stages;
  for (const Task& task : workflow.tasks) stages.insert(task.stage);
  if (stages.size() > 1)
    for (const std::string& stage : stages) all.push_back({SlowBy::kComputing, stage, 1});
  const bool have_nodes = configuration.storage_hosts == 0;
  for (uint32_t i = 0; i < MachinesOf(configuration); ++i) {
    const std::string name = NameOf(i, configuration, hosts);
    // What is slow on the manager's own host looks as if the manager were.
    if (name == "-") continue;
    for (const SlowBy how : {SlowBy::kLink, SlowBy::kLinkOut, SlowBy::kLinkIn, SlowBy::kWay})
      all.push_back({how, name, 1});
    const bool runs_tasks = i < configuration.hosts;
    if (have_nodes ? runs_tasks : !runs_tasks)
      for (const SlowBy how : {SlowBy::kNodeWait, SlowBy::kNodePause, SlowBy::kObjects})
        all.push_back({how, name, 1});
    if (!runs_tasks) continue;
    for (const SlowBy how : {SlowBy::kCores, SlowBy::kTasks, SlowBy::kMountWait,
                             SlowBy::kMountPause, SlowBy::kNoPages})
      all.push_back({how, name, 1});
  }
  return all;
}

Result<SeenRun> Counterfactual::With(const std::vector<Suspicion>& suspicions, uint64_t seed,
                                     const SeenRun* like, bool as_placed) const {
  Platform platform = platform_;
  Configuration configuration = configuration_;
  configuration.seed = seed;
  PredictOptions options{.with_layouts = true, .with_residence = true, .slower = {}};
  Workflow workflow = workflow_;
  if (like != nullptr) {
    Follow(*like, workflow);
    if (as_placed) LieAs(*like, configuration, workflow, configuration.chunk_bytes);
    Suffer(*like, configuration, options.slower);
  }
  for (const auto& [how, at, size] : suspicions) {
    if (size <= 0) continue;
    const double times = 1 + size;
    if (how == SlowBy::kManagerWait) options.slower.manager_wait = WaitOf(size);
    if (how == SlowBy::kManagerPause) options.slower.manager_pause = size / times;
    if (how == SlowBy::kManagerWork) options.slower.manager_work = WaitOf(size);
    if (how == SlowBy::kManagerLog) options.slower.manager_log = WaitOf(size);
    if (how == SlowBy::kLinks) SlowLinks(times, platform, configuration);
    if (how == SlowBy::kWays) platform.network.latency_ns += static_cast<uint64_t>(WaitOf(size).ns);
    if (how == SlowBy::kComputing) SlowComputing(at, times, workflow);
    if (how == SlowBy::kLaunch) platform.runner.launch = Times(platform.runner.launch, times);
    if (how == SlowBy::kMounts) SlowMounts(times, platform);
    for (uint32_t i = 0; i < MachinesOf(configuration); ++i)
      if (how <= SlowBy::kNoPages && NameOf(i, configuration, hosts_) == at)
        SlowHost(how, size, options.slower.hosts[i]);
  }
  MOSA_ASSIGN_OR_RETURN(const Prediction prediction,
                        Predict(workflow, platform, configuration, options));
  if (prediction.failure) return FailedPreconditionError(*prediction.failure);
  return SeenOf(workflow, prediction, platform, hosts_);
}

}  // namespace mosa::predict
