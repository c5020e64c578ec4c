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

#include "common/base/mutex.h"
#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Tests whether a backing file can be registered on the /dev/fuse descriptor `device`, with a file
// in memory. The error says why not.
Status ProbePassthrough(int device);

// What an open that bypasses the backing file for reads and writes, but maps it, would map.
struct JoinedBacking {
  bool is_linked = false;      // It still has a name on its node.
  bool has_the_bytes = false;  // It holds the file's current bytes.
  bool is_current = false;     // It is the object of which the Filesystem gave the descriptor.
};

// True if an open with `flags` may map it: a mapping must not show other bytes than the file's, nor
// lose stores.
bool MayBeJoined(const JoinedBacking& backing, uint32_t flags);

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
  // As Acquire, for an open that bypasses the page cache. `flags` are those of open(2);
  // `descriptor` is the object that may be mapped, or -1; the file is at `data_version`. Returns
  // the backing id that the reply must name, or 0 if there is none; then no Release is due.
  // FailedPrecondition if a mapping would show other bytes than the file's or lose stores.
  Result<int32_t> Join(FileId file, uint32_t flags, int descriptor, uint64_t data_version);
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

  Result<int32_t> Register(FileId file, int descriptor, uint64_t data_version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int device_;
  RareLog failures_{20};
  // Held across the ioctls, which do not block; only the log's lock is taken meanwhile.
  mutable SystemMutex mutex_;
  std::map<FileId, Backing> backings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
