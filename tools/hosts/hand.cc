#include "tools/hosts/hand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

[[noreturn]] void Serve(int channel, pid_t owner, const AnswerFunction& work) {
  // Closes the runner's output and lock, so that programs waiting for them do not wait for this.
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
  dup2(channel, 3);
  syscall(SYS_close_range, 4U, ~0U, 0U);
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
  fcntl(nothing, F_SETFD, FD_CLOEXEC);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  AnswerAll(3, 3, work);
  _exit(0);
}

}  // namespace

Status Hand::Start() {
  MOSA_ASSIGN_OR_RETURN(const UniqueFd theirs, worker_.socket.Connect());
  const pid_t owner = getpid();
  worker_.pid = fork();
  if (worker_.pid < 0)
    return UnavailableError(fmt::format("cannot start a process: {}", strerror(errno)));
  if (worker_.pid == 0) Serve(theirs.get(), owner, work_);
  return OkStatus();
}

Status Hand::Post(const json& question) {
  if (worker_.pid < 0) MOSA_RETURN_IF_ERROR(Start());
  if (!worker_.socket.Send(question)) {
    GiveUp();
    return UnavailableError("a helper process has ended unexpectedly");
  }
  has_question_ = true;
  return OkStatus();
}

Result<std::optional<json>> Hand::Take(Duration at_most) {
  const SystemClock clock;
  const Time limit = clock.Monotonic() + at_most;
  for (;;) {
    if (auto answer = worker_.socket.Next()) {
      has_question_ = false;
      return answer;
    }
    pollfd wait{worker_.socket.fd(), POLLIN, 0};
    const int64_t left_ns = std::max<int64_t>(0, (limit - clock.Monotonic()).ns);
    const int ready = poll(&wait, 1, static_cast<int>((left_ns + 999'999) / 1'000'000));
    if (ready <= 0) return std::optional<json>();
    if (!worker_.socket.Receive()) {
      GiveUp();
      return UnavailableError("a helper process has ended unexpectedly");
    }
  }
}

void Hand::GiveUp() {
  if (worker_.pid > 0) {
    kill(worker_.pid, SIGKILL);
    // One that is stuck is left to the end of this process.
    waitpid(worker_.pid, nullptr, WNOHANG);
  }
  worker_ = {};
  has_question_ = false;
}

}  // namespace mosa::cli
