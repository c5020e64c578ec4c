// BufferedBytes: how much a mount holds in the write-behind buffers of all its files, against a
// limit. Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_BUFFERED_BYTES_H_
#define MOSA_CLIENT_SAI_SAI_BUFFERED_BYTES_H_

#include <cstdint>

#include "common/base/sync.h"
#include "common/base/time.h"

namespace mosa::sai {

class BufferedBytes {
 public:
  explicit BufferedBytes(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void Add(uint64_t bytes) {
    const MutexLock lock(mutex_);
    bytes_ += bytes;
  }
  void Remove(uint64_t bytes) {
    const MutexLock lock(mutex_);
    bytes_ -= bytes;
    freed_.notify_all();
  }
  bool HasRoomFor(uint64_t bytes) const {
    const MutexLock lock(mutex_);
    return bytes_ + bytes <= bytes_max_;
  }
  // Blocks until there is room, for at most `wait`.
  void AwaitRoomFor(uint64_t bytes, Duration wait) {
    MutexLock lock(mutex_);
    freed_.wait_for(lock, wait, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return bytes_ + bytes <= bytes_max_;
    });
  }

 private:
  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  CondVar freed_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_BUFFERED_BYTES_H_
