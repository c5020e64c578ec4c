#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "tools/cluster/lifecycle.h"
#include "tools/cluster/mounts.h"
#include "tools/cluster/network.h"
#include "tools/cluster/secret.h"

namespace mosa::cluster {
namespace {

constexpr Duration kReadyWaitMax = Seconds(20);
constexpr const char* kNetworksLock = "/run";

Status CheckInterrupted() {
  if (InterruptGuard::Interrupted() == 0) return OkStatus();
  return AbortedError("interrupted");
}

Status MakeDirectory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 || chmod(path.c_str(), mode) != 0) {
    return FailedPreconditionError(fmt::format("cannot create {}: {}", path, strerror(errno)));
  }
  return OkStatus();
}

// Invalid, with errno set, if it cannot be locked.
UniqueFd OpenLocked(const std::string& directory) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && flock(fd.get(), LOCK_EX) != 0) {
    const int error = errno;
    fd = UniqueFd();
    errno = error;
  }
  return fd;
}

Status CheckPrograms(const std::string& binaries) {
  for (const char* name : {"mosa-manager", "mosa-storage", "mosa-mount"}) {
    const std::string path = fmt::format("{}/{}", binaries, name);
    if (access(path.c_str(), X_OK) != 0) {
      return NotFoundError(fmt::format(
          "the program {} is missing: build or install it in the directory of mosa", path));
    }
  }
  return OkStatus();
}

Role RoleOf(const std::string& kind) {
  if (kind == "manager") return Role::kManager;
  return kind == "storage" ? Role::kNode : Role::kMount;
}

std::string RunFile(const HostPlan& host, const std::string& kind, const std::string& ending) {
  return fmt::format("{}/run/{}.{}", host.directory, kind, ending);
}

// The last line that a daemon wrote: usually the reason why it ended.
std::string LastWords(const HostPlan& host, const std::string& kind) {
  std::string last;
  for (const char* ending : {"log", "out"}) {
    std::ifstream file(RunFile(host, kind, ending));
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) last = line;
    }
  }
  return last.empty() ? "it wrote nothing" : last;
}

// Carries out the steps one by one; every process is in the state file before it runs.
class Starter {
 public:
  Starter(ClusterState& state, const std::string& binaries) : state_(state), binaries_(binaries) {}

  Status MakeDirectories() {
    const ClusterPlan& plan = state_.plan;
    const mode_t passable = plan.allow_other ? 0711 : 0700;
    if (plan.allow_other) chmod(plan.directory.c_str(), passable);
    MOSA_RETURN_IF_ERROR(MakeDirectory(plan.manager.directory, 0700));
    MOSA_RETURN_IF_ERROR(MakeDirectory(plan.manager.directory + "/run", 0700));
    MOSA_RETURN_IF_ERROR(MakeDirectory(plan.manager.directory + "/data", 0700));
    MOSA_RETURN_IF_ERROR(KeepForecasts());
    for (const HostPlan& host : plan.hosts) {
      MOSA_RETURN_IF_ERROR(MakeDirectory(host.directory, passable));
      MOSA_RETURN_IF_ERROR(MakeDirectory(host.directory + "/run", 0700));
      MOSA_RETURN_IF_ERROR(MakeDirectory(host.objects, 0700));
      MOSA_RETURN_IF_ERROR(MakeDirectory(host.mount_point, 0755));
      if (plan.namespaces) MOSA_RETURN_IF_ERROR(MountTmpfs(host.objects, plan.tmpfs_bytes));
      MOSA_RETURN_IF_ERROR(CheckInterrupted());
    }
    return OkStatus();
  }

  // A manager that is restarted needs them again.
  Status KeepForecasts() {
    std::string& forecasts = state_.plan.forecasts;
    if (forecasts.empty()) return OkStatus();
    const std::string kept = state_.plan.manager.directory + "/forecasts.json";
    std::error_code error;
    std::filesystem::copy_file(forecasts, kept, std::filesystem::copy_options::overwrite_existing,
                               error);
    if (error)
      return UnavailableError(
          fmt::format("cannot copy {} to {}: {}", forecasts, kept, error.message()));
    forecasts = kept;
    return OkStatus();
  }

