// Sizes and times as people write them in flags, configuration files and hints: "64K", "1M", "2G"
// (powers of 1024), "200ms", "5s". InvalidArgument for a sign, missing digits, an unknown unit or a
// value above 2^63-1; the message repeats the text.
#ifndef MOSA_COMMON_BASE_UNITS_H_
#define MOSA_COMMON_BASE_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// Accepts "4096", "4096B", "64K", "64KiB", "1M", "2G", "1T".
Result<int64_t> ParseBytes(std::string_view text);

// Accepts "250us", "200ms", "5s", "10m". A unit is required.
Result<Duration> ParseDuration(std::string_view text);

// Returns the shortest exact form: 1048576 -> "1M", 1000 -> "1000".
std::string FormatBytes(int64_t bytes);

// Returns a rounded form for people: 1536 -> "1.5 KiB".
std::string HumanBytes(int64_t bytes);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_UNITS_H_
