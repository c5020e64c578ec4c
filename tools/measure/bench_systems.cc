#include "tools/measure/bench_systems.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "common/base/units.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLocalDefault = "/dev/shm";

Result<BenchSystem> ParseSystem(const std::string& word) {
  if (word == "dss") return BenchSystem{SystemKind::kDss, "dss", ""};
  if (word == "wass") return BenchSystem{SystemKind::kWass, "wass", ""};
  if (word == "local") return BenchSystem{SystemKind::kLocal, "local", kLocalDefault};
  BenchSystem system;
  if (word.starts_with("local=")) {
    system = {SystemKind::kLocal, "local", word.substr(6)};
  } else if (const size_t colon = word.find(':');
             word.starts_with("path=") && colon != word.npos && colon > 5) {
    system = {SystemKind::kPath, word.substr(5, colon - 5), word.substr(colon + 1)};
  } else {
    return InvalidArgumentError(
        fmt::format("unknown system '{}': use dss, wass, local, local=DIR or path=NAME:DIR", word));
  }
  if (!system.directory.starts_with('/'))
    return InvalidArgumentError(
        fmt::format("system '{}': '{}' is not an absolute path", word, system.directory));
  return system;
}

// Refuses a place that is in use: nobody else's files are ever removed.
Status CheckUnused(const BenchSystem& system, const RunHost& host) {
  std::error_code error;
  if (!fs::exists(host.directory, error) || fs::is_empty(host.directory, error)) return OkStatus();
  return FailedPreconditionError(
      fmt::format("system '{}' on host {}: {} is not empty: remove it if a killed benchmark left "
                  "it, otherwise give another --workdir",
                  system.name, host.name, host.directory));
}

}  // namespace

Result<std::vector<BenchSystem>> ParseSystems(const std::vector<std::string>& words) {
  std::vector<BenchSystem> systems;
  std::set<std::string> names;
  for (const std::string& word : words) {
    MOSA_ASSIGN_OR_RETURN(BenchSystem system, ParseSystem(word));
    if (!names.insert(system.name).second)
      return InvalidArgumentError(
          fmt::format("--systems names '{}' twice: give each its own name", system.name));
    systems.push_back(std::move(system));
  }
  return systems;
}

std::vector<RunHost> HostsOf(const BenchSystem& system, const std::vector<RunHost>& hosts,
                             const std::string& workdir) {
  std::vector<RunHost> placed = hosts;
  for (RunHost& host : placed) {
    if (!system.directory.empty()) {
      host.mosa = false;
      host.mount_point = ForHost(system.directory, host.name);
    }
    host.directory = (fs::path(host.mount_point) / workdir).lexically_normal();
    // A directory that all hosts share must not serve as each host's own.
    if (system.kind == SystemKind::kLocal) host.directory += "-" + host.name;
    host.environment["MOSA_MOUNT"] = host.mount_point;
  }
  return placed;
}

Status CheckPlace(const BenchSystem& system, const std::vector<RunHost>& hosts,
                  const std::string& workdir, uint64_t bytes) {
  for (const RunHost& host : HostsOf(system, hosts, workdir)) {
    // Another machine's own directory cannot be seen from here.
    if (!host.exec.empty() && system.kind == SystemKind::kLocal) continue;
    std::error_code error;
    if (!fs::is_directory(host.mount_point, error))
      return NotFoundError(
          fmt::format("system '{}' is not mounted on host {}: there is no directory {}",
                      system.name, host.name, host.mount_point));
    MOSA_RETURN_IF_ERROR(CheckUnused(system, host));
    struct statvfs space {};
    if (statvfs(host.mount_point.c_str(), &space) != 0)
      return UnavailableError(fmt::format("system '{}' on host {}: {}: {}", system.name, host.name,
                                          host.mount_point, strerror(errno)));
    const uint64_t free = uint64_t{space.f_bavail} * space.f_frsize;
    if (free < bytes)
      return ResourceExhaustedError(
          fmt::format("system '{}' has {} free at {} (host {}), but the files of one run take {}: "
                      "lower --scale or --width",
                      system.name, HumanBytes(static_cast<int64_t>(free)), host.mount_point,
                      host.name, HumanBytes(static_cast<int64_t>(bytes))));
  }
  return OkStatus();
}

std::string Cell::name() const {
  return copies > 0 ? fmt::format("{}-{}", system.name, copies) : system.name;
}

bool Applies(predict::Pattern pattern, SystemKind kind) {
  return kind != SystemKind::kLocal || pattern == predict::Pattern::kPipeline;
}

}  // namespace mosa::cli
