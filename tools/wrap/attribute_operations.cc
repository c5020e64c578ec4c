// Attributes, extended attributes, the state of the file system.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/wrap/acting.h"
#include "tools/wrap/operations.h"

namespace mosa::wrap {
namespace {

void ReplyAttributes(fuse_req_t request, const Inode& inode) {
  struct stat attributes {};
  if (fstat(inode.descriptor.get(), &attributes) != 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_attr(request, &attributes, 0);
  }
}

void GetAttributes(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  // With an open file the kernel asks for itself, before it reads from its pages.
  if (info == nullptr && wrap.tracer.on()) wrap.tracer.CountStat();
  ReplyAttributes(request, wrap.InodeOf(number));
}

// 0 or -1 and errno, as what follows.
int SetMode(const Inode& inode, mode_t mode) { return chmod(inode.Path().c_str(), mode); }

int SetOwner(const Inode& inode, const struct stat& wanted, int which) {
  const uid_t uid = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return fchownat(inode.descriptor.get(), "", uid, gid, AT_EMPTY_PATH);
}

// An open file may be cut by who could not open it again.
int SetSize(const Inode& inode, off_t size_bytes, const fuse_file_info* info) {
  const KillingPrivileges killing(sai::RequestKillsPrivileges());
  if (info != nullptr) return ftruncate(FileOf(*info).descriptor.get(), size_bytes);
  return truncate(inode.Path().c_str(), size_bytes);
}

int SetTimes(const Inode& inode, const struct stat& wanted, int which) {
  std::array<timespec, 2> times = {{{0, UTIME_OMIT}, {0, UTIME_OMIT}}};
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    times[0].tv_nsec = UTIME_NOW;
  } else if ((which & FUSE_SET_ATTR_ATIME) != 0) {
    times[0] = wanted.st_atim;
  }
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    times[1].tv_nsec = UTIME_NOW;
  } else if ((which & FUSE_SET_ATTR_MTIME) != 0) {
    times[1] = wanted.st_mtim;
  }
  return utimensat(inode.descriptor.get(), "", times.data(), AT_EMPTY_PATH);
}

int SetAll(const Inode& inode, const struct stat& wanted, int which, const fuse_file_info* info) {
  constexpr int kOwner = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME;
  // A change of owner clears bits of the mode, a cut changes the times.
  if ((which & kOwner) != 0 && SetOwner(inode, wanted, which) != 0) return -1;
  if ((which & FUSE_SET_ATTR_MODE) != 0 && SetMode(inode, wanted.st_mode) != 0) return -1;
  if ((which & FUSE_SET_ATTR_SIZE) != 0 && SetSize(inode, wanted.st_size, info) != 0) return -1;
  if ((which & kTimes) != 0 && SetTimes(inode, wanted, which) != 0) return -1;
  return 0;
}

void SetAttributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
                   fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const Inode& inode = wrap.InodeOf(number);
  sai::TraceEvent event;
  event.kind = TraceKind::kTruncate;
  event.start = wrap.tracer.Now();
  if (SetAll(inode, *wanted, which, info) != 0) {
    fuse_reply_err(request, errno);
    return;
  }
  if ((which & FUSE_SET_ATTR_SIZE) != 0 && wrap.tracer.on()) {
    event.file = inode.file();
    if (info != nullptr) event.handle = FileOf(*info).handle;
    event.size_bytes = static_cast<uint64_t>(wanted->st_size);
    event.pid = PidOf(request);
    wrap.tracer.Note(event);
  }
  ReplyAttributes(request, inode);
}

void StatFilesystem(fuse_req_t request, fuse_ino_t number) {
  struct statvfs status {};
  if (fstatvfs(WrapOf(request).InodeOf(number).descriptor.get(), &status) != 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_statfs(request, &status);
  }
}

// For callers that may use an attribute, the kernel asks for all but system ones, which it leaves
// to their file system; it would ask whether we may. The kernel itself guards POSIX access lists.
bool IsServed(std::string_view name) {
  return !name.starts_with("system.") || name.starts_with("system.posix_acl_");
}

// The `names`, each ended by a NUL, that are served and that the caller may know of.
std::string VisibleNames(std::string_view names, uid_t caller) {
  std::string visible;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('\0'));
    names.remove_prefix(name.size() + 1);
    if (!IsServed(name) || (caller != 0 && name.starts_with("trusted."))) continue;
    visible.append(name).push_back('\0');
  }
  return visible;
}

void GetXattr(fuse_req_t request, fuse_ino_t number, const char* name, size_t size_bytes) {
  std::string value(size_bytes, '\0');
  const std::string path = WrapOf(request).InodeOf(number).Path();
  errno = EOPNOTSUPP;
  const ssize_t bytes =
      IsServed(name) ? getxattr(path.c_str(), name, value.data(), value.size()) : -1;
  if (bytes < 0) {
    fuse_reply_err(request, errno);
  } else if (value.empty()) {  // Asked for no more than how many there are.
    fuse_reply_xattr(request, static_cast<size_t>(bytes));
  } else {
    fuse_reply_buf(request, value.data(), static_cast<size_t>(bytes));
  }
}

void ListXattrs(fuse_req_t request, fuse_ino_t number, size_t size_bytes) {
  std::string names(XATTR_LIST_MAX, '\0');
  const std::string path = WrapOf(request).InodeOf(number).Path();
  const ssize_t bytes = listxattr(path.c_str(), names.data(), names.size());
  if (bytes < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  names = VisibleNames(std::string_view(names).substr(0, static_cast<size_t>(bytes)),
                       fuse_req_ctx(request)->uid);
  if (size_bytes == 0) {
    fuse_reply_xattr(request, names.size());
  } else if (names.size() > size_bytes) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, names.data(), names.size());
  }
}

// By the caller: a list of his takes the set-group-id bit from a file that is not of his group.
void SetXattr(fuse_req_t request, fuse_ino_t number, const char* name, const char* value,
              size_t size_bytes, int flags) {
  if (!IsServed(name)) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  const std::string path = WrapOf(request).InodeOf(number).Path();
  int set = 0;
  {
    const ActingFor caller(AskerOf(request));
    set = setxattr(path.c_str(), name, value, size_bytes, flags);
  }
  ReplyResult(request, set);
}

void RemoveXattr(fuse_req_t request, fuse_ino_t number, const char* name) {
  if (!IsServed(name)) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  const std::string path = WrapOf(request).InodeOf(number).Path();
  ReplyResult(request, removexattr(path.c_str(), name));
}

}  // namespace

int WrapStatx(Wrap& wrap, uint64_t inode, sai::kernel::StatxOut& out) {
  static_assert(sizeof(struct statx) == sizeof(sai::kernel::Statx));
  struct statx attributes {};
  if (wrap.tracer.on()) wrap.tracer.CountStat();
  if (statx(wrap.InodeOf(inode).descriptor.get(), "", AT_EMPTY_PATH,
            STATX_BASIC_STATS | STATX_BTIME, &attributes) != 0)
    return errno;
  std::memcpy(&out.statx, &attributes, sizeof(out.statx));
  return 0;
}

void AddWrapAttributeOperations(fuse_lowlevel_ops& table) {
  table.getattr = GetAttributes;
  table.setattr = SetAttributes;
  table.statfs = StatFilesystem;
  table.getxattr = GetXattr;
  table.listxattr = ListXattrs;
  table.setxattr = SetXattr;
  table.removexattr = RemoveXattr;
}

}  // namespace mosa::wrap
