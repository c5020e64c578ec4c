// Backing files: object descriptors that the kernel reads and writes by itself (FUSE passthrough,
// Linux 6.9, CONFIG_FUSE_PASSTHROUGH, CAP_SYS_ADMIN).
//
// The kernel wants one backing file for all opens of an inode at a time, so a file's descriptor is
// registered by its first passthrough open and forgotten with the last. On libfuse >= 3.17 the
// library's fuse_passthrough_open() could replace the two ioctls here; nothing else would change.
#ifndef MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
#define MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "common/base/status.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Whether a backing file can be registered on /dev/fuse descriptor `device`: tried with a file in
// memory. The error says why not.
Status ProbePassthrough(int device);

// Thread-safe. Borrows the device, which must outlive every call.
class BackingFiles {
 public:
  explicit BackingFiles(int device) : device_(device) {}
  BackingFiles(const BackingFiles&) = delete;
  BackingFiles& operator=(const BackingFiles&) = delete;

  // One more open of `file` by passthrough; registers `descriptor` if it is the first. Returns the
  // id for the open's reply. The caller owes one Release for each success.
  Result<int32_t> Acquire(FileId file, int descriptor);
  // The same for an open that bypasses the page cache: the kernel wants it to name the backing file
  // that the inode has. 0, and nothing owed, if it has none.
  int32_t AcquireIfAny(FileId file);
  // Precondition: an Acquire of `file` is not yet released.
  void Release(FileId file);
  size_t size() const;

 private:
  struct Backing {
    int32_t id = 0;
    uint64_t opens = 0;
  };

  const int device_;
  mutable std::mutex mutex_;  // Held over the ioctls, which do not wait; no other lock is taken.
  std::map<FileId, Backing> backings_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
