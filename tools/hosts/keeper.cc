#include "tools/hosts/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

// The script there gives the task three seconds (Script() in task_processes.cc).
constexpr Duration kRemoteEndMax = Seconds(6);
constexpr Duration kTermMax = Seconds(1);
// A process that waits in a hanging mount cannot be killed before the mount answers.
constexpr Duration kKillMax = Seconds(5);

void CloseAllBut(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = 0;
  for (const int fd : kept) {
    if (fd < 0) continue;
    const auto own = static_cast<unsigned>(fd);
    if (own > next) syscall(SYS_close_range, next, own - 1, 0U);
    next = own + 1;
  }
  syscall(SYS_close_range, next, ~0U, 0U);
}

class Keeper {
 public:
  Keeper(pid_t task, const Kept& kept) : task_(task), kept_(kept) {}

  [[noreturn]] void Run() {
    while (!status_) {
      if (!WaitForWord(std::nullopt)) continue;
      char word = 0;
      const ssize_t read_bytes = read(kept_.lifeline, &word, 1);
      if (read_bytes == 1) {
        AskToEnd();
      } else if (read_bytes == 0 || errno != EINTR) {
        End();
        break;
      }
    }
    EndDescendants();
    EndAsTask();
  }

 private:
  // True if there is something to read from the lifeline; less than `at_most` if a child ends.
  bool WaitForWord(std::optional<Duration> at_most) {
    pollfd wait{at_most ? -1 : kept_.lifeline, POLLIN, 0};
    timespec limit{};
    if (at_most) limit = {at_most->ns / 1'000'000'000, at_most->ns % 1'000'000'000};
    // SIGCHLD is delivered while this waits, and only then.
    sigset_t none;
    sigemptyset(&none);
    ppoll(&wait, 1, at_most ? &limit : nullptr, &none);
    Reap();
    return wait.revents != 0;
  }

  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == task_) status_ = status;
    }
  }

  void AskToEnd() {
    if (kept_.remote_input >= 0) {
      CloseRemoteInput();
    } else {
      SignalTask(SIGTERM);
    }
  }

  void End() {
    if (kept_.remote_input < 0 && !remote_) return;
    CloseRemoteInput();
    WaitForEnd(kRemoteEndMax);
    SignalTask(SIGTERM);
    WaitForEnd(kTermMax);
  }

  void CloseRemoteInput() {
    if (kept_.remote_input >= 0) close(kept_.remote_input);
    kept_.remote_input = -1;
    remote_ = true;
  }

  void SignalTask(int signal) {
    // Until it is reaped, its number stays its own. A task that does not lead a group yet is alone.
    if (!status_ && kill(-task_, signal) != 0) kill(task_, signal);
  }

  void WaitForEnd(Duration at_most) {
    const Time limit = clock_.Monotonic() + at_most;
    while (!status_ && clock_.Monotonic() < limit) WaitForWord(limit - clock_.Monotonic());
  }

  // A process that loses its parent becomes a child of ours.
  void EndDescendants() {
    const Time limit = clock_.Monotonic() + kKillMax;
    const std::string path = fmt::format("/proc/self/task/{}/children", getpid());
    while (clock_.Monotonic() < limit) {
      std::ifstream children(path);
      bool any = false;
      for (pid_t child = 0; children >> child; any = true) kill(child, SIGKILL);
      Reap();
      if (!any) return;
      WaitForWord(Milliseconds(5));
    }
  }

  [[noreturn]] void EndAsTask() const {
    const int status = status_.value_or(SIGKILL);
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    const int number = WTERMSIG(status);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
  }

  const SystemClock clock_;
  const pid_t task_;
  Kept kept_;
  bool remote_ = false;
  std::optional<int> status_;  // The task's first process', once it has ended.
};

void Ignore(int) {}

}  // namespace

void KeepTask(const Kept& kept, const std::function<void()>& become_task) {
  // A session of its own: Ctrl-C is for the runner.
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGCHLD, Ignore);
  sigset_t child_ends, before;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ends, &before);
  const pid_t task = fork();
  if (task == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    become_task();
  }
  if (task <= 0) _exit(126);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  CloseAllBut({kept.lifeline, kept.remote_input, kept.held});
  Keeper(task, kept).Run();
}

}  // namespace mosa::cli
