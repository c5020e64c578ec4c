#include "client-sai/fuse/mount_point.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "common/base/errno_status.h"
#include "common/base/log.h"
#include "common/base/unique_fd.h"
#include "fmt/format.h"

namespace mosa::sai {

namespace {

constexpr int kStaleLayersMax = 16;
constexpr int kBusyRetries = 20;
constexpr auto kBusyPause = std::chrono::milliseconds(100);

struct MountedAt {
  std::string device;  // "major:minor"
  std::string type;
};

// Returns the topmost mount on exactly `path`, from /proc/self/mountinfo. Asking the file system
// itself could hang.
std::optional<MountedAt> FindMount(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<MountedAt> found;
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string id, parent, device, root, target, field;
    fields >> id >> parent >> device >> root >> target;
    while (fields >> field && field != "-") {
    }
    std::string type;
    fields >> type;
    std::string decoded;  // Space, tab, newline and backslash are octal escapes.
    for (size_t i = 0; i < target.size(); ++i) {
      if (target[i] == '\\' && i + 3 < target.size()) {
        decoded.push_back(static_cast<char>(std::stoi(target.substr(i + 1, 3), nullptr, 8)));
        i += 3;
      } else {
        decoded.push_back(target[i]);
      }
    }
    if (decoded == path) found = MountedAt{device, type};
  }
  return found;
}

// Returns 0, or the exit code of fusermount3 (-1: it cannot be run).
int RunFusermount(const std::string& mount_point, bool lazy) {
  std::vector<const char*> arguments = {"fusermount3", "-u", "-q"};
  if (lazy) arguments.push_back("-z");
  arguments.insert(arguments.end(), {"--", mount_point.c_str(), nullptr});
  pid_t pid = 0;
  if (posix_spawnp(&pid, "fusermount3", nullptr, nullptr,
                   const_cast<char* const*>(arguments.data()), environ) != 0) {
    return -1;
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns true if it is unmounted now.
bool TryUnmount(const std::string& mount_point, bool lazy) {
  if (geteuid() == 0) {
    return umount2(mount_point.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0;
  }
  return RunFusermount(mount_point, lazy) == 0;
}

// realpath() fails for a directory whose file system has died, but works for its parent.
Result<std::string> AbsolutePath(const std::string& path) {
  char buffer[PATH_MAX];
  if (realpath(path.c_str(), buffer) != nullptr) return std::string(buffer);
  if (errno != ENOTCONN && errno != ECONNABORTED) {
    return ErrnoStatus(errno, fmt::format("cannot mount on {}", path));
  }
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : trimmed.substr(0, slash);
  if (realpath(parent.c_str(), buffer) == nullptr) {
    return ErrnoStatus(errno, fmt::format("cannot mount on {}", path));
  }
  const std::string absolute(buffer);
  return (absolute == "/" ? "" : absolute) + "/" +
         (slash == std::string::npos ? trimmed : trimmed.substr(slash + 1));
}

}  // namespace

Result<std::string> PrepareMountPoint(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(path));
  struct statx status {};
  // Asks the process that serves a mount there, not the kernel's cache, because it may have just
  // died.
  const auto ask = [&] {
    return statx(AT_FDCWD, absolute.c_str(), AT_STATX_FORCE_SYNC, STATX_TYPE, &status);
  };
  for (int layer = 0; ask() != 0; ++layer) {
    if ((errno != ENOTCONN && errno != ECONNABORTED) || layer == kStaleLayersMax) {
      return ErrnoStatus(errno, fmt::format("cannot mount on {}", absolute));
    }
    if (!TryUnmount(absolute, true)) {
      return FailedPreconditionError(
          fmt::format("cannot remove the dead mount on {}: unmount it first (umount -l {})",
                      absolute, absolute));
    }
    LogInfo("removed a dead mount of an earlier process on {}", absolute);
  }
  if (!S_ISDIR(status.stx_mode)) {
    return FailedPreconditionError(
        fmt::format("cannot mount on {}: it is not a directory", absolute));
  }
  const std::optional<MountedAt> mounted = FindMount(absolute);
  if (mounted && mounted->type.starts_with("fuse.mosa")) {
    return FailedPreconditionError(fmt::format(
        "a live Mosa mount is already on {}: unmount it first (umount {})", absolute, absolute));
  }
  return absolute;
}

void Unmount(const std::string& mount_point) {
  for (int attempt = 0; attempt < kBusyRetries; ++attempt) {
    if (TryUnmount(mount_point, false)) return;
    if (!FindMount(mount_point)) return;  // Another process was faster.
    std::this_thread::sleep_for(kBusyPause);
  }
  LogWarning("{} is in use: unmounting it lazily, so programs with open files there get errors",
             mount_point);
  if (!TryUnmount(mount_point, true)) {
    LogError("cannot unmount {}: {}; run umount -l", mount_point, strerror(errno));
  }
}

Status RaiseReadAhead(const std::string& mount_point, uint64_t bytes) {
  const std::optional<MountedAt> mounted = FindMount(mount_point);
  if (!mounted) {
    return FailedPreconditionError(fmt::format("nothing is mounted on {}", mount_point));
  }
  const std::string path = fmt::format("/sys/class/bdi/{}/read_ahead_kb", mounted->device);
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(bytes / 1024);
  if (!file || write(file.get(), text.data(), text.size()) < 0) {
    return FailedPreconditionError(
        fmt::format("cannot write {} to {}: {}", text, path, strerror(errno)));
  }
  return OkStatus();
}

}  // namespace mosa::sai
