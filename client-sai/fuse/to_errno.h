// The errno that a program sees for a Failure: by its reason, else by its code. Never 0, and never
// ENOSYS, which the kernel would take for "this operation does not exist" and remember.
#ifndef MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_
#define MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_

#include "common/model/messages.h"

namespace mosa::sai {

int ToErrno(const Failure& failure);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_TO_ERRNO_H_
