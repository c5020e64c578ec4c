// ObjectView: parts of a local object mapped into memory, so that the kernel copies a reply
// directly out of the object.
//
// Only the kernel may read these bytes. If the object is truncated, a program that read them would
// get SIGBUS, while write(2) returns EFAULT. Reading a mapped hole allocates pages, so map only
// ranges without holes.
#ifndef MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_
#define MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_

#include <array>
#include <cstddef>
#include <memory>

#include "common/base/sync.h"
#include "common/model/ranges.h"

namespace mosa::sai {

// Views one open file. Thread-safe. Keeps two windows of 32 MiB, because prefetching reads may come
// in any order. A replaced window stays mapped while its bytes are in use. All views of a process
// together have at most 256 windows.
class ObjectView {
 public:
  static constexpr uint64_t kWindowBytes = 32 << 20;
  static constexpr int kWindowsMax = 256;

  // Maps `range` of `object`, which owns `descriptor`. Null if the range spans two windows or
  // cannot be mapped: read it in another way.
  std::shared_ptr<const std::byte> Map(const std::shared_ptr<const void>& object, int descriptor,
                                       ByteRange range);
  // Makes Map return null from now on: the object is being truncated while it is read.
  void GiveUp();

 private:
  struct Window;

  Mutex mutex_;
  // Most recently used first.
  std::array<std::shared_ptr<const Window>, 2> windows_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_