  Status StartManager() {
    const ClusterPlan& plan = state_.plan;
    // Without --fsync: this whole cluster is on one machine, mostly in RAM, and ends with it. Nodes
    // and mounts look for a restarted manager at its old address.
    const bool is_first = state_.manager_address.empty();
    std::vector<std::string> flags = {"--listen",
                                      is_first ? plan.ManagerListen() : state_.manager_address,
                                      "--data-dir",
                                      plan.manager.directory + "/data",
                                      "--cluster-name",
                                      plan.name,
                                      "--default-placement",
                                      plan.default_placement};
    if (!plan.chunk_size.empty()) flags.insert(flags.end(), {"--chunk-size", plan.chunk_size});
    if (!plan.forecasts.empty()) flags.insert(flags.end(), {"--forecasts", plan.forecasts});
    if (plan.stripe_width > 0) {
      flags.insert(flags.end(), {"--stripe-width", fmt::format("{}", plan.stripe_width)});
    }
    MOSA_RETURN_IF_ERROR(Spawn("manager", plan.manager, flags));
    MOSA_ASSIGN_OR_RETURN(const nlohmann::json ready, WaitReady("manager", plan.manager));
    state_.manager_address = ready.value("address", plan.ManagerListen());
    return Save(state_);
  }

  Status StartNodes() {
    for (const HostPlan& host : state_.plan.hosts) {
      const std::vector<std::string> flags = {"--name",    host.name,
                                              "--manager", state_.manager_address,
                                              "--listen",  state_.plan.NodeListen(host),
                                              "--dir",     host.objects,
                                              "--limit",   fmt::format("{}", state_.plan.ram_bytes),
                                              "--socket",  host.socket};
      MOSA_RETURN_IF_ERROR(Spawn("storage", host, flags));
    }
    return WaitAllReady("storage");
  }

  Status StartMounts() {
    for (const HostPlan& host : state_.plan.hosts) {
      std::vector<std::string> flags = {host.mount_point, "--manager", state_.manager_address,
                                        "--name", host.name};
      if (!state_.plan.passthrough) flags.push_back("--no-passthrough");
      if (state_.plan.allow_other) flags.push_back("--allow-other");
      MOSA_RETURN_IF_ERROR(Spawn("mount", host, flags));
    }
    return WaitAllReady("mount");
  }

 private:
  Status Spawn(const std::string& kind, const HostPlan& host,
               const std::vector<std::string>& flags) {
    MOSA_RETURN_IF_ERROR(CheckInterrupted());
    DaemonCommand command;
    command.net_namespace = host.net_namespace;
    command.output_path = RunFile(host, kind, "out");
    command.argv = {fmt::format("{}/mosa-{}", binaries_, kind)};
    command.argv.insert(command.argv.end(), flags.begin(), flags.end());
    command.argv.insert(command.argv.end(),
                        {"--secret", SecretFile(state_.plan.secrets(), RoleOf(kind)), "--log-file",
                         RunFile(host, kind, "log"), "--ready-file", RunFile(host, kind, "ready")});
    return SpawnDaemon(command,
                       [&](ProcessId process) {
                         state_.daemons.push_back({kind, host.name, process});
                         return Save(state_);
                       })
        .status();
  }

  // What the daemon wrote when it began to serve.
  Result<nlohmann::json> WaitReady(const std::string& kind, const HostPlan& host) {
    const SystemClock clock;
    const Time limit = clock.Monotonic() + kReadyWaitMax;
    while (clock.Monotonic() < limit) {
      MOSA_RETURN_IF_ERROR(CheckInterrupted());
      const bool ended = !IsAlive(FindDaemon(kind, host.name)->process);
      std::ifstream file(RunFile(host, kind, "ready"));
      auto ready = nlohmann::json::parse(file, nullptr, false);
      if (ready.is_object() && !ended) return ready;
      if (ended) {
        return UnavailableError(fmt::format("mosa-{} of {} ended before it was ready: {}", kind,
                                            host.name, LastWords(host, kind)));
      }
      Pause(Milliseconds(5));
    }
    return DeadlineExceededError(fmt::format("mosa-{} of {} was not ready after {} s: {}", kind,
                                             host.name, kReadyWaitMax.ns / 1'000'000'000,
                                             LastWords(host, kind)));
  }

  Status WaitAllReady(const std::string& kind) {
    for (const HostPlan& host : state_.plan.hosts) {
      MOSA_RETURN_IF_ERROR(WaitReady(kind, host).status());
    }
    return OkStatus();
  }

  const Daemon* FindDaemon(const std::string& kind, const std::string& host) const {
    for (const Daemon& daemon : state_.daemons) {
      if (daemon.kind == kind && daemon.host == host) return &daemon;
    }
    return nullptr;
  }

  ClusterState& state_;
  const std::string& binaries_;
};

// Creates the cluster's directory with its first state file. AlreadyExists if there is one.
Status Claim(const ClusterState& state) {
  const std::string& directory = state.plan.directory;
  struct stat found {};
  if (stat(state.path().c_str(), &found) == 0) {
    return AlreadyExistsError(
        fmt::format("there is already a cluster named '{0}' in {1}: choose another --name, or stop "
                    "it with 'mosa cluster down --name {0}'",
                    state.plan.name, std::filesystem::path(directory).parent_path().string()));
  }
  // Left by an `up` that was killed before its first effect.
  if (stat(directory.c_str(), &found) == 0) rmdir(directory.c_str());
  MOSA_RETURN_IF_ERROR(MakeDirectory(directory, 0700));
  return Save(state);
}

