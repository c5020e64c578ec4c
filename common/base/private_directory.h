// Directories that somebody else has named to a daemon, which may have rights that he lacks.
//
// Safe from any thread. May wait for the disk.
#ifndef MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_
#define MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_

#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa {

// Opens (O_PATH) the directory at the absolute `path`, of which no component may be a symbolic
// link: make files in it with openat(2), so that they are in this one. NotFound if there is none,
// FailedPrecondition if it cannot be opened so.
Result<UniqueFd> OpenWithoutLinks(const std::string& path);

// The same of a directory in which nobody but root and this process' user can make files: it
// belongs to one of these, and neither its group nor others may write. Else PermissionDenied.
Result<UniqueFd> OpenPrivateDirectory(const std::string& path);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_PRIVATE_DIRECTORY_H_
