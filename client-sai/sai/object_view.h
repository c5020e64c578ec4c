// ObjectView: what is being read of an object on this host, mapped into memory, so that the kernel
// copies a reply straight out of the object.
//
// Only the kernel may touch such bytes: when somebody cuts the object, a program that did would be
// ended by SIGBUS, while write(2) answers EFAULT. Mapped holes are given pages when they are read,
// so only ranges without holes may be asked for.
#ifndef MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_
#define MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

#include "common/model/ranges.h"

namespace mosa::sai {

// Views one open file. Thread-safe. Keeps two windows of 32 MiB, since reads ahead may come in any
// order; replaced windows stay mapped while somebody uses their bytes. All views of a
// process have at most 256 windows.
class ObjectView {
 public:
  static constexpr uint64_t kWindowBytes = 32 << 20;
  static constexpr int kWindowsMax = 256;

  // The bytes of `range` of `object`, which owns `descriptor`. Null if they lie in two windows, or
  // cannot be mapped: to be read in another way.
  std::shared_ptr<const std::byte> Map(const std::shared_ptr<const void>& object, int descriptor,
                                       ByteRange range);
  // From now on everything is to be read in another way: the object is cut while it is read.
  void GiveUp();

 private:
  struct Window;

  std::mutex mutex_;
  std::array<std::shared_ptr<const Window>, 2> windows_;  // Guarded by mutex_; last used first.
  bool given_up_ = false;                                 // Guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_OBJECT_VIEW_H_
