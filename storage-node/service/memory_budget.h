// MemoryBudget: how much memory all connections together may hold for bytes that cannot be
// streamed (appends, and reads of objects that local programs may be changing). Who would exceed it
// waits a bounded time for others to finish. Safe from any thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_MEMORY_BUDGET_H_
#define MOSA_STORAGE_NODE_SERVICE_MEMORY_BUDGET_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "common/base/status.h"

namespace mosa::node {

class MemoryBudget;

// Bytes taken out of a budget, given back at the end of its life. The budget must outlive it.
class BudgetBuffer {
 public:
  BudgetBuffer() = default;
  BudgetBuffer(MemoryBudget* budget, size_t size_bytes)
      : budget_(budget),
        size_bytes_(size_bytes),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(size_bytes)) {}
  BudgetBuffer(BudgetBuffer&& other) noexcept { *this = std::move(other); }
  BudgetBuffer& operator=(BudgetBuffer&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  inline ~BudgetBuffer();

  std::span<std::byte> bytes() { return {bytes_.get(), size_bytes_}; }

 private:
  MemoryBudget* budget_ = nullptr;
  size_t size_bytes_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit_bytes) : limit_bytes_(limit_bytes), free_bytes_(limit_bytes) {}

  // Unavailable if there is no room within `wait`. Precondition: at most the limit.
  Result<BudgetBuffer> Take(size_t bytes, std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, wait, [&] { return free_bytes_ >= bytes; }))
      return UnavailableError("the node is busy: its buffers are in use; try again");
    free_bytes_ -= bytes;
    lock.unlock();
    return BudgetBuffer(this, bytes);
  }
  size_t limit_bytes() const { return limit_bytes_; }
  size_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return limit_bytes_ - free_bytes_;
  }
  void GiveBack(size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_bytes_ += bytes;
    freed_.notify_all();
  }

 private:
  const size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  size_t free_bytes_;  // Guarded by mutex_.
};

inline BudgetBuffer::~BudgetBuffer() {
  bytes_.reset();
  if (budget_ != nullptr) budget_->GiveBack(size_bytes_);
}

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_MEMORY_BUDGET_H_
