// Time as integer nanoseconds. `Time` counts from the Unix epoch in a stated time base; `Duration`
// is the difference of two Times. Pure code takes a Time; only shells hold a Clock (clock.h).
#ifndef MOSA_COMMON_BASE_TIME_H_
#define MOSA_COMMON_BASE_TIME_H_

#include <compare>
#include <cstdint>

namespace mosa {

struct Duration {
  int64_t ns = 0;
  constexpr auto operator<=>(const Duration&) const = default;
};

struct Time {
  int64_t ns = 0;
  constexpr auto operator<=>(const Time&) const = default;
};

constexpr Duration Nanoseconds(int64_t n) { return {n}; }
constexpr Duration Microseconds(int64_t n) { return {n * 1'000}; }
constexpr Duration Milliseconds(int64_t n) { return {n * 1'000'000}; }
constexpr Duration Seconds(int64_t n) { return {n * 1'000'000'000}; }

constexpr Time operator+(Time t, Duration d) { return {t.ns + d.ns}; }
constexpr Time operator-(Time t, Duration d) { return {t.ns - d.ns}; }
constexpr Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
constexpr Duration operator*(Duration d, int64_t n) { return {d.ns * n}; }
constexpr Duration operator/(Duration d, int64_t n) { return {d.ns / n}; }

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_TIME_H_
