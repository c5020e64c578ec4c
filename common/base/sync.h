// Mutex, MutexLock, CondVar, Thread and waiting.
//
// In a program they are those of the standard library. Code that uses nothing else to wait, and to
// ask how long it has waited, can also run in virtual time: MOSA_SYNC_HEADER names a header that
// defines the same names for a scheduler that runs one thread at a time, in an order that a seed
// decides (tests/simulation/virtual_threads.h). What is linked to such code and compiled without
// that header must not include this one.
#ifndef MOSA_COMMON_BASE_SYNC_H_
#define MOSA_COMMON_BASE_SYNC_H_

#include "common/base/mutex.h"

#ifdef MOSA_SYNC_HEADER
#include MOSA_SYNC_HEADER
#else

#include <thread>

namespace mosa {

using Mutex = SystemMutex;
using Signal = SystemSignal;
using Thread = std::thread;

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

}  // namespace mosa

#endif  // MOSA_SYNC_HEADER

namespace mosa {

using MutexLock = BasicMutexLock<Mutex>;
using CondVar = BasicCondVar<Mutex, Signal>;

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_SYNC_H_
