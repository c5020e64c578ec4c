// Turns a failed system call into a Status. The code follows from what the caller should do next;
// the message ends with the text of errno. ENOSPC and EDQUOT map to ResourceExhausted; ENOENT and
// ENXIO to NotFound; EACCES and EPERM to PermissionDenied; EEXIST to AlreadyExists; EINVAL, EFBIG
// and ENAMETOOLONG to InvalidArgument; EIO to DataLoss; EOPNOTSUPP and ENOSYS to Unimplemented;
// ETIMEDOUT and EAGAIN to DeadlineExceeded. Network errors and a lack of descriptors or memory map
// to Unavailable, all others to Internal.
#ifndef MOSA_COMMON_BASE_ERRNO_STATUS_H_
#define MOSA_COMMON_BASE_ERRNO_STATUS_H_

#include <string_view>

#include "common/base/status.h"

namespace mosa {

// `what` names the operation and its object, as in "cannot open /x".
Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_ERRNO_STATUS_H_
