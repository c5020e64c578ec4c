// Mutex, CondVar, Thread and waiting.
//
// In a program they are those of the standard library. Code that uses nothing else to wait, and to
// ask how long it has waited, can also run in virtual time: MOSA_SYNC_HEADER names a header that
// defines the same names for a scheduler that runs one thread at a time, in an order that a seed
// decides (tests/simulation/virtual_threads.h).
#ifndef MOSA_COMMON_BASE_SYNC_H_
#define MOSA_COMMON_BASE_SYNC_H_

#ifdef MOSA_SYNC_HEADER
#include MOSA_SYNC_HEADER
#else

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "common/base/time.h"

namespace mosa {

using Thread = std::thread;
using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime SteadyNow() { return std::chrono::steady_clock::now(); }
inline void SleepFor(Duration duration) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(duration.ns));
}
// The calling thread's own value of type T.
template <typename T>
T& OfThread() {
  static thread_local T value{};
  return value;
}

// For std::lock_guard and std::unique_lock.
class Mutex {
 public:
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  friend class Signal;
  std::mutex mutex_;
};

// What CondVar is made of.
class Signal {
 public:
  using Lock = std::unique_lock<Mutex>;

  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }
  void wait(Lock& lock) {
    std::unique_lock inner(lock.mutex()->mutex_, std::adopt_lock);
    changed_.wait(inner);
    inner.release();
  }
  bool wait_until(Lock& lock, SteadyTime end) {
    std::unique_lock inner(lock.mutex()->mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(inner, end) == std::cv_status::no_timeout;
    inner.release();
    return in_time;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace mosa

#endif  // MOSA_SYNC_HEADER

namespace mosa {

// As std::condition_variable. Without a condition, every wait may also end without a notification.
class CondVar : public Signal {
 public:
  using Signal::wait;

  template <typename Condition>
  void wait(Lock& lock, Condition condition) {
    while (!condition()) wait(lock);
  }
  // False once `duration` has passed.
  bool wait_for(Lock& lock, Duration duration) {
    return wait_until(lock, SteadyNow() + std::chrono::nanoseconds(duration.ns));
  }
  // Returns the condition as it is in the end.
  template <typename Condition>
  bool wait_for(Lock& lock, Duration duration, Condition condition) {
    const SteadyTime end = SteadyNow() + std::chrono::nanoseconds(duration.ns);
    while (!condition())
      if (!wait_until(lock, end)) return condition();
    return true;
  }
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_SYNC_H_
