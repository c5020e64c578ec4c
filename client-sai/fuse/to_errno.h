// The errno that a program sees for a Failure: from its reason, or else from its code. Never 0.
// Never ENOSYS, because the kernel would conclude that the operation does not exist, and remember
// it.
#ifndef MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_
#define MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_

#include "common/model/messages.h"

namespace mosa::sai {

int ToErrno(const Failure& failure);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_
