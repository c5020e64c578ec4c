// Permissions: what a process may do with a file, from the file's mode, owner and group, as POSIX
// and Linux (inode_permission and setattr_prepare in fs/) decide. For mounts that one user alone
// can use, whose kernel leaves these checks to the mount.
//
// Pure.
#ifndef MOSA_CLIENT_SAI_CORE_PERMISSIONS_H_
#define MOSA_CLIENT_SAI_CORE_PERMISSIONS_H_

#include <cstdint>
#include <functional>

#include "client-sai/core/attribute_changes.h"
#include "common/model/attributes.h"

namespace mosa::sai {

// Ways to use a file; as in access(2), they add up. To execute a directory is to search it.
inline constexpr uint32_t kExecute = 1, kWrite = 2, kRead = 4;

struct Credentials {
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Whether the process is in a supplementary group. Called only if that decides.
  std::function<bool(uint32_t gid)> in_group;
};

enum class Denial : uint8_t {
  kNone = 1,
  kAccess,  // The permission bits deny it: EACCES.
  kOwner,   // Only the owner may do this: EPERM.
};

// `access` is not 0.
bool MayAccess(const Attributes& file, const Credentials& who, uint32_t access);

// Whether `who` may make the changes. `by_handle`: the new size is that of a file open for writing.
// If so, `changes` become what is to be done: a set-group-id bit for a group that is not the
// process's own is taken out.
Denial CheckChanges(const Attributes& file, const Credentials& who, bool by_handle,
                    AttributeChanges& changes);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_PERMISSIONS_H_
