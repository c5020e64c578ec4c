// The directory that is mounted on: what must be true before, how to take the mount away, and the
// kernel's read-ahead for it.
#ifndef MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_
#define MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace mosa::sai {

// The absolute path of `path` without symbolic links, ready to be mounted on. What a killed
// predecessor left there ("Transport endpoint is not connected") is unmounted. NotFound; or
// FailedPrecondition if it is no directory, or a live Mosa mount.
Result<std::string> PrepareMountPoint(const std::string& path);

// Unmounts; after 2 s of "busy" lazily, so that open files stay usable as long as somebody serves
// them. As another user than root through fusermount3. Failures are logged: there is nothing that a
// caller could do.
void Unmount(const std::string& mount_point);

// Lets the kernel read ahead `bytes` at once on this mount. FailedPrecondition names what was not
// permitted.
Status RaiseReadAhead(const std::string& mount_point, uint64_t bytes);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_POINT_H_
