// The size of the write system call that a program is executing.
//
// The kernel splits a large direct write into requests of at most max_write bytes and does not
// announce further ones. An append by one system call must be one record over all mounts, so the
// mount needs the size of the call.
#ifndef MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_
#define MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_

#include <cstdint>
#include <string_view>

namespace mosa::sai {

// Returns the size for thread `pid`, which waits in a write for the reply to a request. 0 if it is
// unknown: the thread is in another call (io_uring) or PID namespace, or may not be inspected by
// this user.
uint64_t BytesOfWriteCall(int32_t pid);

// Extracts the size from the text of /proc/PID/syscall.
uint64_t BytesOfWriteCall(int32_t pid, std::string_view text);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_
