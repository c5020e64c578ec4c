// Room: how much of the node's limit objects and writes in progress take (core/admission.h), for
// many threads. Its lock comes after all others.
#ifndef MOSA_STORAGE_NODE_ENGINE_ROOM_H_
#define MOSA_STORAGE_NODE_ENGINE_ROOM_H_

#include <cstdint>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/ids.h"
#include "storage-node/core/admission.h"

namespace mosa::node {

class Room {
 public:
  explicit Room(uint64_t limit_bytes) : limit_bytes_(limit_bytes), admission_(limit_bytes) {}

  Status Reserve(FileId file, uint64_t bytes) {
    const SystemMutexLock lock(mutex_);
    return admission_.Reserve(file, bytes);
  }
  void GiveBack(uint64_t reserved_bytes) {
    const SystemMutexLock lock(mutex_);
    admission_.GiveBack(reserved_bytes);
  }
  void Account(uint64_t before_bytes, uint64_t after_bytes) {
    const SystemMutexLock lock(mutex_);
    admission_.Account(before_bytes, after_bytes);
  }
  uint64_t used_bytes() const {
    const SystemMutexLock lock(mutex_);
    return admission_.used_bytes();
  }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const uint64_t limit_bytes_;
  mutable SystemMutex mutex_;
  Admission admission_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_ROOM_H_
