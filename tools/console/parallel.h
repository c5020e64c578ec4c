// Repeats an operation on many cores.
#ifndef MOSA_TOOLS_CONSOLE_PARALLEL_H_
#define MOSA_TOOLS_CONSOLE_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace mosa::cli {

// Calls one(0) to one(count - 1) on this many threads (0: one per core); they begin in this order.
// After a failure nothing more begins. Returns the first failure.
inline Status InParallel(size_t count, uint32_t threads, const std::function<Status(size_t)>& one) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<size_t> next{0};
  SystemMutex mutex;
  Status status;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      const Status done = one(i);
      if (done.ok()) continue;
      const SystemMutexLock lock(mutex);
      if (status.ok()) status = done;
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(threads, count); ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return status;
}

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_PARALLEL_H_
