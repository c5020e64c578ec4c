#include "storage-node/engine/change_waiters.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace mosa::node {
namespace {

// After a first change, waits this long so that one wake-up covers the changes right after it.
constexpr std::chrono::milliseconds kGather{1};
// How often a waiter checks whether its answer is still wanted.
constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

void ChangeWaiters::Wake(FileId file) {
  if (count_ == 0) return;
  const SystemMutexLock lock(mutex_);
  if (!files_.contains(file)) return;
  ++wakes_;
  woken_.notify_all();
}

bool ChangeWaiters::Await(FileId file, Duration wait, const std::function<bool()>& has_changed,
                          const std::function<bool()>& give_up) {
  if (has_changed()) return true;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(wait.ns);
  ++count_;
  SystemMutexLock lock(mutex_);
  const auto place = files_.insert(file);
  bool changed = false;
  while (true) {
    const uint64_t seen = wakes_;  // A later change ends the wait below at once.
    lock.unlock();
    changed = has_changed();
    const bool over = changed || Clock::now() >= end || give_up();
    lock.lock();
    if (over) break;
    woken_.wait_until(lock, std::min(end, Clock::now() + kLookEvery),
                      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wakes_ != seen; });
  }
  files_.erase(place);
  lock.unlock();
  --count_;
  if (changed) std::this_thread::sleep_for(kGather);
  return changed;
}

}  // namespace mosa::node
