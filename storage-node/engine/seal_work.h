// SealWork: which objects wait to be sealed (core/upkeep.h), for many threads, and how many are not
// sealed. Its lock comes after all others.
#ifndef MOSA_STORAGE_NODE_ENGINE_SEAL_WORK_H_
#define MOSA_STORAGE_NODE_ENGINE_SEAL_WORK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/ids.h"
#include "storage-node/core/upkeep.h"

namespace mosa::node {

class SealWork {
 public:
  // `clock` must outlive it.
  explicit SealWork(const Clock& clock) : clock_(clock) {}

  // Queues the object to be sealed, or recorded, when `rest` is over.
  void Push(FileId file, Duration rest) {
    const SystemMutexLock lock(mutex_);
    queue_.Push(file, clock_.Monotonic() + rest);
    ready_.notify_one();
  }
  void Remove(FileId file) {
    const SystemMutexLock lock(mutex_);
    queue_.Remove(file);
  }
  std::optional<FileId> Pop() {
    const SystemMutexLock lock(mutex_);
    return queue_.Pop(clock_.Monotonic());
  }
  // Blocks until Pop may return something, for at most `wait`, or until Stop.
  void Wait(Duration wait) {
    SystemMutexLock lock(mutex_);
    const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto ready = queue_.next_ready();
      return stopped_ || (ready && *ready <= clock_.Monotonic());
    };
    const auto ready = queue_.next_ready();
    Duration until = wait;
    if (ready) until = std::clamp(*ready - clock_.Monotonic(), Milliseconds(1), wait);
    ready_.wait_for(lock, until, has_work);
  }
  // Ends Wait, and work on objects, permanently.
  void Stop() {
    const SystemMutexLock lock(mutex_);
    stopped_ = true;
    ready_.notify_all();
  }
  bool stopped() const { return stopped_; }

  std::atomic<uint64_t> unsealed_count{0};

 private:
  const Clock& clock_;
  SystemMutex mutex_;
  SystemCondVar ready_;
  SealQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopped_{false};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_SEAL_WORK_H_
