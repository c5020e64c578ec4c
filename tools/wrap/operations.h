// The callbacks of a wrapped directory: each kernel request is one call on the file that lies
// below, answered as that one answers, and noted in the trace.
//
// Nothing of names and attributes is kept: what others do in the directory is seen at once. Pages
// of files are the kernel's while a file is open, but it asks at each read whether they are the
// file's still, by size and time of change; every open begins without.
#ifndef MOSA_TOOLS_WRAP_OPERATIONS_H_
#define MOSA_TOOLS_WRAP_OPERATIONS_H_

#include <atomic>
#include <string_view>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/fuse/kernel_session.h"
#include "client-sai/trace/tracer.h"
#include "tools/wrap/acting.h"
#include "tools/wrap/inode_table.h"

namespace mosa::wrap {

// What the callbacks work on; the userdata of the session. Borrows what it is made with, which
// outlives the session's workers. Thread-safe.
struct Wrap {
  InodeTable& inodes;
  sai::Tracer& tracer;
  std::atomic<uint64_t> last_handle = 0;  // In the trace.

  // An inode's number is its address.
  Inode& InodeOf(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? inodes.root() : *reinterpret_cast<Inode*>(number);
  }
};

// What is asked of the kernel: as for a mount of a cluster, but locks are the kernel's own, lists
// of a directory come without attributes, nobody recalls pages that have changed below, access
// lists are kept, and the umask is left to us.
inline constexpr uint64_t kWrapFlags =
    (sai::kMountFlags & ~uint64_t{FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_DO_READDIRPLUS |
                                  FUSE_READDIRPLUS_AUTO | FUSE_EXPLICIT_INVAL_DATA}) |
    FUSE_AUTO_INVAL_DATA | FUSE_POSIX_ACL | FUSE_DONT_MASK;

// The whole table, for KernelSession::Mount with a Wrap* as userdata.
fuse_lowlevel_ops WrapOperations();
// For KernelSession::Mount. 0 or an errno.
int WrapStatx(Wrap& wrap, uint64_t inode, sai::kernel::StatxOut& out);

// ---- parts of the table, by what they are about
void AddWrapNameOperations(fuse_lowlevel_ops& table);
void AddWrapFileOperations(fuse_lowlevel_ops& table);
void AddWrapAttributeOperations(fuse_lowlevel_ops& table);

// ---- what all of them use
inline Wrap& WrapOf(fuse_req_t request) { return *static_cast<Wrap*>(fuse_req_userdata(request)); }
inline ActingFor::Caller AskerOf(fuse_req_t request) {
  const fuse_ctx& context = *fuse_req_ctx(request);
  return {context.uid, context.gid, context.pid};
}
inline uint32_t PidOf(fuse_req_t request) {
  return static_cast<uint32_t>(fuse_req_ctx(request)->pid);
}

// An open file; the kernel's handle is its address.
struct WrappedFile {
  UniqueFd descriptor;
  uint64_t handle = 0;  // In the trace.
};
inline WrappedFile& FileOf(const fuse_file_info& info) {
  return *reinterpret_cast<WrappedFile*>(info.fh);
}

// Replies 0, or errno if `result` of a system call is negative.
void ReplyResult(fuse_req_t request, int result);
// Notes that `inode` is called `name` in `parent`, if there is a trace.
void NoteName(Wrap& wrap, const Inode& parent, std::string_view name, const Inode& inode);
// What the kernel is told of a file that was found.
fuse_entry_param EntryOf(const InodeTable::Found& found);
// The mode with which to make something in `parent`: without what the caller's umask takes away,
// unless the directory's default access list says what its files get.
mode_t MaskedMode(fuse_req_t request, const Inode& parent, mode_t mode);

}  // namespace mosa::wrap

#endif  // MOSA_TOOLS_WRAP_OPERATIONS_H_
