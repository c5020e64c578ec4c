// Identifies the boot and the host on which a process runs. Two processes with equal host
// identities share one kernel and one network namespace, so they can pass descriptors to each
// other.
#ifndef MOSA_COMMON_BASE_HOST_IDENTITY_H_
#define MOSA_COMMON_BASE_HOST_IDENTITY_H_

#include <string>

#include "common/base/status.h"

namespace mosa {

// Returns the kernel's boot id, which changes at each boot. Unavailable if /proc does not tell; the
// message names the file.
Result<std::string> BootId();

// Returns "<boot id>:<inode of the network namespace>". Unavailable if /proc does not tell; the
// message names the file.
Result<std::string> HostIdentity();

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_HOST_IDENTITY_H_
