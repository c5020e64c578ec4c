// Which host a process is on, as far as passing descriptors goes: two processes with equal
// identities run under one kernel and in one network namespace.
#ifndef MOSA_COMMON_BASE_HOST_IDENTITY_H_
#define MOSA_COMMON_BASE_HOST_IDENTITY_H_

#include <string>

#include "common/base/status.h"

namespace mosa {

// "<boot id>:<inode of the network namespace>". Unavailable, naming the file, if /proc does not
// tell.
Result<std::string> HostIdentity();

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_HOST_IDENTITY_H_
