// Which boot of which machine a process runs on; and which host it is on, as far as passing
// descriptors goes: two processes with equal identities run under one kernel and in one network
// namespace.
#ifndef MOSA_COMMON_BASE_HOST_IDENTITY_H_
#define MOSA_COMMON_BASE_HOST_IDENTITY_H_

#include <string>

#include "common/base/status.h"

namespace mosa {

// Another one after each boot. Unavailable, naming the file, if /proc does not tell.
Result<std::string> BootId();

// "<boot id>:<inode of the network namespace>". Unavailable, naming the file, if /proc does not
// tell.
Result<std::string> HostIdentity();

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_HOST_IDENTITY_H_
