// The mount point: preparing it, unmounting it, and the kernel's read-ahead for it.
#ifndef MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_
#define MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace mosa::sai {

// Returns the absolute path of `path` without symbolic links, ready to be mounted on. Unmounts what
// a killed predecessor left there ("Transport endpoint is not connected"). NotFound if it does not
// exist; FailedPrecondition if it is not a directory, or is a live Mosa mount.
Result<std::string> PrepareMountPoint(const std::string& path);

// Unmounts. After 2 s of "busy" it unmounts lazily, so that open files stay usable while they are
// served. Uses fusermount3 unless the user is root. Failures are logged, because no caller could
// act on them.
void Unmount(const std::string& mount_point);

// Sets the kernel's read-ahead for this mount to `bytes`. FailedPrecondition names what was not
// permitted.
Status RaiseReadAhead(const std::string& mount_point, uint64_t bytes);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_
