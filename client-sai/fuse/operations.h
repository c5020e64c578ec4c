// The callbacks of one mount: kernel types in, one Filesystem call, a reply out. Nothing is decided
// here but what only the kernel's side knows: backing files, set-user-id bits, interrupted locks.
#ifndef MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_
#define MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_

#include <string>
#include <string_view>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/fuse/kernel_session.h"
#include "client-sai/fuse/lock_waiters.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/trace/tracer.h"

namespace mosa::sai {

// What the callbacks work on; the userdata of the session. Borrows all of them, which outlive the
// session's workers. Thread-safe.
struct Mount {
  Filesystem& filesystem;
  KernelSession& session;
  Tracer& tracer;
  Tracer::Options trace_defaults;  // Host and mount point.
  LockWaiters lock_waiters{filesystem};
};

// The whole table, for KernelSession::Mount with a Mount* as userdata.
fuse_lowlevel_ops MountOperations();

// This mount's counters: Filesystem::StatsJson with what was agreed with the kernel under "fuse".
std::string MountStatsJson(const Mount& mount);

// ---- parts of the table, by what they are about
void AddNameOperations(fuse_lowlevel_ops& table);
void AddFileOperations(fuse_lowlevel_ops& table);
void AddAttributeOperations(fuse_lowlevel_ops& table);
void AddLockOperations(fuse_lowlevel_ops& table);

// ---- what all of them use
inline Mount& MountOf(fuse_req_t request) {
  return *static_cast<Mount*>(fuse_req_userdata(request));
}
Caller CallerOf(fuse_req_t request);
// Replies with the failure's errno. `what` and `file` are for the log.
void ReplyFailure(fuse_req_t request, const Failure& failure, std::string_view what, FileId file);
// Replies 0 or the failure.
void ReplyDone(fuse_req_t request, const Outcome<Done>& done, std::string_view what, FileId file);
// Replies with an entry; takes its lookup back if the kernel no longer waits.
void ReplyEntry(fuse_req_t request, const Outcome<EntryResult>& result, std::string_view what,
                FileId parent);
// Clears set-user-id, and set-group-id of group-executable files, here and in what the kernel has
// cached. Failures are logged: what asked for it has happened.
void KillPrivileges(Mount& mount, FileId file);

// For a trace: the time, or nothing while there is none.
inline Time TraceBegin(const Mount& mount) {
  return mount.tracer.on() ? mount.tracer.Now() : Time{};
}
// For a trace: `file` is now known to be `name` in `parent`.
void TraceName(Mount& mount, FileId parent, std::string_view name, FileId file);

// The kernel's file handle: our handle, and whether it holds a backing file.
struct KernelHandle {
  HandleId handle;
  bool backing = false;
};
inline uint64_t EncodeHandle(KernelHandle handle) {
  return handle.handle.value << 1 | static_cast<uint64_t>(handle.backing);
}
inline KernelHandle DecodeHandle(uint64_t encoded) {
  return {HandleId{encoded >> 1}, (encoded & 1) != 0};
}

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_OPERATIONS_H_
