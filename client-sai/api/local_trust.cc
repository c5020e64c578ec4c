#include "client-sai/api/local_trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "common/base/errno_status.h"

namespace mosa::sai {
namespace {

constexpr mode_t kOthersCanReach = 0077;
// Bits beyond reading and writing by the owner: nodes create objects with mode 0600.
constexpr mode_t kNoObjectHas = 07777 & ~mode_t{0600};

bool IsTrusted(uid_t user) { return user == 0 || user == ::geteuid(); }

// True of file systems whose files are not just stored bytes. Opening such a file again may yield
// another object, depending on the opener's rights.
bool IsOfTheKernel(int64_t file_system) {
  constexpr int64_t kConfigFs = 0x62656570;
  constexpr int64_t kMqueueFs = 0x19800202;
  constexpr int64_t kKernel[] = {
      PROC_SUPER_MAGIC,   SYSFS_MAGIC,    DEBUGFS_MAGIC,      TRACEFS_MAGIC,
      SECURITYFS_MAGIC,   SELINUX_MAGIC,  CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
      BPF_FS_MAGIC,       NSFS_MAGIC,     PSTOREFS_MAGIC,     EFIVARFS_MAGIC,
      DEVPTS_SUPER_MAGIC, BINFMTFS_MAGIC, SOCKFS_MAGIC,       ANON_INODE_FS_MAGIC,
      FUSE_SUPER_MAGIC,   kConfigFs,      kMqueueFs};
  return std::find(std::begin(kKernel), std::end(kKernel), file_system) != std::end(kKernel);
}

const char* KindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "directory";
    case S_IFCHR:
    case S_IFBLK:
      return "device";
    case S_IFSOCK:
      return "socket";
    case S_IFIFO:
      return "pipe";
    case S_IFLNK:
      return "symbolic link";
    default:
      return "regular file";
  }
}

Status CheckFile(const struct stat& status, const ObjectTerms& terms) {
  if (!S_ISREG(status.st_mode)) {
    return UnauthenticatedError(
        fmt::format("the descriptor refers to a {}, not a regular file", KindOf(status.st_mode)));
  }
  if (status.st_uid != terms.owner) {
    return UnauthenticatedError(fmt::format(
        "the descriptor's file belongs to user {}, not to user {}", status.st_uid, terms.owner));
  }
  if ((status.st_mode & kNoObjectHas) != 0) {
    return UnauthenticatedError(
        fmt::format("the descriptor's file has mode {:04o}, but objects have at most 0600",
                    status.st_mode & 07777));
  }
  if (status.st_nlink > 1) {
    return UnauthenticatedError(fmt::format(
        "the descriptor's file has {} hard links, but an object has exactly one", status.st_nlink));
  }
  if (terms.device && *terms.device != status.st_dev) {
    return UnauthenticatedError(fmt::format(
        "the descriptor's file is on device {:#x}, but the node's other objects are on {:#x}",
        status.st_dev, *terms.device));
  }
  return OkStatus();
}

}  // namespace

Result<UniqueFd> OpenSocketFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return ErrnoStatus(errno, "cannot open it");
  if (!S_ISSOCK(status.st_mode))
    return UnauthenticatedError(fmt::format("it is a {}", KindOf(status.st_mode)));
  if (!IsTrusted(status.st_uid) || (status.st_mode & kOthersCanReach) != 0) {
    return UnauthenticatedError(
        fmt::format("it belongs to user {} and has mode {:04o}, but must belong to root or user {} "
                    "and have mode 0600",
                    status.st_uid, status.st_mode & 07777, ::geteuid()));
  }
  return file;
}

Result<uid_t> TrustedPeer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return ErrnoStatus(errno, "cannot identify the process that listens on it");
  if (!IsTrusted(peer.uid)) {
    return UnauthenticatedError(
        fmt::format("user {} listens on it (process {}), but only root or user {} may", peer.uid,
                    peer.pid, ::geteuid()));
  }
  return peer.uid;
}

Result<dev_t> CheckObjectDescriptor(int descriptor, const ObjectTerms& terms) {
  struct stat status {};
  struct statfs file_system {};
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fstat(descriptor, &status) != 0 || ::fstatfs(descriptor, &file_system) != 0)
    return ErrnoStatus(errno, "cannot inspect the descriptor");
  MOSA_RETURN_IF_ERROR(CheckFile(status, terms));
  if (IsOfTheKernel(file_system.f_type)) {
    return UnauthenticatedError(fmt::format(
        "the descriptor's file system, of type {:#x}, cannot store objects", file_system.f_type));
  }
  const int wanted = terms.write ? O_RDWR : O_RDONLY;
  if ((flags & O_PATH) != 0 || (flags & O_APPEND) != 0 || (flags & O_ACCMODE) != wanted) {
    return UnauthenticatedError(fmt::format("the descriptor has flags {:#o}, but {} was requested",
                                            flags, terms.write ? "O_RDWR" : "O_RDONLY"));
  }
  return status.st_dev;
}

}  // namespace mosa::sai
