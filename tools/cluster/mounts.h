// Mounts below a cluster's directory: finds and removes them, dead or alive.
#ifndef MOSA_TOOLS_CLUSTER_MOUNTS_H_
#define MOSA_TOOLS_CLUSTER_MOUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cluster {

// Every mount point at or below `directory`, innermost first.
std::vector<std::string> MountsBelow(const std::string& directory);

// Mounts a tmpfs of that size at `path`, for the caller's user alone.
Status MountTmpfs(const std::string& path, int64_t size_bytes);

// Unmounts `path`, lazily if it is busy or its server is dead; without root, by fusermount3.
Status Unmount(const std::string& path);

// Removes `directory` and everything below it. FailedPrecondition, without removing anything, if
// something is still mounted there.
Status RemoveDirectory(const std::string& directory);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_MOUNTS_H_
