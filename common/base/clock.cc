#include "common/base/clock.h"

#include <ctime>

namespace mosa {
namespace {

Time Read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return Time{ts.tv_sec * 1'000'000'000 + ts.tv_nsec};
}

}  // namespace

Time SystemClock::Now() const { return Read(CLOCK_REALTIME); }
Time SystemClock::Monotonic() const { return Read(CLOCK_MONOTONIC); }

}  // namespace mosa
