#include "tools/hosts/hand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/clock.h"
#include "tools/hosts/frame.h"
#include "tools/hosts/send_all.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

// Whether the other side is still there.
bool Receive(int channel, std::string& received) {
  char buffer[65536];
  const ssize_t bytes = recv(channel, buffer, sizeof buffer, MSG_DONTWAIT);
  if (bytes > 0) received.append(buffer, static_cast<size_t>(bytes));
  return bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR));
}

[[noreturn]] void Serve(int channel, pid_t owner, const Hand::Work& work) {
  // A program that waits for the runner's output to end, or its lock, does not wait for its hands.
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
  std::string received;
  pollfd wait{3, POLLIN, 0};
  for (;;) {
    poll(&wait, 1, -1);
    if (!Receive(3, received)) _exit(0);
    if (const auto question = UnpackFrame(received);
        question && !SendAll(3, PackFrame(work(*question))))
      _exit(0);
  }
}

}  // namespace

Status Hand::Start() {
  const auto refused = [](const char* what) {
    return UnavailableError(fmt::format("cannot make a {}: {}", what, strerror(errno)));
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return refused("socket");
  const UniqueFd theirs(ends[0]);
  channel_ = UniqueFd(ends[1]);
  const pid_t owner = getpid();
  pid_ = fork();
  if (pid_ < 0) return refused("process");
  if (pid_ == 0) Serve(theirs.get(), owner, work_);
  return OkStatus();
}

Status Hand::Post(const json& question) {
  if (pid_ < 0) MOSA_RETURN_IF_ERROR(Start());
  if (!SendAll(channel_.get(), PackFrame(question))) {
    GiveUp();
    return UnavailableError("a process of the runner has ended");
  }
  has_question_ = true;
  return OkStatus();
}

Result<std::optional<json>> Hand::Take(Duration at_most) {
  const SystemClock clock;
  const Time limit = clock.Monotonic() + at_most;
  for (;;) {
    if (auto answer = UnpackFrame(received_)) {
      has_question_ = false;
      return answer;
    }
    pollfd wait{channel_.get(), POLLIN, 0};
    const int64_t left_ns = std::max<int64_t>(0, (limit - clock.Monotonic()).ns);
    const int ready = poll(&wait, 1, static_cast<int>((left_ns + 999'999) / 1'000'000));
    if (ready <= 0) return std::optional<json>();
    if (!Receive(channel_.get(), received_)) {
      GiveUp();
      return UnavailableError("a process of the runner has ended");
    }
  }
}

void Hand::GiveUp() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    // One that is stuck is left to the end of this process.
    waitpid(pid_, nullptr, WNOHANG);
  }
  pid_ = -1;
  channel_.reset();
  received_.clear();
  has_question_ = false;
}

}  // namespace mosa::cli
