// The FUSE callbacks of one mount: convert the arguments, call the Filesystem once, reply. They
// decide only what belongs to the kernel's side: backing files, set-user-id bits, interrupted
// locks.
#ifndef MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_
#define MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_

#include <string>
#include <string_view>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/fuse/kernel_session.h"
#include "client-sai/fuse/lock_waiters.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/trace/tracer.h"
#include "common/base/rare_log.h"

namespace mosa::sai {

// The callbacks' context, which is the session's userdata. Borrows its references, which must
// outlive the session's workers. Thread-safe.
struct Mount {
  Filesystem& filesystem;
  KernelSession& session;
  Tracer& tracer;
  Tracer::Options trace_defaults;  // Host and mount point.
  LockWaiters lock_waiters{filesystem};
  RareLog refusals{20};  // Programs can cause them as often as they like.
  RareLog failures{20};
};

// The complete table, for KernelSession::Mount with a Mount* as userdata.
fuse_lowlevel_ops MountOperations();

// This mount's counters: Filesystem::StatsJson, plus the agreement with the kernel under "fuse".
std::string MountStatsJson(const Mount& mount);

// ---- parts of the table, by theme
void AddNameOperations(fuse_lowlevel_ops& table);
void AddFileOperations(fuse_lowlevel_ops& table);
void AddAttributeOperations(fuse_lowlevel_ops& table);
void AddLockOperations(fuse_lowlevel_ops& table);

// ---- shared helpers
inline Mount& MountOf(fuse_req_t request) {
  return *static_cast<Mount*>(fuse_req_userdata(request));
}
Caller CallerOf(fuse_req_t request);
// Replies with the failure's errno; logs `what` and `file`.
void ReplyFailure(fuse_req_t request, const Failure& failure, std::string_view what, FileId file);
// Replies with 0 or the failure.
void ReplyDone(fuse_req_t request, const Outcome<Done>& done, std::string_view what, FileId file);
// Replies with an entry. Takes its lookup back if the kernel no longer waits.
void ReplyEntry(fuse_req_t request, const Outcome<EntryResult>& result, std::string_view what,
                FileId parent);
// Clears set-user-id, and set-group-id of group-executable files, here and in the kernel's cache.
// Failures are logged, because the change that required it has already happened.
void KillPrivileges(Mount& mount, FileId file);

// For tracing: the current time, or Time{} while there is no trace.
inline Time TraceBegin(const Mount& mount) {
  return mount.tracer.on() ? mount.tracer.Now() : Time{};
}
// For tracing: records that `file` has the name `name` in `parent`.
void TraceName(Mount& mount, FileId parent, std::string_view name, FileId file);

// The file handle as the kernel stores it: our handle, whether it holds a backing file, and whether
// it reads a stream.
struct KernelHandle {
  HandleId handle;
  bool backing = false;
  bool stream = false;
};
inline uint64_t EncodeHandle(KernelHandle handle) {
  return handle.handle.value << 2 | static_cast<uint64_t>(handle.stream) << 1 |
         static_cast<uint64_t>(handle.backing);
}
inline KernelHandle DecodeHandle(uint64_t encoded) {
  return {HandleId{encoded >> 2}, (encoded & 1) != 0, (encoded & 2) != 0};
}

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_
