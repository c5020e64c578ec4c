// The process around a mount, whatever it mounts: limits, signals, the wait for its end.
#ifndef MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_
#define MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_

#include "client-sai/fuse/kernel_session.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

// Raises the descriptor limit as far as allowed, and keeps malloc from mapping memory for each
// request.
void RaiseProcessLimits();

// Returns a descriptor that delivers SIGTERM, SIGINT and SIGHUP. Threads started later do not get
// them otherwise.
Result<UniqueFd> CatchEndSignals();

// Blocks until the mount is unmounted or one of these signals arrives; logs which.
void WaitForEnd(const KernelSession& session, int signals);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_
