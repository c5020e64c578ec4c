// What a process that serves a mount is made of, whatever it mounts: limits, signals, the wait for
// its end.
#ifndef MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_
#define MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_

#include "client-sai/fuse/kernel_session.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::sai {

// Descriptors as many as allowed, and memory that is not mapped anew for each request.
void RaiseProcessLimits();

// SIGTERM, SIGINT and SIGHUP as a descriptor; no thread that is started later gets them otherwise.
Result<UniqueFd> CatchEndSignals();

// Returns when somebody has unmounted, or one of these signals has come. Logs which.
void WaitForEnd(const KernelSession& session, int signals);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_MOUNT_PROCESS_H_
