#include "tools/hosts/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "common/base/units.h"
#include "tools/cluster/state.h"
#include "tools/hosts/host_mount.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

// Hosts on one machine without a limit: what loopback and memory carry.
constexpr uint64_t kUnlimitedBytesPerSecond = 2'000'000'000;

Result<std::vector<RunHost>> ClusterHosts(const HostsRequest& request) {
  const std::string directory = fs::absolute(request.cluster_directory).lexically_normal();
  MOSA_ASSIGN_OR_RETURN(const auto state, cluster::Load(directory, request.cluster));
  if (!state.complete) {
    return FailedPreconditionError(
        fmt::format("cluster '{}' is not up yet: wait for its 'mosa cluster up', or end it with "
                    "'mosa cluster down'",
                    request.cluster));
  }
  uint64_t rate = kUnlimitedBytesPerSecond;
  if (!state.plan.rate.empty()) {
    MOSA_ASSIGN_OR_RETURN(rate, ParseRate(state.plan.rate));
  }
  std::vector<RunHost> hosts;
  for (const cluster::HostPlan& plan : state.plan.hosts) {
    RunHost host;
    host.name = plan.name;
    host.mount_point = plan.mount_point;
    host.net_namespace = plan.net_namespace;
    host.address = plan.address;
    host.link_bytes_per_second = rate;
    host.mosa = true;
    host.environment = {{"MOSA_CLUSTER", request.cluster},
                        {"MOSA_CLUSTER_DIR", directory},
                        {"MOSA_MANAGER", state.manager_address},
                        {"MOSA_SECRET", state.plan.secret()}};
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<std::vector<RunHost>> MountedHosts(const HostsRequest& request) {
  std::vector<std::string> names = request.names;
  if (names.empty()) {
    if (!request.exec.empty() || request.mount.find("{host}") != std::string::npos)
      return InvalidArgumentError("--exec and {host} need --hosts: name the hosts");
    names = {"local"};
  }
  if (std::set(names.begin(), names.end()).size() != names.size())
    return InvalidArgumentError("--hosts names a host twice");
  std::vector<RunHost> hosts;
  for (const std::string& name : names) {
    if (name.empty()) return InvalidArgumentError("--hosts has an empty name");
    RunHost host;
    host.name = name;
    host.mount_point = fs::absolute(ForHost(request.mount, name)).lexically_normal();
    host.link_bytes_per_second = kUnlimitedBytesPerSecond;
    std::istringstream words(ForHost(request.exec, name));
    for (std::string word; words >> word;) host.exec.push_back(word);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Status SetDirectories(const HostsRequest& request, std::vector<RunHost>& hosts) {
  const fs::path below = fs::path(request.directory).lexically_normal();
  if (below.is_absolute() || (!below.empty() && *below.begin() == ".."))
    return InvalidArgumentError(fmt::format(
        "--workdir '{}' is outside the mount: give a path below it", request.directory));
  for (RunHost& host : hosts) {
    host.directory = (fs::path(host.mount_point) / below).lexically_normal();
    if (host.directory.size() > 1 && host.directory.ends_with('/')) host.directory.pop_back();
  }
  return OkStatus();
}

}  // namespace

std::string ForHost(std::string text, const std::string& host) {
  constexpr std::string_view kMark = "{host}";
  for (size_t at = 0; (at = text.find(kMark, at)) != std::string::npos; at += host.size())
    text.replace(at, kMark.size(), host);
  return text;
}

Result<uint64_t> ParseRate(const std::string& text) {
  const struct {
    std::string_view unit;
    uint64_t bits;
  } units[] = {{"kbit", 1000}, {"mbit", 1'000'000}, {"gbit", 1'000'000'000}};
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  for (const auto& [unit, bits] : units) {
    if (error == std::errc() && number > 0 && number <= 1'000'000 &&
        std::string_view(read, static_cast<size_t>(end - read)) == unit)
      return number * bits / 8;
  }
  return InvalidArgumentError(
      fmt::format("'{}' is not a rate: write it like 200mbit or 1gbit", text));
}

Result<FoundHosts> FindHosts(const HostsRequest& request) {
  if (request.mount.empty() && !(request.names.empty() && request.exec.empty()))
    return InvalidArgumentError("--hosts and --exec need --mount: say where their mount is");
  std::vector<RunHost> hosts;
  if (request.mount.empty()) {
    MOSA_ASSIGN_OR_RETURN(hosts, ClusterHosts(request));
  } else {
    MOSA_ASSIGN_OR_RETURN(hosts, MountedHosts(request));
  }
  const bool elsewhere = !request.exec.empty();
  const auto cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  const auto share = elsewhere ? 1 : std::max<size_t>(1, cores / hosts.size());
  for (RunHost& host : hosts) {
    host.slots = request.slots > 0 ? request.slots : static_cast<uint32_t>(share);
    if (!request.memory.empty()) {
      const auto bytes = ParseBytes(request.memory);
      if (!bytes.ok() || *bytes <= 0)
        return InvalidArgumentError(
            fmt::format("--memory '{}' is not a size: write it like 64G", request.memory));
      host.memory_bytes = static_cast<uint64_t>(*bytes);
    }
    if (!request.link.empty()) {
      MOSA_ASSIGN_OR_RETURN(host.link_bytes_per_second, ParseRate(request.link));
    }
    host.environment["MOSA_HOST"] = host.name;
    host.environment["MOSA_MOUNT"] = host.mount_point;
  }
  MOSA_RETURN_IF_ERROR(SetDirectories(request, hosts));
  std::deque<HostMount> mounts;
  for (const RunHost& host : hosts) mounts.emplace_back(host).BeginLook();
  FoundHosts found;
  for (RunHost& host : hosts) {
    const HostMount::Look look = mounts.front().EndLook();
    mounts.pop_front();
    if (look.answers && look.mosa >= host.mosa) {
      host.mosa = look.mosa;
      found.hosts.push_back(std::move(host));
    } else {
      found.silent.push_back(host.name);
    }
  }
  if (found.hosts.empty())
    return UnavailableError(
        fmt::format("no host answers: check the mount {} of {}, that commands reach the host, and "
                    "with 'mosa cluster status' that the manager runs",
                    hosts.front().mount_point, fmt::join(found.silent, ", ")));
  return found;
}

}  // namespace mosa::cli
