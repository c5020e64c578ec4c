#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "common/base/clock.h"
#include "tools/cluster/lifecycle.h"
#include "tools/cluster/mounts.h"
#include "tools/cluster/network.h"

namespace mosa::cluster {
namespace {

// How long a daemon may take to end by itself: a mount first sends what it holds.
constexpr Duration kGrace = Seconds(8);
constexpr Duration kStarterGrace = Seconds(60);

bool IsDaemon(const ClusterState& state, const ProcessId& process) {
  for (const Daemon& daemon : state.daemons) {
    if (daemon.process.pid == process.pid) return true;
  }
  return false;
}

// Programs started inside the cluster's namespaces.
std::vector<ProcessId> Jobs(const ClusterState& state) {
  std::vector<ProcessId> jobs;
  if (!state.plan.namespaces) return jobs;
  std::vector<std::string> names = {state.plan.manager.net_namespace};
  for (const HostPlan& host : state.plan.hosts) names.push_back(host.net_namespace);
  for (const std::string& name : names) {
    for (const ProcessId& process : ProcessesInNetNamespace(name)) {
      if (!IsDaemon(state, process)) jobs.push_back(process);
    }
  }
  return jobs;
}

std::vector<ProcessId> DaemonsOfKind(const ClusterState& state, const std::string& kind) {
  std::vector<ProcessId> processes;
  for (const Daemon& daemon : state.daemons) {
    if (daemon.kind == kind) processes.push_back(daemon.process);
  }
  return processes;
}

}  // namespace

Status Down(const ClusterState& state) {
  Status result;
  const auto keep = [&](Status status) {
    if (!status.ok()) result = std::move(status);
  };
  EndAll(Jobs(state), kGrace);
  EndAll(DaemonsOfKind(state, "mount"), kGrace);
  // Unmounts before nodes end, so that nobody waits for a node behind a remaining mount.
  for (const HostPlan& host : state.plan.hosts) {
    for (const std::string& point : MountsBelow(host.mount_point)) keep(Unmount(point));
  }
  EndAll(DaemonsOfKind(state, "storage"), kGrace);
  EndAll(DaemonsOfKind(state, "manager"), kGrace);
  for (const std::string& point : MountsBelow(state.plan.directory)) keep(Unmount(point));

  const std::string parent = std::filesystem::path(state.plan.directory).parent_path();
  auto lock = DirectoryLock::Take(parent);
  keep(RemoveNetwork(state.plan));
  keep(RemoveDirectory(state.plan.directory));
  // Only if this was the last cluster there, and only for a directory that we chose ourselves.
  if (parent == DefaultDirectory()) rmdir(parent.c_str());
  return result;
}

Status DownByName(const std::string& directory, const std::string& name) {
  auto state = Load(directory, name);
  if (state.ok() && !state->complete && IsAlive(state->starter)) {
    // Its `up` undoes its own work when told to stop.
    const SystemClock clock;
    const Time limit = clock.Monotonic() + kStarterGrace;
    Signal(state->starter, SIGTERM);
    while (IsAlive(state->starter) && clock.Monotonic() < limit) Pause(Milliseconds(20));
    Signal(state->starter, SIGKILL);
    if (!std::filesystem::exists(state->path())) return OkStatus();
    state = Load(directory, name);
  }
  MOSA_RETURN_IF_ERROR(state.status());
  return Down(*state);
}

}  // namespace mosa::cluster
