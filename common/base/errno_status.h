// A failed system call as a Status: the code by what the caller should do next, the text of errno
// at the end of the sentence. ENOSPC and EDQUOT are ResourceExhausted; ENOENT is NotFound; EACCES
// and EPERM PermissionDenied; EEXIST AlreadyExists; EINVAL and EFBIG InvalidArgument; EIO DataLoss;
// EOPNOTSUPP Unimplemented; ETIMEDOUT and EAGAIN DeadlineExceeded; the network's errors, EMFILE and
// ENOMEM Unavailable; the rest Internal.
#ifndef MOSA_COMMON_BASE_ERRNO_STATUS_H_
#define MOSA_COMMON_BASE_ERRNO_STATUS_H_

#include <string_view>

#include "common/base/status.h"

namespace mosa {

// `what` says what failed and on what: "cannot open /x".
Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_ERRNO_STATUS_H_
