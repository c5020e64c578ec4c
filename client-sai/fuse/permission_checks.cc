#include "client-sai/fuse/permission_checks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "client-sai/fuse/operations.h"

namespace mosa::sai {
namespace {

// Among the flags of an open for execve(2): __FMODE_EXEC in the kernel's include/linux/fs.h.
constexpr uint32_t kOpenToExecute = 0x20;

// In the kernel's words: NGROUPS_MAX.
constexpr int kGroupsMax = 65536;

Credentials CredentialsOf(fuse_req_t request) {
  const fuse_ctx* const context = fuse_req_ctx(request);
  // The kernel says nothing about supplementary groups; libfuse reads them from /proc.
  const auto in_group = [request](uint32_t gid) {
    std::vector<gid_t> groups(32);
    int count = fuse_req_getgroups(request, static_cast<int>(groups.size()), groups.data());
    if (count > static_cast<int>(groups.size())) {
      groups.resize(std::min(count, kGroupsMax));
      count = fuse_req_getgroups(request, static_cast<int>(groups.size()), groups.data());
    }
    const auto end = groups.begin() + std::clamp(count, 0, static_cast<int>(groups.size()));
    return std::find(groups.begin(), end, gid) != end;
  };
  return {context->uid, context->gid, in_group};
}

}  // namespace

bool PermissionChecks::Refuses(fuse_req_t request, FileId file, uint32_t access,
                               std::string_view what) const {
  if (!enabled_) return false;
  const Outcome<Attributes> attributes = filesystem_.GetUnsettledAttributes(file);
  if (!attributes.ok()) {
    ReplyFailure(request, attributes.failure(), what, file);
    return true;
  }
  if (MayAccess(*attributes, CredentialsOf(request), access)) return false;
  fuse_reply_err(request, EACCES);
  return true;
}

bool PermissionChecks::RefusesOpen(fuse_req_t request, FileId file, uint32_t flags) const {
  if (!enabled_) return false;
  uint32_t access = 0;
  if ((flags & O_ACCMODE) != O_WRONLY) access |= (flags & kOpenToExecute) != 0 ? kExecute : kRead;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) access |= kWrite;
  return Refuses(request, file, access, "open");
}

bool PermissionChecks::RefusesMove(fuse_req_t request, FileId old_parent, std::string_view old_name,
                                   FileId new_parent) const {
  if (!enabled_ || old_parent == new_parent) return false;
  const Outcome<EntryResult> moved = filesystem_.Lookup(old_parent, old_name);
  if (!moved.ok()) {
    ReplyFailure(request, moved.failure(), "rename", old_parent);
    return true;
  }
  const FileId file = moved->entry.file;
  if (file.value == 0) return false;  // The rename says so.
  const bool refuses = moved->entry.attributes.type == FileType::kDirectory &&
                       Refuses(request, file, kWrite, "rename");
  filesystem_.Forget(file, 1);
  return refuses;
}

bool PermissionChecks::RefusesChanges(fuse_req_t request, FileId file, bool by_handle,
                                      AttributeChanges& changes) const {
  if (!enabled_) return false;
  const Outcome<Attributes> attributes = filesystem_.GetUnsettledAttributes(file);
  if (!attributes.ok()) {
    ReplyFailure(request, attributes.failure(), "setattr", file);
    return true;
  }
  const Denial denial = CheckChanges(*attributes, CredentialsOf(request), by_handle, changes);
  if (denial == Denial::kNone) return false;
  fuse_reply_err(request, denial == Denial::kAccess ? EACCES : EPERM);
  return true;
}

}  // namespace mosa::sai
