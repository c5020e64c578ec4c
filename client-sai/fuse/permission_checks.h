// PermissionChecks: on a mount that one user alone can use, the mount checks permissions itself.
// The kernel's own check (default_permissions) would ask for a directory's attributes after each
// change of its names. On mounts for several users the kernel checks: it finds names that it has
// cached for one user without asking the mount about another.
#ifndef MOSA_CLIENT_SAI_FUSE_PERMISSION_CHECKS_H_
#define MOSA_CLIENT_SAI_FUSE_PERMISSION_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "client-sai/core/permissions.h"
#include "client-sai/fuse/fuse_api.h"
#include "client-sai/sai/filesystem.h"

namespace mosa::sai {

// Thread-safe. Borrows the filesystem. Each check returns true if it has answered the request with
// an error; blocks like Filesystem::GetAttributes. Those of a mount that leaves them to the kernel,
// or belongs to root, whom nothing is denied, always return false.
class PermissionChecks {
 public:
  PermissionChecks(Filesystem& filesystem, bool enabled)
      : filesystem_(filesystem), enabled_(enabled) {}

  bool enabled() const { return enabled_; }

  // `access` is a sum of kRead, kWrite and kExecute.
  bool Refuses(fuse_req_t request, FileId file, uint32_t access, std::string_view what) const;
  // The access that open(2) with these flags needs.
  bool RefusesOpen(fuse_req_t request, FileId file, uint32_t flags) const;
  // Names are added to or taken from the directory.
  bool RefusesNames(fuse_req_t request, FileId directory, std::string_view what) const {
    return Refuses(request, directory, kWrite | kExecute, what);
  }
  // A directory that goes to another parent changes its "..", and so must be writable, too.
  bool RefusesMove(fuse_req_t request, FileId old_parent, std::string_view old_name,
                   FileId new_parent) const;
  // Takes out of `changes` what is to be ignored.
  bool RefusesChanges(fuse_req_t request, FileId file, bool by_handle,
                      AttributeChanges& changes) const;

 private:
  Filesystem& filesystem_;
  const bool enabled_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PERMISSION_CHECKS_H_
