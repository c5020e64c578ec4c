#include "tools/cluster/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mosa::cluster {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessId, pid, start_ticks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Daemon, kind, host, process)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostPlan, name, net_namespace, link, address, directory, objects,
                                   mount_point, socket)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClusterPlan, name, directory, namespaces, bridge, gateway, rate,
                                   ram_bytes, tmpfs_bytes, chunk_size, forecasts, stripe_width,
                                   default_placement, passthrough, allow_other, manager, hosts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClusterState, plan, boot_id, complete, starter, manager_address,
                                   daemons)

bool ClusterState::manager_runs() const {
  return std::any_of(daemons.begin(), daemons.end(), [](const Daemon& daemon) {
    return daemon.kind == "manager" && IsAlive(daemon.process);
  });
}

Status Save(const ClusterState& state) {
  const std::string text = nlohmann::json(state).dump(1) + "\n";
  const std::string fresh = state.path() + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0 && close(fd) != 0) written = false;
  if (!written || rename(fresh.c_str(), state.path().c_str()) != 0) {
    return FailedPreconditionError(
        fmt::format("cannot write {}: {}", state.path(), strerror(errno)));
  }
  return OkStatus();
}

Result<ClusterState> Load(const std::string& directory, const std::string& name) {
  MOSA_RETURN_IF_ERROR(CheckName(name));
  const std::string path = fmt::format("{}/{}/state.json", directory, name);
  std::ifstream file(path);
  if (!file) {
    if (errno == EACCES) {
      return PermissionDeniedError(
          fmt::format("{} belongs to another user: use that user's account or root", path));
    }
    const std::vector<std::string> others = ListClusters(directory);
    return NotFoundError(
        others.empty()
            ? fmt::format("there is no cluster named '{}' in {}: 'mosa cluster up' starts one",
                          name, directory)
            : fmt::format("there is no cluster named '{}' in {}: choose {} with --name", name,
                          directory, fmt::join(others, " or ")));
  }
  try {
    nlohmann::json json = nlohmann::json::parse(file);
    json.at("plan").emplace("forecasts", "");  // Plans of earlier versions have none.
    auto state = json.get<ClusterState>();
    if (state.boot_id != BootId()) {
      state.daemons.clear();
      state.starter = {};
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    return DataLossError(fmt::format("{} is damaged: {}", path, error.what()));
  }
}

std::vector<std::string> ListClusters(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::error_code ignored;
    if (std::filesystem::exists(entry.path() / "state.json", ignored)) {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string DefaultDirectory() {
  if (geteuid() == 0) return "/run/mosa";
  return fmt::format("/dev/shm/mosa-{}", geteuid());
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace mosa::cluster
