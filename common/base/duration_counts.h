// DurationCounts: how many durations of which length there were, as a plain value that can be added
// to another, subtracted from a later one, and asked for its quantiles.
//
// Log-linear buckets: each power of two of nanoseconds from 2^10 (1 us) to 2^37 (137 s) is divided
// into eight, so a quantile is off by an eighth at most; what is shorter or longer has one bucket
// each. The same idea as HdrHistogram's, with one precision for all.
#ifndef MOSA_COMMON_BASE_DURATION_COUNTS_H_
#define MOSA_COMMON_BASE_DURATION_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/time.h"

namespace mosa {

inline constexpr int kDurationOctaveFirst = 10;
inline constexpr int kDurationOctaveLast = 36;
inline constexpr int kDurationPartsPerOctaveLog2 = 3;
inline constexpr size_t kDurationBuckets =
    ((kDurationOctaveLast - kDurationOctaveFirst + 1) << kDurationPartsPerOctaveLog2) + 2;

// The bucket of a duration; what is negative counts as none at all.
size_t DurationBucketOf(Duration duration);
// Durations of a bucket are at least its begin, and less than its limit. The last one has no end.
Duration DurationBucketBegin(size_t bucket);
Duration DurationBucketLimit(size_t bucket);

struct DurationCounts {
  std::array<uint64_t, kDurationBuckets> counts{};
  uint64_t sum_ns = 0;
  uint64_t max_ns = 0;

  bool operator==(const DurationCounts&) const = default;

  uint64_t Count() const;
  Duration Mean() const;  // Zero of none.
  // The duration that `per_mille` of all do not exceed, evenly spread within its bucket, and at
  // most the longest. Zero of none.
  Duration Quantile(uint32_t per_mille) const;

  void Add(Duration duration);
  void Add(const DurationCounts& other);
  // What was added after `earlier` was taken of the same counter. The longest of these is known
  // only up to its bucket. Precondition: no count is lower than it was.
  DurationCounts Since(const DurationCounts& earlier) const;
  // True if `earlier` may have been taken of the same counter before.
  bool Contains(const DurationCounts& earlier) const;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_DURATION_COUNTS_H_
