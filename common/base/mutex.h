// SystemMutex, SystemMutexLock and SystemCondVar: those of the standard library, for code that
// waits in the machine's time only. Code that must also wait in virtual time uses Mutex, MutexLock
// and CondVar of common/base/sync.h.
//
// Members that a mutex guards are marked ABSL_GUARDED_BY, and functions that need it held
// ABSL_EXCLUSIVE_LOCKS_REQUIRED: clang refuses code that does otherwise (tests/tidy/locks.py).
#ifndef MOSA_COMMON_BASE_MUTEX_H_
#define MOSA_COMMON_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "common/base/time.h"

namespace mosa {

using SteadyTime = std::chrono::steady_clock::time_point;

class ABSL_LOCKABLE SystemMutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  // Tells clang that the caller holds it, where clang cannot see that. Does nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class SystemSignal;
  std::mutex mutex_;
};

// What SystemCondVar is made of.
class SystemSignal {
 public:
  static SteadyTime Now() { return std::chrono::steady_clock::now(); }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }
  void wait(SystemMutex& mutex) {
    std::unique_lock inner(mutex.mutex_, std::adopt_lock);
    changed_.wait(inner);
    inner.release();
  }
  bool wait_until(SystemMutex& mutex, SteadyTime end) {
    std::unique_lock inner(mutex.mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(inner, end) == std::cv_status::no_timeout;
    inner.release();
    return in_time;
  }

 private:
  std::condition_variable changed_;
};

template <typename Mutex, typename Signal>
class BasicCondVar;

// Holds a mutex until unlock() or its own end.
template <typename Mutex>
class ABSL_SCOPED_LOCKABLE BasicMutexLock {
 public:
  explicit BasicMutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    lock();
  }
  // The caller holds it, and gives it to the new object.
  BasicMutexLock(Mutex& mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      : mutex_(mutex), held_(true) {}
  ~BasicMutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.unlock();
  }
  BasicMutexLock(const BasicMutexLock&) = delete;
  BasicMutexLock& operator=(const BasicMutexLock&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
    held_ = true;
  }
  void unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    held_ = false;
    mutex_.unlock();
  }

 private:
  template <typename, typename>
  friend class BasicCondVar;
  Mutex& mutex_;
  bool held_ = false;
};

// As std::condition_variable. Without a condition, every wait may also end without a notification:
// `while (!condition) changed.wait(lock);`. Mark a condition that reads what the mutex guards
// ABSL_EXCLUSIVE_LOCKS_REQUIRED.
template <typename Mutex, typename Signal>
class BasicCondVar {
 public:
  using Lock = BasicMutexLock<Mutex>;

  void notify_one() { signal_.notify_one(); }
  void notify_all() { signal_.notify_all(); }

  void wait(Lock& lock) { signal_.wait(lock.mutex_); }
  // False once `end` has come.
  bool wait_until(Lock& lock, SteadyTime end) { return signal_.wait_until(lock.mutex_, end); }
  // With a condition, these return the condition as it is in the end.
  template <typename Condition>
  bool wait_until(Lock& lock, SteadyTime end, Condition condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!condition())
      if (!wait_until(lock, end)) return condition();
    return true;
  }
  template <typename... Condition>
  bool wait_for(Lock& lock, std::chrono::nanoseconds duration, Condition... condition) {
    return wait_until(lock, Signal::Now() + duration, condition...);
  }
  template <typename... Condition>
  bool wait_for(Lock& lock, Duration duration, Condition... condition) {
    return wait_for(lock, std::chrono::nanoseconds(duration.ns), condition...);
  }

 private:
  Signal signal_;
};

using SystemMutexLock = BasicMutexLock<SystemMutex>;
using SystemCondVar = BasicCondVar<SystemMutex, SystemSignal>;

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_MUTEX_H_
