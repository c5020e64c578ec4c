#include "tools/cluster/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

namespace mosa::cluster {
namespace {

volatile sig_atomic_t interrupted_by = 0;

void OnInterrupt(int signal) {
  if (interrupted_by == 0) interrupted_by = signal;
}

std::vector<char*> Arguments(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void RestoreSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// The child's side of SpawnDaemon; returns only to exit.
[[noreturn]] void RunDaemon(const DaemonCommand& command, int gate) {
  setsid();
  RestoreSignals();
  char go = 0;
  if (read(gate, &go, 1) != 1) _exit(0);
  const int output =
      open(command.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (output < 0 || input < 0) _exit(126);
  dup2(input, 0);
  dup2(output, 1);
  dup2(output, 2);
  // The daemon inherits nothing else that the caller has open, such as a lock or a pipe to its
  // reader.
  syscall(SYS_close_range, 3U, ~0U, 0U);
  if (!command.net_namespace.empty()) {
    const Status entered = EnterNetNamespace(command.net_namespace);
    if (!entered.ok()) {
      dprintf(2, "%s\n", MessageOf(entered).c_str());
      _exit(126);
    }
  }
  execv(command.argv[0].c_str(), Arguments(command.argv).data());
  dprintf(2, "cannot run %s: %s\n", command.argv[0].c_str(), strerror(errno));
  _exit(127);
}

}  // namespace

uint64_t StartTicks(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  // The name in parentheses may hold anything; fields 3 (state) to 22 (start) follow the last ')'.
  const size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return 0;
  for (int i = 4; i <= 22; ++i) fields >> field;
  uint64_t ticks = 0;
  std::from_chars(field.data(), field.data() + field.size(), ticks);
  return ticks;
}

bool IsAlive(const ProcessId& process) {
  return process.pid > 0 && process.start_ticks != 0 &&
         StartTicks(process.pid) == process.start_ticks;
}

void Signal(const ProcessId& process, int signal) {
  if (process.pid <= 0) return;
  // While it is held, the descriptor names this very process; only then compares its start.
  const UniqueFd pidfd(PidfdOpen(process.pid));
  if (!pidfd || !IsAlive(process)) return;
  syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

void EndAll(const std::vector<ProcessId>& processes, Duration grace) {
  const SystemClock clock;
  for (const ProcessId& process : processes) Signal(process, SIGTERM);
  const Time limit = clock.Monotonic() + grace;
  bool killed = false;
  for (const ProcessId& process : processes) {
    while (IsAlive(process)) {
      if (clock.Monotonic() > limit && !killed) {
        for (const ProcessId& each : processes) Signal(each, SIGKILL);
        killed = true;
      }
      if (clock.Monotonic() > limit + Seconds(5)) break;
      Pause(Milliseconds(10));
    }
    waitpid(process.pid, nullptr, WNOHANG);
  }
}

Result<std::string> RunCommand(const std::vector<std::string>& argv, const std::string& input) {
  const UniqueFd in(memfd_create("in", MFD_CLOEXEC));
  const UniqueFd out(memfd_create("out", MFD_CLOEXEC));
  const UniqueFd errors(memfd_create("errors", MFD_CLOEXEC));
  if (!in || !out || !errors ||
      write(in.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    return InternalError(fmt::format("cannot start {}: {}", argv[0], strerror(errno)));
  }
  lseek(in.get(), 0, SEEK_SET);
  const pid_t pid = fork();
  if (pid < 0) return InternalError(fmt::format("cannot start {}: {}", argv[0], strerror(errno)));
  if (pid == 0) {
    // In a session of its own, since we handle Ctrl-C ourselves, between commands.
    setsid();
    RestoreSignals();
    dup2(in.get(), 0);
    dup2(out.get(), 1);
    dup2(errors.get(), 2);
    execvp(argv[0].c_str(), Arguments(argv).data());
    _exit(127);
  }
  const int status = WaitFor(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ReadAll(out.get());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return NotFoundError(fmt::format("the program '{}' is not installed", argv[0]));
  }
  return FailedPreconditionError(
      fmt::format("'{}' failed: {}", fmt::join(argv, " "), LastLine(ReadAll(errors.get()))));
}

Result<ProcessId> SpawnDaemon(const DaemonCommand& command,
                              const std::function<Status(ProcessId)>& record) {
  int gate[2];
  if (pipe2(gate, O_CLOEXEC) != 0) {
    return InternalError(fmt::format("cannot start {}: {}", command.argv[0], strerror(errno)));
  }
  UniqueFd gate_read(gate[0]);
  UniqueFd gate_write(gate[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return InternalError(fmt::format("cannot start {}: {}", command.argv[0], strerror(errno)));
  }
  if (pid == 0) {
    gate_write.reset();
    RunDaemon(command, gate_read.get());
  }
  const ProcessId process{pid, StartTicks(pid)};
  const Status recorded = record(process);
  const bool started = recorded.ok() && write(gate_write.get(), "g", 1) == 1;
  gate_write.reset();
  if (!started) WaitFor(pid);
  MOSA_RETURN_IF_ERROR(recorded);
  return process;
}

Status EnterNetNamespace(const std::string& name) {
  const UniqueFd fd(open(fmt::format("/run/netns/{}", name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return NotFoundError(fmt::format("there is no network namespace '{}'", name));
  if (setns(fd.get(), CLONE_NEWNET) != 0) {
    return PermissionDeniedError(
        fmt::format("cannot enter the network namespace '{}': {}", name, strerror(errno)));
  }
  return OkStatus();
}

std::vector<ProcessId> ProcessesInNetNamespace(const std::string& name) {
  std::vector<ProcessId> processes;
  struct stat wanted {};
  if (stat(fmt::format("/run/netns/{}", name).c_str(), &wanted) != 0) return processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string text = entry.path().filename();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (bad != std::errc{} || end != text.data() + text.size() || pid == getpid()) continue;
    const uint64_t start_ticks = StartTicks(pid);
    struct stat held {};
    if (stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &held) == 0 &&
        held.st_ino == wanted.st_ino && held.st_dev == wanted.st_dev && start_ticks != 0) {
      processes.push_back({pid, start_ticks});
    }
  }
  return processes;
}

InterruptGuard::InterruptGuard() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
}

int InterruptGuard::Interrupted() { return interrupted_by; }

void Pause(Duration time) { poll(nullptr, 0, static_cast<int>(time.ns / 1'000'000)); }

}  // namespace mosa::cluster
