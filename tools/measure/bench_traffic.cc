#include "tools/measure/bench_traffic.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "tools/cluster/state.h"
#include "tools/console/xattr.h"

namespace mosa::cli {
namespace {

constexpr const char* kPaths[] = {"bytes_read_local",         "bytes_read_remote",
                                  "bytes_read_inline",        "bytes_written_local",
                                  "bytes_written_remote",     "bytes_written_inline",
                                  "bytes_written_passthrough"};

uint64_t ReadCounter(const std::string& device, const char* name) {
  std::ifstream file("/sys/class/net/" + device + "/statistics/" + name);
  uint64_t bytes = 0;
  file >> bytes;
  return bytes;
}

// Counts all its threads, including ended ones; 0 once the process is gone.
double ProcessorSeconds(pid_t process) {
  clockid_t clock{};
  timespec taken{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &taken) != 0) return 0;
  return static_cast<double>(taken.tv_sec) + static_cast<double>(taken.tv_nsec) / 1e9;
}

// A counter that starts again with its daemon says nothing.
template <typename Number>
Number Grown(Number after, Number before) {
  return after > before ? after - before : 0;
}

}  // namespace

uint64_t Traffic::NetworkBytes() const {
  uint64_t bytes = 0;
  for (const auto& [host, link] : links) bytes += link.received;
  if (!links.empty()) return bytes;
  for (const char* path : {"bytes_read_remote", "bytes_written_remote"}) {
    if (const auto found = by_path.find(path); found != by_path.end()) bytes += found->second;
  }
  return bytes;
}

uint64_t Traffic::BusiestLinkBytes() const {
  uint64_t most = 0;
  for (const auto& [host, link] : links) most = std::max({most, link.sent, link.received});
  return most;
}

Traffic operator-(const Traffic& after, const Traffic& before) {
  Traffic grown;
  for (const auto& [path, bytes] : after.by_path) {
    const auto was = before.by_path.find(path);
    if (was != before.by_path.end()) grown.by_path[path] = Grown(bytes, was->second);
  }
  for (const auto& [host, link] : after.links) {
    const auto was = before.links.find(host);
    if (was == before.links.end()) continue;
    grown.links[host] = {Grown(link.sent, was->second.sent),
                         Grown(link.received, was->second.received)};
  }
  for (const auto& [host, seconds] : after.daemon_seconds) {
    const auto was = before.daemon_seconds.find(host);
    if (was != before.daemon_seconds.end())
      grown.daemon_seconds[host] = Grown(seconds, was->second);
  }
  return grown;
}

nlohmann::json ToJson(const Traffic& traffic) {
  nlohmann::json links = nlohmann::json::object();
  for (const auto& [host, link] : traffic.links)
    links[host] = {{"sent_bytes", link.sent}, {"received_bytes", link.received}};
  return {{"network_bytes", traffic.NetworkBytes()},
          {"busiest_link_bytes", traffic.BusiestLinkBytes()},
          {"by_path", traffic.by_path},
          {"links", std::move(links)},
          {"daemon_seconds", traffic.daemon_seconds}};
}

TrafficMeter::TrafficMeter(const std::vector<RunHost>& hosts, Meters meters)
    : meters_(std::move(meters)) {
  std::set<std::string> mounts;
  for (const RunHost& host : hosts) {
    if (host.mosa) mounts.insert(host.mount_point);
  }
  // If all hosts use the same mount path, the mount at that path here is not theirs.
  if (mounts.size() == hosts.size()) mount_points_.assign(mounts.begin(), mounts.end());
}

Traffic TrafficMeter::Read() const {
  Traffic traffic;
  for (const std::string& mount_point : mount_points_) {
    const auto counters = MosaJsonAttribute(mount_point, "mount");
    if (!counters.ok()) continue;
    for (const char* path : kPaths) traffic.by_path[path] += counters->value(path, uint64_t{0});
  }
  // What a host sends is what the other end of its link receives.
  for (const auto& [host, device] : meters_.links)
    traffic.links[host] = {ReadCounter(device, "rx_bytes"), ReadCounter(device, "tx_bytes")};
  for (const auto& [host, processes] : meters_.daemons)
    for (const pid_t process : processes) traffic.daemon_seconds[host] += ProcessorSeconds(process);
  return traffic;
}

Result<Meters> MetersOfCluster(const std::string& directory, const std::string& name) {
  MOSA_ASSIGN_OR_RETURN(
      const auto state,
      cluster::Load(std::filesystem::absolute(directory).lexically_normal(), name));
  Meters meters;
  for (const cluster::Daemon& daemon : state.daemons)
    meters.daemons[daemon.host].push_back(daemon.process.pid);
  if (!state.plan.namespaces) return meters;
  for (const cluster::HostPlan& host : state.plan.hosts) meters.links.emplace(host.name, host.link);
  return meters;
}

}  // namespace mosa::cli
