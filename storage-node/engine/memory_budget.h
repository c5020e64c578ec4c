// MemoryBudget: limits the memory of all connections for bytes that cannot be streamed: those of
// objects that local programs may be changing, and those that the node verifies before it sends
// them. A request beyond the limit waits a bounded time for others to finish.
//
// Without shares, one client that receives slowly could hold all of it for as long as a frame may
// take. So each account (ConnectionBook's clients) has a share, and waits for its own requests to
// finish before it gets more. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_MEMORY_BUDGET_H_
#define MOSA_STORAGE_NODE_ENGINE_MEMORY_BUDGET_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace mosa::node {

class MemoryBudget;

// How long a request waits for memory before it is refused.
inline constexpr std::chrono::seconds kBudgetWait{5};

// Bytes taken from a budget, given back on destruction. The budget must outlive it.
class BudgetBuffer {
 public:
  BudgetBuffer() = default;
  BudgetBuffer(MemoryBudget* budget, std::string account, size_t size_bytes)
      : budget_(budget),
        account_(std::move(account)),
        size_bytes_(size_bytes),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(size_bytes)) {}
  BudgetBuffer(BudgetBuffer&& other) noexcept { *this = std::move(other); }
  BudgetBuffer& operator=(BudgetBuffer&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(account_, other.account_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  inline ~BudgetBuffer();

  std::span<std::byte> bytes() { return {bytes_.get(), size_bytes_}; }

 private:
  MemoryBudget* budget_ = nullptr;
  std::string account_;
  size_t size_bytes_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

class MemoryBudget {
 public:
  MemoryBudget(size_t limit_bytes, size_t share_bytes)
      : limit_bytes_(limit_bytes), share_bytes_(share_bytes), free_bytes_(limit_bytes) {}

  // Unavailable if there is no room within `wait`. A request of an account that holds nothing may
  // exceed its share. Precondition: bytes <= limit.
  Result<BudgetBuffer> Take(const std::string& account, size_t bytes,
                            std::chrono::milliseconds wait) {
    SystemMutexLock lock(mutex_);
    const auto fits = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto used = used_by_.find(account);
      return free_bytes_ >= bytes &&
             (used == used_by_.end() || used->second + bytes <= share_bytes_);
    };
    if (!freed_.wait_for(lock, wait, fits))
      return UnavailableError("the node is busy: its buffers are in use; try again");
    if (bytes > 0) used_by_[account] += bytes;
    free_bytes_ -= bytes;
    lock.unlock();
    return BudgetBuffer(this, account, bytes);
  }
  size_t limit_bytes() const { return limit_bytes_; }
  size_t used_bytes() const {
    const SystemMutexLock lock(mutex_);
    return limit_bytes_ - free_bytes_;
  }
  void GiveBack(const std::string& account, size_t bytes) {
    const SystemMutexLock lock(mutex_);
    const auto used = used_by_.find(account);
    if (used != used_by_.end() && (used->second -= bytes) == 0) used_by_.erase(used);
    free_bytes_ += bytes;
    freed_.notify_all();
  }

 private:
  const size_t limit_bytes_;
  const size_t share_bytes_;  // Maximum for one account.
  mutable SystemMutex mutex_;
  SystemCondVar freed_;
  size_t free_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> used_by_ ABSL_GUARDED_BY(mutex_);  // Only accounts that hold some.
};

inline BudgetBuffer::~BudgetBuffer() {
  bytes_.reset();
  if (budget_ != nullptr) budget_->GiveBack(account_, size_bytes_);
}

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_MEMORY_BUDGET_H_
