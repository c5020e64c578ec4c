// ManagerClock: the manager's time, from the times that its messages carry. What it says is never
// later than the manager's own clock, but for the drift of two clocks. Guarded by its owner.
#ifndef MOSA_CLIENT_SAI_API_MANAGER_CLOCK_H_
#define MOSA_CLIENT_SAI_API_MANAGER_CLOCK_H_

#include "common/base/time.h"

namespace mosa::sai {

class ManagerClock {
 public:
  // Another manager process may have begun: what was learned before says nothing.
  void Begin(Time monotonic, Time manager_now) {
    offset_ = manager_now - monotonic;
    learned_at_ = monotonic;
  }
  // A message that came at `monotonic` said `manager_now`. One that was long under way says too
  // early a time: the best measurement stands until drift may have spoilt it.
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
