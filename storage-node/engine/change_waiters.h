// ChangeWaiters: threads that wait for an object to change, for nodes that copy it. Thread-safe;
// its lock comes after an object's.
#ifndef MOSA_STORAGE_NODE_ENGINE_CHANGE_WAITERS_H_
#define MOSA_STORAGE_NODE_ENGINE_CHANGE_WAITERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>

#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::node {

class ChangeWaiters {
 public:
  // Call when the object of `file` has changed, or was removed.
  void Wake(FileId file);
  // Blocks until `has_changed` returns true, for at most `wait`, or until `give_up`, polled a few
  // times a second, returns true. `has_changed` is asked at first and after each Wake, without a
  // lock held. Returns whether it was true.
  bool Await(FileId file, Duration wait, const std::function<bool()>& has_changed,
             const std::function<bool()>& give_up);

 private:
  SystemMutex mutex_;
  SystemCondVar woken_;
  std::multiset<FileId> files_ ABSL_GUARDED_BY(mutex_);
  uint64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> count_{0};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_CHANGE_WAITERS_H_
