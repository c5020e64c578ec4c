#include "tools/observe/trace_control.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "common/base/units.h"
#include "common/model/trace.h"
#include "tools/cluster/state.h"
#include "tools/console/output.h"
#include "tools/console/xattr.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kEndMax{20};
constexpr const char* kAttribute = "user.mosa.trace";

Result<nlohmann::json> TraceOf(const std::string& mount) {
  auto status = MosaJsonAttribute(mount, "trace");
  if (status.ok() || status.status().code() != StatusCode::kFailedPrecondition) return status;
  return FailedPreconditionError(
      fmt::format("{} is not a Mosa mount that can be traced: give the directory that 'mosa-mount' "
                  "has mounted, or --name CLUSTER",
                  mount));
}

Status Control(const std::string& mount, const std::string& value) {
  if (lsetxattr(mount.c_str(), kAttribute, value.data(), value.size(), 0) == 0) return OkStatus();
  const int error = errno;
  if (error == EACCES || error == EPERM)
    return PermissionDeniedError(
        fmt::format("{} can be traced only by root and by the user whose process serves it: use "
                    "one of these accounts",
                    mount));
  const auto status = TraceOf(mount);
  const std::string refused = status.ok() ? status->value("refused", "") : "";
  const std::string why = refused.empty() ? std::string(strerror(error)) : refused;
  if (error == EEXIST) return AlreadyExistsError(why);
  return FailedPreconditionError(why);
}

Result<std::vector<std::string>> MountsOf(const TraceControlRequest& options) {
  if (!options.mount.empty()) {
    std::error_code error;
    if (!fs::exists(options.mount, error))
      return NotFoundError(
          fmt::format("{}: {}", options.mount, error ? error.message() : "no such directory"));
    MOSA_ASSIGN_OR_RETURN(const MountedPath place, FindMount(options.mount));
    MOSA_RETURN_IF_ERROR(TraceOf(place.mount_point).status());
    return std::vector{place.mount_point};
  }
  const std::string directory = fs::absolute(options.cluster.directory).lexically_normal();
  MOSA_ASSIGN_OR_RETURN(const auto state, cluster::Load(directory, options.cluster.name));
  std::vector<std::string> mounts;
  for (const cluster::HostPlan& host : state.plan.hosts) mounts.push_back(host.mount_point);
  return mounts;
}

