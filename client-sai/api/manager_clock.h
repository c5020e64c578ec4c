// ManagerClock: estimates the manager's time from the times in its messages. The estimate is never
// later than the manager's own clock, apart from drift. Guarded by its owner.
#ifndef MOSA_CLIENT_SAI_API_MANAGER_CLOCK_H_
#define MOSA_CLIENT_SAI_API_MANAGER_CLOCK_H_

#include "common/base/time.h"

namespace mosa::sai {

class ManagerClock {
 public:
  // Starts over: another manager process may have begun, so earlier measurements are void.
  void Begin(Time monotonic, Time manager_now) {
    offset_ = manager_now - monotonic;
    learned_at_ = monotonic;
  }
  // A message that arrived at `monotonic` said `manager_now`. A delayed message yields too early a
  // time, so the best measurement is kept until drift may have made it worse than the new one.
  void Learn(Time monotonic, Time manager_now) {
    const Duration aged =
        offset_ - Nanoseconds((monotonic - learned_at_).ns / 1'000'000 * kDriftPerMillion);
    if (manager_now - monotonic >= aged) Begin(monotonic, manager_now);
  }
  Time At(Time monotonic) const { return monotonic + offset_; }

 private:
  static constexpr int64_t kDriftPerMillion = 100;

  Duration offset_;
  Time learned_at_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_MANAGER_CLOCK_H_
