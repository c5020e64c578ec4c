// A library to preload: the wall clock of the process is off by MOSA_TEST_SKEW_S seconds, as on a
// host whose clock was never set. Monotonic clocks are true.
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <cstdlib>

namespace {

time_t SkewSeconds() {
  const char* text = std::getenv("MOSA_TEST_SKEW_S");
  return text == nullptr ? 0 : std::atol(text);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  using Function = int (*)(clockid_t, struct timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  static const time_t skew_s = SkewSeconds();
  const int result = real(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += skew_s;
  }
  return result;
}

extern "C" int gettimeofday(struct timeval* time, void*) noexcept {
  struct timespec now {};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}
