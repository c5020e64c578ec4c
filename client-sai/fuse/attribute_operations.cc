// Attributes, extended attributes, statfs.
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/operations.h"

namespace mosa::sai {

namespace {

constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kMountStats = "user.mosa.mount";
constexpr std::string_view kTrace = "user.mosa.trace";
constexpr uint64_t kStatfsBlockBytes = 4096;

void ReplyAttributes(fuse_req_t request, const Outcome<AttributesResult>& result,
                     std::string_view what, FileId file) {
  if (!result.ok()) {
    ReplyFailure(request, result.failure(), what, file);
    return;
  }
  const struct stat attributes = ToStat(file, result->attributes);
  fuse_reply_attr(request, &attributes, ToSeconds(result->attributes_valid));
}

void GetAttributes(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  Mount& mount = MountOf(request);
  if (mount.tracer.on()) mount.tracer.CountStat();
  ReplyAttributes(request, mount.filesystem.GetAttributes(FileId{ino}), "stat", FileId{ino});
}

AttributeChanges ToChanges(const struct stat& attributes, int wanted) {
  AttributeChanges changes;
  if ((wanted & FUSE_SET_ATTR_MODE) != 0) changes.permissions = attributes.st_mode & 07777;
  if ((wanted & FUSE_SET_ATTR_UID) != 0) changes.uid = attributes.st_uid;
  if ((wanted & FUSE_SET_ATTR_GID) != 0) changes.gid = attributes.st_gid;
  if ((wanted & FUSE_SET_ATTR_SIZE) != 0) {
    changes.size_bytes = static_cast<uint64_t>(attributes.st_size);
  }
  if ((wanted & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    changes.access_time_now = true;
  } else if ((wanted & FUSE_SET_ATTR_ATIME) != 0) {
    changes.access_time = FromTimespec(attributes.st_atim);
  }
  if ((wanted & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    changes.modify_time_now = true;
  } else if ((wanted & FUSE_SET_ATTR_MTIME) != 0) {
    changes.modify_time = FromTimespec(attributes.st_mtim);
  }
  return changes;
}

void SetAttributes(fuse_req_t request, fuse_ino_t ino, struct stat* attributes, int wanted,
                   fuse_file_info* info) {
  Mount& mount = MountOf(request);
  AttributeChanges changes = ToChanges(*attributes, wanted);
  if (info != nullptr) changes.handle = DecodeHandle(info->fh).handle;
  // A new owner never inherits the old one's set-user-id bits, whoever gives the file away.
  const bool kills_privileges =
      !changes.permissions && (changes.uid || changes.gid || RequestKillsPrivileges());
  if (kills_privileges) KillPrivileges(mount, FileId{ino});
  auto use = std::make_shared<Tracer::Use>(mount.tracer);
  TraceEvent event;
  event.kind = TraceKind::kTruncate;
  event.start = changes.size_bytes ? TraceBegin(mount) : Time{};
  event.file = FileId{ino};
  if (changes.handle) event.handle = changes.handle->value;
  event.size_bytes = changes.size_bytes.value_or(0);
  event.pid = static_cast<uint32_t>(fuse_req_ctx(request)->pid);
  auto unanswered = std::make_shared<KernelSession::Detached>(mount.session.Detach());
  mount.filesystem.SetAttributes(
      event.file, changes,
      [&mount, request, event, use = std::move(use),
       unanswered = std::move(unanswered)](const Outcome<AttributesResult>& changed) {
        if (event.start != Time{} && changed.ok()) mount.tracer.Note(event);
        ReplyAttributes(request, changed, "setattr", event.file);
      });
}

void StatFilesystem(fuse_req_t request, fuse_ino_t) {
  const Outcome<StatFilesystemReply> status = MountOf(request).filesystem.StatFilesystem();
  if (!status.ok()) {
    ReplyFailure(request, status.failure(), "statfs", kRootFile);
    return;
  }
  struct statvfs out {};
  out.f_bsize = kStatfsBlockBytes;
  out.f_frsize = kStatfsBlockBytes;
  out.f_blocks = status->limit_bytes / kStatfsBlockBytes;
  out.f_bfree = status->free_bytes / kStatfsBlockBytes;
  out.f_bavail = out.f_bfree;
  out.f_files = status->files + status->files_free;
  out.f_ffree = status->files_free;
  out.f_favail = status->files_free;
  out.f_namemax = kNameBytesMax;
  fuse_reply_statfs(request, &out);
}

// ---- extended attributes: only the user namespace exists. The kernel asks for others at every
// exec and ls -l; those requests do not reach the Filesystem.

bool ReplyIfNotUser(fuse_req_t request, std::string_view name) {
  if (name.starts_with(kUserPrefix)) return false;
  fuse_reply_err(request, EOPNOTSUPP);
  return true;
}

void ReplyValue(fuse_req_t request, std::string_view value, size_t size_bytes) {
  if (size_bytes == 0) {
    fuse_reply_xattr(request, value.size());
  } else if (value.size() > size_bytes) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, value.data(), value.size());
  }
}

void GetXattr(fuse_req_t request, fuse_ino_t ino, const char* name, size_t size_bytes) {
  if (ReplyIfNotUser(request, name)) return;
  Mount& mount = MountOf(request);
  if (ino == kRootFile.value && name == kMountStats) {
    ReplyValue(request, MountStatsJson(mount), size_bytes);
    return;
  }
  if (ino == kRootFile.value && name == kTrace) {
    ReplyValue(request, mount.tracer.StatusJson(), size_bytes);
    return;
  }
  const Outcome<std::string> value = mount.filesystem.GetXattr(FileId{ino}, name);
  if (value.ok()) {
    ReplyValue(request, *value, size_bytes);
  } else {
    ReplyFailure(request, value.failure(), "getxattr", FileId{ino});
  }
}

void ListXattrs(fuse_req_t request, fuse_ino_t ino, size_t size_bytes) {
  const Outcome<std::vector<std::string>> names =
      MountOf(request).filesystem.ListXattrs(FileId{ino});
  if (!names.ok()) {
    ReplyFailure(request, names.failure(), "listxattr", FileId{ino});
    return;
  }
  std::string list;
  for (const std::string& name : *names) list.append(name).push_back('\0');
  ReplyValue(request, list, size_bytes);
}

// Handles "full DIR", "cold DIR", "light DIR" and "stop". errno cannot express why a request was
// refused, so the log does, and the attribute until the next change.
void ControlTrace(fuse_req_t request, std::string_view value) {
  Mount& mount = MountOf(request);
  // The mount's process writes files on behalf of the caller.
  const uid_t uid = fuse_req_ctx(request)->uid;
  if (uid != 0 && uid != geteuid()) {
    fuse_reply_err(request, EACCES);
    return;
  }
  const std::string_view directory = value.substr(std::min(value.size(), value.find(' ') + 1));
  Status done = InvalidArgumentError(
      "the trace attribute takes 'full DIR', 'cold DIR', 'light DIR' or 'stop'");
  if (value == "stop") {
    done = mount.tracer.Stop();
  } else if (value.starts_with("full /") || value.starts_with("cold /") ||
             value.starts_with("light /")) {
    Tracer::Options options = mount.trace_defaults;
    options.directory = directory;
    options.light = value.front() == 'l';
    options.cold = value.front() == 'c';
    done = mount.tracer.Start(options);
  }
  if (!done.ok()) mount.refusals.Info("trace '{}': {}", value.substr(0, 200), MessageOf(done));
  mount.tracer.NoteRefusal(done);
  fuse_reply_err(request, done.ok()                                     ? 0
                          : done.code() == StatusCode::kInvalidArgument ? EINVAL
                          : done.code() == StatusCode::kAlreadyExists   ? EEXIST
                                                                        : EBUSY);
}

void SetXattr(fuse_req_t request, fuse_ino_t ino, const char* name, const char* value,
              size_t size_bytes, int flags) {
  if (ReplyIfNotUser(request, name)) return;
  if (ino == kRootFile.value && name == kTrace) {
    ControlTrace(request, {value, size_bytes});
    return;
  }
  const XattrMode mode = (flags & XATTR_CREATE) != 0    ? XattrMode::kCreate
                         : (flags & XATTR_REPLACE) != 0 ? XattrMode::kReplace
                                                        : XattrMode::kAny;
  Mount& mount = MountOf(request);
  const Outcome<Done> done =
      mount.filesystem.SetXattr(FileId{ino}, name, {value, size_bytes}, mode);
  // errno cannot say why a hint was refused, so the log does.
  if (!done.ok())
    mount.refusals.Info("setxattr {} of file {}: {}", name, ino, done.failure().message);
  ReplyDone(request, done, "setxattr", FileId{ino});
}

void RemoveXattr(fuse_req_t request, fuse_ino_t ino, const char* name) {
  if (ReplyIfNotUser(request, name)) return;
  ReplyDone(request, MountOf(request).filesystem.RemoveXattr(FileId{ino}, name), "removexattr",
            FileId{ino});
}

}  // namespace

void AddAttributeOperations(fuse_lowlevel_ops& table) {
  table.getattr = GetAttributes;
  table.setattr = SetAttributes;
  table.statfs = StatFilesystem;
  table.getxattr = GetXattr;
  table.listxattr = ListXattrs;
  table.setxattr = SetXattr;
  table.removexattr = RemoveXattr;
}

}  // namespace mosa::sai
