// How much a program writes with the system call that it is in.
//
// The kernel cuts a large direct write into requests of at most max_write bytes, and says of none
// that more will follow. What appends in one call is to be one record, over all mounts.
#ifndef MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_
#define MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_

#include <cstdint>
#include <string_view>

namespace mosa::sai {

// For thread `pid`, which waits in a write for the answer to a request. 0 if it cannot be known: it
// is in another call (io_uring), of another PID namespace, or not this user's to look at.
uint64_t BytesOfWriteCall(int32_t pid);

// The same for the text of /proc/PID/syscall.
uint64_t BytesOfWriteCall(int32_t pid, std::string_view text);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_WRITE_CALL_H_
