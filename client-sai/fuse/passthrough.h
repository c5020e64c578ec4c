// Backing files: object descriptors that the kernel reads and writes by itself (FUSE passthrough,
// Linux 6.9, CONFIG_FUSE_PASSTHROUGH, CAP_SYS_ADMIN).
//
// The kernel wants one backing file for all opens of an inode at a time, so a file's descriptor is
// registered by its first passthrough open and forgotten with the last. Meanwhile every other open
// must name it too, or fails with EIO; one that bypasses the page cache reads and writes past it,
// but what it maps is the backing file. On libfuse >= 3.17 the
// library's fuse_passthrough_open() could replace the two ioctls here; nothing else would change.
#ifndef MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
#define MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Whether a backing file can be registered on /dev/fuse descriptor `device`: tried with a file in
// memory. The error says why not.
Status ProbePassthrough(int device);

// Whether an open with `flags`, that reads and writes past the backing file but maps it, may be
// answered: the backing file has a name on its node still, or has the bytes that the file has.
bool MayBeJoined(bool is_linked, bool has_the_bytes, uint32_t flags);

// Thread-safe. Borrows the device, which must outlive every call.
class BackingFiles {
 public:
  explicit BackingFiles(int device) : device_(device) {}
  BackingFiles(const BackingFiles&) = delete;
  BackingFiles& operator=(const BackingFiles&) = delete;

  // One more open of `file` by passthrough; registers `descriptor`, an object that holds the file
  // as it was at `data_version`, if it is the first. Returns the id for the open's reply; the
  // caller owes one Release for each success. FailedPrecondition if the kernel has another object
  // as the file's: this one was stored anew while programs still read the old one.
  Result<int32_t> Acquire(FileId file, int descriptor, uint64_t data_version);
  // The same for an open that bypasses the page cache: the id that the kernel wants it to name. 0,
  // and nothing owed, if the file has no backing file. `flags` are those of open(2), and the file
  // is at `data_version`. FailedPrecondition if a mapping would show other bytes than the file's,
  // or lose what is stored into it: the backing file was dropped by its node.
  Result<int32_t> Join(FileId file, uint32_t flags, uint64_t data_version);
  // Precondition: an Acquire of `file` is not yet released.
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
  mutable std::mutex mutex_;  // Held over the ioctls, which do not wait; no other lock is taken.
  std::map<FileId, Backing> backings_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_PASSTHROUGH_H_
