#include "common/base/duration_counts.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "common/base/check.h"

namespace mosa {
namespace {

constexpr int kPartsLog2 = kDurationPartsPerOctaveLog2;
constexpr uint64_t kParts = uint64_t{1} << kPartsLog2;

}  // namespace

size_t DurationBucketOf(Duration duration) {
  if (duration.ns < int64_t{1} << kDurationOctaveFirst) return 0;
  const auto ns = static_cast<uint64_t>(duration.ns);
  const int octave = static_cast<int>(std::bit_width(ns)) - 1;
  if (octave > kDurationOctaveLast) return kDurationBuckets - 1;
  const uint64_t part = (ns >> (octave - kPartsLog2)) & (kParts - 1);
  return 1 + (static_cast<size_t>(octave - kDurationOctaveFirst) << kPartsLog2) + part;
}

Duration DurationBucketBegin(size_t bucket) {
  return bucket == 0 ? Duration{} : DurationBucketLimit(bucket - 1);
}

Duration DurationBucketLimit(size_t bucket) {
  MOSA_CHECK(bucket < kDurationBuckets);
  if (bucket == 0) return {int64_t{1} << kDurationOctaveFirst};
  if (bucket == kDurationBuckets - 1) return {std::numeric_limits<int64_t>::max()};
  const size_t above = bucket - 1;
  const auto octave = kDurationOctaveFirst + static_cast<int>(above >> kPartsLog2);
  const uint64_t parts = kParts + (above & (kParts - 1)) + 1;
  return {static_cast<int64_t>(parts << (octave - kPartsLog2))};
}

uint64_t DurationCounts::Count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

Duration DurationCounts::Mean() const {
  const uint64_t count = Count();
  return {count == 0 ? 0 : static_cast<int64_t>(sum_ns / count)};
}

Duration DurationCounts::Quantile(uint32_t per_mille) const {
  const uint64_t count = Count();
  if (count == 0) return {};
  // The rank of the quantile, counted from 1.
  const auto share = static_cast<double>(std::min(per_mille, 1000U)) / 1000.0;
  const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count) + 0.999999);
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count);
  uint64_t before = 0;
  size_t bucket = 0;
  while (before + counts[bucket] < rank) before += counts[bucket++];
  const int64_t begin = DurationBucketBegin(bucket).ns;
  const int64_t limit =
      std::min<int64_t>(DurationBucketLimit(bucket).ns, static_cast<int64_t>(max_ns));
  if (limit <= begin) return {limit};
  const double part = static_cast<double>(rank - before) / static_cast<double>(counts[bucket]);
  return {begin + static_cast<int64_t>(part * static_cast<double>(limit - begin))};
}

void DurationCounts::Add(Duration duration) {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(0, duration.ns));
  ++counts[DurationBucketOf(duration)];
  sum_ns += ns;
  max_ns = std::max(max_ns, ns);
}

void DurationCounts::Add(const DurationCounts& other) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum_ns += other.sum_ns;
  max_ns = std::max(max_ns, other.max_ns);
}

DurationCounts DurationCounts::Since(const DurationCounts& earlier) const {
  MOSA_CHECK(Contains(earlier));
  DurationCounts since;
  size_t highest = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    since.counts[i] = counts[i] - earlier.counts[i];
    if (since.counts[i] > 0) highest = i;
  }
  since.sum_ns = sum_ns - earlier.sum_ns;
  if (since.Count() > 0)
    since.max_ns = std::min(max_ns, static_cast<uint64_t>(DurationBucketLimit(highest).ns));
  return since;
}

bool DurationCounts::Contains(const DurationCounts& earlier) const {
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < earlier.counts[i]) return false;
  return sum_ns >= earlier.sum_ns && max_ns >= earlier.max_ns;
}

}  // namespace mosa