// Returns the directory that the mounts' processes write to, absolute and without symbolic links.
// Creates it if missing.
Result<std::string> PrepareDirectory(const std::string& directory) {
  std::error_code error;
  std::string real = fs::weakly_canonical(fs::absolute(directory), error).lexically_normal();
  if (error)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", directory, error.message()));
  while (real.size() > 1 && real.ends_with('/')) real.pop_back();
  const auto place = FindMountOfNew(real);
  if (place.ok() && MosaAttribute(place->mount_point, "trace").ok())
    return InvalidArgumentError(fmt::format(
        "{} lies on a Mosa mount, whose trace would trace itself: choose a directory elsewhere",
        real));
  fs::create_directories(real, error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", real, error.message()));
  if (access(real.c_str(), W_OK) != 0)
    return FailedPreconditionError(fmt::format("cannot write to {}: {}", real, strerror(errno)));
  return real;
}

// The trace's state once its file is written, which "stop" does not wait for.
Result<nlohmann::json> AwaitEnd(const std::string& mount) {
  const auto limit = std::chrono::steady_clock::now() + kEndMax;
  for (;;) {
    MOSA_ASSIGN_OR_RETURN(nlohmann::json status, TraceOf(mount));
    if (!status.value("ending", false)) return status;
    if (std::chrono::steady_clock::now() > limit)
      return UnavailableError(
          fmt::format("{} has ended but is still not fully written after {} s, because its disk is "
                      "slow: check later with 'mosa trace show'",
                      status.value("file", ""), kEndMax.count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Starts all traces, or none.
Status StartAll(const std::vector<std::string>& mounts, const TraceControlRequest& options) {
  MOSA_ASSIGN_OR_RETURN(const std::string directory, PrepareDirectory(options.directory));
  const std::string how = options.light ? "light " : options.cold ? "cold " : "full ";
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Status started = Control(mounts[i], how + directory);
    if (started.ok()) continue;
    for (size_t done = 0; done < i; ++done) {
      if (!Control(mounts[done], "stop").ok()) continue;
      const auto status = AwaitEnd(mounts[done]);
      // The answer comes from another process, so the path is checked before it is removed.
      const fs::path file = status.ok() ? status->value("file", "") : "";
      if (file.parent_path() == directory && file.extension() == ".trace") unlink(file.c_str());
    }
    return started;
  }
  return OkStatus();
}

// Has the first status's code and all messages.
Status Joined(const std::vector<Status>& faults) {
  if (faults.empty()) return OkStatus();
  std::string all;
  for (const Status& fault : faults) all += (all.empty() ? "" : "; ") + MessageOf(fault);
  return Status(faults.front().code(), all);
}

// Ends all traces and shows them; DataLoss if one is incomplete.
Status StopAll(const std::vector<std::string>& mounts, bool as_json, bool show) {
  Table table({"FILE", "RECORDS", "DROPPED", "BYTES", "END"});
  nlohmann::json all = nlohmann::json::array();
  std::vector<Status> faults;
  for (const std::string& mount : mounts) {
    const Status stopped = Control(mount, "stop");
    const auto ended = stopped.ok() ? AwaitEnd(mount) : Result<nlohmann::json>(stopped);
    if (!ended.ok()) {
      faults.push_back(ended.status());
      continue;
    }
    nlohmann::json status = *ended;
    for (const char* key : {"refused", "tracing", "ending"}) status.erase(key);
    const auto dropped = status.value("dropped", uint64_t{0});
    const std::string end = status.value("end", "");
    const std::string file = status.value("file", "");
    table.Add({file, fmt::format("{}", status.value("records", uint64_t{0})),
               fmt::format("{}", dropped), HumanBytes(status.value("bytes", int64_t{0})), end});
    all.push_back(std::move(status));
    if (end != kTraceStopped) {
      faults.push_back(DataLossError(fmt::format("{} is not a complete trace: {}", file, end)));
    } else if (dropped > 0) {
      faults.push_back(DataLossError(fmt::format(
          "{} lacks {} records, which arrived faster than they could be written", file, dropped)));
    }
  }
  if (show && as_json) {
    PrintJson(all);
  } else if (show && !all.empty()) {
    table.Print();
  }
  return Joined(faults);
}

// While one exists, signals that would end this program are held back until it asks for them.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&held_, signal);
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // A held signal that would have ended this program, or 0.
  int Pending() const {
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
      if (sigismember(&pending, signal) == 1) return signal;
    return 0;
  }
  int Wait() const {
    const int signal = sigwaitinfo(&held_, nullptr);
    return signal < 0 ? 0 : signal;
  }
  // For a child process before it calls exec.
  void Restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

// Returns the command's exit code, by the rules of a shell.
Result<int> RunToItsEnd(const std::vector<std::string>& words, const HeldSignals& signals) {
  if (const int signal = signals.Pending(); signal != 0) return 128 + signal;
  const pid_t child = fork();
  if (child < 0) return UnavailableError(fmt::format("cannot fork: {}", strerror(errno)));
  if (child == 0) {
    signals.Restore();
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "mosa: cannot run '{}': {}\n", words[0], strerror(errno));
    _exit(127);
  }
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      return UnavailableError(fmt::format("cannot wait: {}", strerror(errno)));
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // Ctrl-C has reached the command directly; the trace ends when the command does.
    const int signal = signals.Wait();
    if (signal == SIGTERM || signal == SIGHUP) kill(child, signal);
  }
}

}  // namespace

Status StartTraces(const TraceControlRequest& options) {
  MOSA_ASSIGN_OR_RETURN(const auto mounts, MountsOf(options));
  MOSA_RETURN_IF_ERROR(StartAll(mounts, options));
  fmt::print(stderr, "Tracing {} to {}{}\n",
             mounts.size() == 1 ? mounts.front() : fmt::format("{} mounts", mounts.size()),
             fs::absolute(options.directory).lexically_normal().string(),
             options.light ? "; bytes are estimated, not traced"
                           : "; files opened from now on do not use passthrough");
  return OkStatus();
}

Status StopTraces(const TraceControlRequest& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const auto mounts, MountsOf(options));
  return StopAll(mounts, as_json, true);
}

Status RunTraced(const TraceControlRequest& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const auto mounts, MountsOf(options));
  const HeldSignals signals;
  MOSA_RETURN_IF_ERROR(StartAll(mounts, options));
  const auto ended = RunToItsEnd(options.command, signals);
  // Standard output belongs to the command; `show` prints the summary.
  const Status stopped = StopAll(mounts, as_json, false);
  if (!ended.ok()) return ended.status();
  if (*ended == 0) return stopped;
  if (!stopped.ok()) fmt::print(stderr, "mosa: {}\n", MessageOf(stopped));
  std::fflush(stdout);
  std::exit(*ended);
}

}  // namespace mosa::cli
