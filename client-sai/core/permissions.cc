#include "client-sai/core/permissions.h"

#include <sys/stat.h>

namespace mosa::sai {
namespace {

constexpr uint32_t kBits = kRead | kWrite | kExecute;

bool IsInGroup(const Credentials& who, uint32_t gid) {
  return who.gid == gid || (who.in_group && who.in_group(gid));
}

// Whether one of the times is set to something other than now; the owner alone may do that. Setting
// only one of them to now is such a change, too.
bool SetsTimes(const AttributeChanges& changes) {
  if (changes.access_time || changes.modify_time) return true;
  return changes.access_time_now != changes.modify_time_now && !changes.size_bytes;
}

}  // namespace

bool MayAccess(const Attributes& file, const Credentials& who, uint32_t access) {
  const uint32_t mode = file.permissions;
  if (who.uid == 0) {
    const bool executes = (access & kExecute) != 0 && file.type != FileType::kDirectory;
    return !executes || (mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
  }
  uint32_t granted = mode & kBits;
  if (who.uid == file.uid)
    granted = mode >> 6 & kBits;
  else if (const uint32_t of_group = mode >> 3 & kBits;
           of_group != granted && IsInGroup(who, file.gid))
    granted = of_group;
  return (access & ~granted) == 0;
}

Denial CheckChanges(const Attributes& file, const Credentials& who, bool by_handle,
                    AttributeChanges& changes) {
  if (who.uid == 0) return Denial::kNone;
  const bool is_owner = who.uid == file.uid;
  if (changes.uid && (!is_owner || *changes.uid != file.uid)) return Denial::kOwner;
  if (changes.gid && (!is_owner || (*changes.gid != file.gid && !IsInGroup(who, *changes.gid))))
    return Denial::kOwner;
  if (changes.permissions && !is_owner) return Denial::kOwner;
  if (SetsTimes(changes) && !is_owner) return Denial::kOwner;
  const bool touches = changes.access_time_now && changes.modify_time_now && !is_owner;
  const bool resizes = changes.size_bytes && !by_handle;
  if ((touches || resizes) && !MayAccess(file, who, kWrite)) return Denial::kAccess;
  if (changes.permissions && (*changes.permissions & S_ISGID) != 0 &&
      !IsInGroup(who, changes.gid.value_or(file.gid)))
    *changes.permissions &= ~static_cast<uint32_t>(S_ISGID);
  return Denial::kNone;
}

}  // namespace mosa::sai