Status StartAll(ClusterState& state, const std::string& binaries, DirectoryLock& lock) {
  MOSA_RETURN_IF_ERROR(ApplyNetwork(PlanNetwork(state.plan)));
  lock.Release();
  MOSA_RETURN_IF_ERROR(CreateSecrets(state.plan.secrets()));
  Starter starter(state, binaries);
  MOSA_RETURN_IF_ERROR(starter.MakeDirectories());
  MOSA_RETURN_IF_ERROR(starter.StartManager());
  MOSA_RETURN_IF_ERROR(starter.StartNodes());
  MOSA_RETURN_IF_ERROR(starter.StartMounts());
  MOSA_RETURN_IF_ERROR(CheckInterrupted());
  state.complete = true;
  return Save(state);
}

}  // namespace

Machine InspectMachine() {
  Machine machine;
  machine.root = geteuid() == 0;
  machine.memory_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  machine.subnets_taken = SubnetsTaken();
  machine.links_taken = LinksTaken();
  return machine;
}

Result<DirectoryLock> DirectoryLock::Take(const std::string& directory) {
  std::error_code error;
  const auto refused = [&](const std::string& why) {
    return FailedPreconditionError(fmt::format("cannot keep clusters in {}: {}", directory, why));
  };
  DirectoryLock lock;
  // Bridges and subnets belong to the machine. This directory always exists: no lock file is left.
  if (geteuid() == 0) {
    lock.networks_ = OpenLocked(kNetworksLock);
    if (!lock.networks_) return refused(fmt::format("{}: {}", kNetworksLock, strerror(errno)));
  }
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::filesystem::create_directories(directory, error);
    if (error) return refused(error.message());
    lock.directory_ = OpenLocked(directory);
    if (!lock.directory_) return refused(strerror(errno));
    // If the previous owner has removed the directory, the lock is on nothing.
    struct stat held {};
    struct stat named {};
    if (fstat(lock.directory_.get(), &held) == 0 && stat(directory.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      // The directory's owner could put another one in the place of a cluster's directory.
      if (held.st_uid != geteuid() && held.st_uid != 0)
        return refused("it belongs to another user");
      return lock;
    }
  }
  return refused("other processes keep removing it");
}

void DirectoryLock::Release() {
  directory_ = UniqueFd();
  networks_ = UniqueFd();
}

Result<ClusterState> Up(const ClusterPlan& plan, const std::string& binaries, DirectoryLock lock) {
  MOSA_RETURN_IF_ERROR(CheckPrograms(binaries));
  ClusterState state;
  state.plan = plan;
  state.boot_id = BootId();
  state.starter = {getpid(), StartTicks(getpid())};
  MOSA_RETURN_IF_ERROR(Claim(state));
  const Status started = StartAll(state, binaries, lock);
  if (started.ok()) return state;
  lock.Release();
  const Status undone = Down(state);
  if (undone.ok()) return started;
  return Status(started.code(), fmt::format("{}; undoing what had been started failed as well: {}",
                                            MessageOf(started), MessageOf(undone)));
}

Result<ClusterState> RestartManager(const std::string& directory, const std::string& name,
                                    const std::string& binaries) {
  MOSA_RETURN_IF_ERROR(CheckPrograms(binaries));
  MOSA_RETURN_IF_ERROR(Load(directory, name).status());  // Before the directory is created.
  MOSA_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Take(directory));
  MOSA_ASSIGN_OR_RETURN(ClusterState state, Load(directory, name));
  if (!state.complete) {
    return FailedPreconditionError(
        fmt::format("cluster '{}' is not up: wait for its 'mosa cluster up', or stop it with 'mosa "
                    "cluster down'",
                    name));
  }
  const auto manager = std::find_if(state.daemons.begin(), state.daemons.end(),
                                    [](const Daemon& daemon) { return daemon.kind == "manager"; });
  if (manager != state.daemons.end()) {
    if (IsAlive(manager->process)) {
      return FailedPreconditionError(
          fmt::format("the manager of cluster '{}' is already running, as process {}", name,
                      manager->process.pid));
    }
    state.daemons.erase(manager);
  }
  std::remove(RunFile(state.plan.manager, "manager", "ready").c_str());
  MOSA_RETURN_IF_ERROR(Starter(state, binaries).StartManager());
  return state;
}

}  // namespace mosa::cluster
