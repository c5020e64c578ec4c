#include "predictor/compare/modes.h"

#include <fmt/format.h>

#include <algorithm>

#include "predictor/compare/request_cells.h"

namespace mosa::predict {
namespace {

constexpr size_t kGapBuckets = 13;  // A factor of three, at eight buckets for a factor of two.
constexpr uint64_t kAllMin = 20, kOfAKindMin = 5;
constexpr double kModeShareMin = 0.01;
constexpr double kInGapMax = 0.1;

double MedianOf(const DurationCounts& times, size_t begin, size_t end) {
  DurationCounts kind;
  for (size_t bucket = begin; bucket < end; ++bucket) kind.counts[bucket] = times.counts[bucket];
  kind.max_ns = times.max_ns;
  return static_cast<double>(kind.Quantile(500).ns) / 1e9;
}

}  // namespace

std::optional<Modes> ModesOf(const DurationCounts& times) {
  const uint64_t all = times.Count();
  if (all < kAllMin) return std::nullopt;
  const auto enough =
      std::max(kOfAKindMin, static_cast<uint64_t>(kModeShareMin * static_cast<double>(all)));
  struct Gap {
    size_t begin = 0;
    uint64_t slow = 0, fewer = 0;
    double filled = 0;
  };
  std::optional<Gap> best;
  uint64_t below = 0;
  for (size_t begin = 1; begin + kGapBuckets < kDurationBuckets; ++begin) {
    below += times.counts[begin - 1];
    if (below < enough) continue;
    uint64_t within = 0;
    for (size_t bucket = begin; bucket < begin + kGapBuckets; ++bucket)
      within += times.counts[bucket];
    const uint64_t above = all - below - within;
    if (above < enough) break;
    const uint64_t fewer = std::min(below, above);
    const double filled = static_cast<double>(within) / static_cast<double>(fewer);
    if (filled >= kInGapMax) continue;
    if (!best || filled < best->filled || (filled == best->filled && fewer > best->fewer))
      best = {begin, above, fewer, filled};
  }
  if (!best) return std::nullopt;
  return Modes{static_cast<double>(best->slow) / static_cast<double>(all),
               MedianOf(times, 0, best->begin),
               MedianOf(times, best->begin + kGapBuckets, kDurationBuckets)};
}

std::string Say(const Modes& modes) {
  return fmt::format("{:.0f} % took about {}, the others about {}", modes.slow_share * 100,
                     ShowTime(modes.slow_s), ShowTime(modes.quick_s));
}

}  // namespace mosa::predict
