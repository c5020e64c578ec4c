#include "tools/hosts/task_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/clock.h"
#include "tools/cluster/process.h"
#include "tools/hosts/keeper.h"

namespace mosa::cli {
namespace {

constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;
// Longer than any keeper takes.
constexpr Duration kEndMax = Seconds(15);

// What the child needs, made before the fork: afterwards it only makes system calls.
struct Prepared {
  std::vector<std::string> words;
  std::vector<char*> argv;
  int input = -1;
  int output = -1;
  int errors = -1;
  pid_t parent = 0;
};

Duration DurationOf(const timeval& time) {
  return Seconds(time.tv_sec) + Microseconds(time.tv_usec);
}

std::string Script(const TaskCommand& command) {
  const RunHost& host = *command.host;
  std::string text = fmt::format("cd {} || exit {}\n", Quote(host.directory), kCannotRun);
  for (const auto* variables : {&host.environment, &command.environment}) {
    for (const auto& [name, value] : *variables)
      text += fmt::format("export {}={}\n", name, Quote(value));
  }
  std::string words;
  for (const std::string& word : command.argv) words += " " + Quote(word);
  // Standard input is the lifeline: when whoever started the task is gone, the task ends. (Some
  // shells take no "--" after "kill -TERM".)
  return text + fmt::format(
                    "exec 3<&0\n"
                    "setsid --{} </dev/null 3<&- &\n"
                    "task=$!\n"
                    "{{ cat <&3; kill -s TERM -- -$task; sleep 3; kill -s KILL -- -$task; }} "
                    ">/dev/null 2>&1 &\n"
                    "watcher=$!\n"
                    "exec 3<&-\n"
                    "wait $task\n"
                    "code=$?\n"
                    "kill -s KILL -- -$task 2>/dev/null\n"
                    "kill $watcher 2>/dev/null\n"
                    "exit $code\n",
                    words);
}

[[noreturn]] void Refuse(int code, const char* what, const std::string& on) {
  dprintf(2, "mosa run: cannot %s %s: %s\n", what, on.c_str(), strerror(errno));
  _exit(code);
}

[[noreturn]] void RunTask(const TaskCommand& command, const Prepared& prepared) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != prepared.parent) _exit(kCannotRun);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  dup2(prepared.input, 0);
  dup2(prepared.output, 1);
  dup2(prepared.errors, 2);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  const RunHost& host = *command.host;
  if (!host.net_namespace.empty()) {
    const Status entered = cluster::EnterNetNamespace(host.net_namespace);
    if (!entered.ok()) {
      dprintf(2, "mosa run: %s\n", MessageOf(entered).c_str());
      _exit(kCannotRun);
    }
  }
  if (host.exec.empty()) {
    if (chdir(host.directory.c_str()) != 0) Refuse(kCannotRun, "enter", host.directory);
    for (const auto* variables : {&host.environment, &command.environment}) {
      for (const auto& [name, value] : *variables) setenv(name.c_str(), value.c_str(), 1);
    }
  }
  execvp(prepared.argv[0], prepared.argv.data());
  Refuse(errno == ENOENT ? kNotFound : kCannotRun, "run", prepared.words[0]);
}

}  // namespace

std::string Quote(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

TaskProcesses::~TaskProcesses() { EndAll(Milliseconds(0)); }

Result<pid_t> TaskProcesses::Start(const TaskCommand& command) {
  const auto refused = [&](const std::string& what) {
    return FailedPreconditionError(fmt::format("cannot {}: {}", what, strerror(errno)));
  };
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const UniqueFd output(open(command.output_path.c_str(), kFlags, 0666));
  if (!output) return refused("write " + command.output_path);
  const UniqueFd errors(open(command.error_path.c_str(), kFlags, 0666));
  if (!errors) return refused("write " + command.error_path);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return refused("create a pipe");
  const UniqueFd lifeline(ends[0]);
  Running running;
  running.lifeline = UniqueFd(ends[1]);
  UniqueFd input, remote_input;
  if (command.host->exec.empty()) {
    input = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  } else {
    if (pipe2(ends, O_CLOEXEC) != 0) return refused("create a pipe");
    input = UniqueFd(ends[0]);
    remote_input = UniqueFd(ends[1]);
  }
  Prepared prepared;
  prepared.words = command.argv;
  if (!command.host->exec.empty()) {
    prepared.words = command.host->exec;
    prepared.words.push_back(Script(command));
  }
  for (std::string& word : prepared.words) prepared.argv.push_back(word.data());
  prepared.argv.push_back(nullptr);
  prepared.input = input.get();
  prepared.output = output.get();
  prepared.errors = errors.get();
  const pid_t pid = fork();
  if (pid < 0) return refused("start a process");
  if (pid == 0) {
    KeepTask({lifeline.get(), remote_input.get(), held_}, [&, keeper = getpid()] {
      prepared.parent = keeper;
      RunTask(command, prepared);
    });
  }
  running.pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  running_.emplace(pid, std::move(running));
  return pid;
}

std::vector<TaskProcesses::Ended> TaskProcesses::Wait(Duration at_most) {
  std::vector<pollfd> waits;
  for (const auto& [pid, running] : running_) waits.push_back({running.pidfd.get(), POLLIN, 0});
  const int64_t milliseconds = std::max<int64_t>(0, (at_most.ns + 999'999) / 1'000'000);
  poll(waits.data(), waits.size(), static_cast<int>(std::min<int64_t>(milliseconds, 60'000)));
  return Reap();
}

std::vector<TaskProcesses::Ended> TaskProcesses::Reap() {
  std::vector<Ended> all;
  for (auto running = running_.begin(); running != running_.end();) {
    int status = 0;
    const pid_t pid = running->first;
    rusage use{};
    if (wait4(pid, &status, WNOHANG, &use) != pid) {
      ++running;
      continue;
    }
    all.push_back({pid, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                   DurationOf(use.ru_utime) + DurationOf(use.ru_stime)});
    running = running_.erase(running);
  }
  return all;
}

void TaskProcesses::Kill(pid_t pid) {
  if (const auto found = running_.find(pid); found != running_.end())
    found->second.lifeline.reset();
}

std::vector<TaskProcesses::Ended> TaskProcesses::EndAll(Duration grace) {
  const SystemClock clock;
  std::vector<Ended> all;
  const auto wait = [&](Duration time) {
    const Time limit = clock.Monotonic() + time;
    while (!running_.empty() && clock.Monotonic() < limit) {
      const auto ended = Wait(Milliseconds(50));
      all.insert(all.end(), ended.begin(), ended.end());
    }
  };
  for (const auto& [pid, running] : running_)
    send(running.lifeline.get(), "e", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  wait(grace);
  for (auto& [pid, running] : running_) running.lifeline.reset();
  wait(kEndMax);
  return all;
}

}  // namespace mosa::cli
