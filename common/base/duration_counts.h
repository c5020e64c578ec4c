// DurationCounts: a histogram of durations. It is a plain value: histograms can be added, an
// earlier one subtracted from a later one, and quantiles read.
//
// Buckets are log-linear, as in HdrHistogram with one fixed precision. Each power of two of
// nanoseconds from 2^10 (1 us) to 2^37 (137 s) is divided into eight, so a quantile is off by at
// most an eighth. One more bucket at each end holds shorter and longer durations.
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

// Returns the bucket of a duration. A negative duration counts as zero.
size_t DurationBucketOf(Duration duration);
// A bucket holds durations in [begin, limit). The last bucket has no upper bound.
Duration DurationBucketBegin(size_t bucket);
Duration DurationBucketLimit(size_t bucket);

struct DurationCounts {
  std::array<uint64_t, kDurationBuckets> counts{};
  uint64_t sum_ns = 0;
  uint64_t max_ns = 0;

  bool operator==(const DurationCounts&) const = default;

  uint64_t Count() const;
  Duration Mean() const;  // Zero if empty.
  // The duration that `per_mille` of all do not exceed. Values are taken as evenly spread within
  // their bucket, and the result never exceeds the longest. Zero if empty.
  Duration Quantile(uint32_t per_mille) const;

  void Add(Duration duration);
  void Add(const DurationCounts& other);
  // Returns what was added since `earlier` was read from the same counter. Its longest duration is
  // known only to the precision of a bucket. Precondition: Contains(earlier).
  DurationCounts Since(const DurationCounts& earlier) const;
  // True if `earlier` can be an earlier reading of the same counter.
  bool Contains(const DurationCounts& earlier) const;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_DURATION_COUNTS_H_
