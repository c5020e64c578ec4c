// Backing files: object descriptors that the kernel reads and writes directly (FUSE passthrough,
// Linux 6.9, CONFIG_FUSE_PASSTHROUGH, CAP_SYS_ADMIN).
//
// The kernel wants one backing file for all concurrent opens of an inode. So the first passthrough
// open of a file registers its descriptor, and the last one unregisters it. Meanwhile every other
// open must name it too, or fails with EIO. An open that bypasses the page cache also bypasses the
// backing file for reads and writes, but maps the backing file. With libfuse >= 3.17 the library's
// fuse_passthrough_open() could replace the two ioctls here; nothing else would change.
#ifndef MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
#define MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Tests whether a backing file can be registered on the /dev/fuse descriptor `device`, with a file
// in memory. The error says why not.
Status ProbePassthrough(int device);

// True if an open with `flags` that bypasses the backing file for reads and writes, but maps it,
// may succeed. The backing file must still have a name on its node, or hold the file's current
// bytes.
bool MayBeJoined(bool is_linked, bool has_the_bytes, uint32_t flags);

// Thread-safe. Borrows the device, which must outlive every call.
class BackingFiles {
 public:
  explicit BackingFiles(int device) : device_(device) {}
  BackingFiles(const BackingFiles&) = delete;
  BackingFiles& operator=(const BackingFiles&) = delete;

  // Counts a passthrough open of `file`. The first one registers `descriptor`, an object with the
  // file's bytes at `data_version`. Returns the backing id for the reply; each success must be
  // followed by one Release. FailedPrecondition if the kernel has another object registered: the
  // file was stored in a new object while programs still read the old one.
  Result<int32_t> Acquire(FileId file, int descriptor, uint64_t data_version);
  // As Acquire, for an open that bypasses the page cache. `flags` are those of open(2), and the
  // file is at `data_version`. Returns the backing id that the reply must name, or 0 if the file
  // has no backing file; then no Release is due. FailedPrecondition if a mapping would show other
  // bytes than the file's or lose stores, because the node has dropped the backing file.
  Result<int32_t> Join(FileId file, uint32_t flags, uint64_t data_version);
  // Precondition: an Acquire or Join of `file` has not been released yet.
  void Release(FileId file);
  size_t size() const;

 private:
  struct Backing {
    int32_t id = 0;
    uint64_t opens = 0;
    UniqueFd object;
    uint64_t data_version = 0;
  };

  const int device_;
  // Held across the ioctls, which do not block; no other lock is taken meanwhile.
  mutable std::mutex mutex_;
  std::map<FileId, Backing> backings_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
