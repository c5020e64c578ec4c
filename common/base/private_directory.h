// Opens directories that another user named to a daemon. The daemon may have rights which that user
// lacks, so these functions refuse paths through symbolic links.
//
// Thread-safe. May wait for the disk.
#ifndef MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_
#define MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_

#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa {

// Opens (O_PATH) the directory at the absolute `path`. No component may be a symbolic link. Create
// files in it with openat(2), so that they land in this very directory. NotFound if it does not
// exist, else FailedPrecondition.
Result<UniqueFd> OpenWithoutLinks(const std::string& path);

// Like OpenWithoutLinks, and also requires that only root and this process' user can create files
// there: one of them owns it, and neither group nor others may write. Otherwise PermissionDenied.
Result<UniqueFd> OpenPrivateDirectory(const std::string& path);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_
