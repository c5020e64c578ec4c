// Clock: where shells read the time. SystemClock in production, ManualClock in tests. Cores never
// see one. Now() is wall time; Monotonic() never goes back and is only good for differences. Safe
// from any thread.
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
