// Clock: the source of time for shells. Production uses SystemClock, tests use ManualClock; cores
// take the time as an argument instead.
//
// Now() is wall time. Monotonic() never goes back; only differences between its values are
// meaningful. Thread-safe.
#ifndef MOSA_COMMON_BASE_CLOCK_H_
#define MOSA_COMMON_BASE_CLOCK_H_

#include <atomic>

#include "common/base/time.h"

namespace mosa {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
  virtual Time Monotonic() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time Now() const override;
  Time Monotonic() const override;
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start) : ns_(start.ns) {}
  Time Now() const override { return {ns_.load()}; }
  Time Monotonic() const override { return {ns_.load()}; }
  void Advance(Duration by) { ns_ += by.ns; }

 private:
  std::atomic<int64_t> ns_;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_CLOCK_H_
