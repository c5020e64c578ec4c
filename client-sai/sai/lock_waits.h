// LockWaits: which request each wait for a lock stands for, so that it can be cancelled.
// Thread-safe; no method blocks.
#ifndef MOSA_CLIENT_SAI_SAI_LOCK_WAITS_H_
#define MOSA_CLIENT_SAI_SAI_LOCK_WAITS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "client-sai/sai/filesystem.h"
#include "common/base/sync.h"
#include "common/model/ids.h"

namespace mosa::sai {

class LockWaits {
 public:
  LockWaitId Begin() {
    const MutexLock lock(mutex_);
    return LockWaitId{next_++};
  }

  // The wait's request was sent. Its answer may have arrived before.
  void NoteSent(LockWaitId wait, RequestId request) {
    const MutexLock lock(mutex_);
    if (ended_early_.erase(wait.value) == 0) requests_[wait.value] = request;
  }

  void End(LockWaitId wait) {
    const MutexLock lock(mutex_);
    if (requests_.erase(wait.value) == 0) ended_early_.insert(wait.value);
  }

  // Absent if the wait is over.
  std::optional<RequestId> RequestOf(LockWaitId wait) const {
    const MutexLock lock(mutex_);
    const auto it = requests_.find(wait.value);
    if (it == requests_.end()) return std::nullopt;
    return it->second;
  }

 private:
  mutable Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, RequestId> requests_ ABSL_GUARDED_BY(mutex_);
  // Waits that ended before their request's id was known.
  std::set<uint64_t> ended_early_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_LOCK_WAITS_H_
