#include "client-sai/fuse/mount_process.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/base/daemon.h"
#include "common/base/errno_status.h"
#include "common/base/log.h"

namespace mosa::sai {

// Object descriptors and connections need more than the usual 1024. Request buffers come and go,
// and should not be mapped and zeroed each time.
void RaiseProcessLimits() {
  rlimit limit{};
  rlim_t most = 0;
  if (std::ifstream("/proc/sys/fs/nr_open") >> most) limit = {most, most};
  // Without CAP_SYS_RESOURCE, use what this process was given.
  if (most == 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  // File blocks pass from thread to thread, so arenas grow in large steps and return only what is
  // far beyond a mount's caches.
  TuneMalloc(64 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
}

Result<UniqueFd> CatchEndSignals() {
  const sigset_t signals = BlockEndSignals({SIGHUP});
  UniqueFd descriptor(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!descriptor) return ErrnoStatus(errno, "cannot wait for signals");
  return descriptor;
}

void WaitForEnd(const KernelSession& session, int signals) {
  std::array<pollfd, 2> ends = {{{signals, POLLIN, 0}, {session.ended_descriptor(), POLLIN, 0}}};
  while (poll(ends.data(), ends.size(), -1) < 0 && errno == EINTR) {
  }
  if (ends[0].revents == 0) {
    LogInfo("the file system was unmounted: exiting");
    return;
  }
  signalfd_siginfo info{};
  if (read(signals, &info, sizeof(info)) == sizeof(info)) {
    LogInfo("{}: unmounting", strsignal(static_cast<int>(info.ssi_signo)));
  }
}

}  // namespace mosa::sai
