#include "manager/forecast/read_costs.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/model/node_bytes.h"

namespace mosa::manager {
namespace {

// Longer times are not told apart, so that the sum over kReadPathsMax files cannot overflow.
constexpr double kNanosecondsMax = 5e14;

// The entry with the greatest key up to this one, else the first. Precondition: !entries.empty().
template <typename Entries>
const typename Entries::mapped_type& AtOrBelow(const Entries& entries,
                                               typename Entries::key_type key) {
  const auto above = entries.upper_bound(key);
  return above == entries.begin() ? above->second : std::prev(above)->second;
}

// The entry whose key is nearest by ratio; of two, the greater. Precondition: !entries.empty().
template <typename Entries>
const typename Entries::mapped_type& Nearest(const Entries& entries,
                                             typename Entries::key_type key) {
  const auto high = entries.lower_bound(key);
  if (high == entries.begin()) return high->second;
  const auto low = std::prev(high);
  if (high == entries.end()) return low->second;
  const auto at = static_cast<double>(key);
  const bool is_below =
      at * at < static_cast<double>(low->first) * static_cast<double>(high->first);
  return is_below ? low->second : high->second;
}

Duration DurationOf(double ns) {
  return Nanoseconds(std::llround(std::clamp(ns, 0.0, kNanosecondsMax)));
}

ReadCost CostAt(const ReadCosts& costs, const ReadableFile& file, const NodeBytes& own) {
  ReadCost cost{{}, own.bytes, file.size_bytes - own.bytes};
  if (cost.remote_bytes == 0) {
    const Curve& curve = file.layout.HoldsAll(own.node) ? costs.whole : costs.by_mount;
    cost.time = DurationOf(ValueAt(curve, file.size_bytes));
    return cost;
  }
  // A file that continued on other nodes may have parts here without any shared stripe.
  const uint32_t width = std::max(file.layout.segments.front().width, own.bytes > 0 ? 2U : 1U);
  const StripeCurves& stripe = Nearest(AtOrBelow(costs.stripes, file.layout.chunk_bytes), width);
  if (own.bytes == 0) {
    cost.time = DurationOf(ValueAt(stripe.remote, file.size_bytes));
    return cost;
  }
  const ReadParts parts = PartsOf(costs, stripe, cost.remote_bytes, cost.local_bytes);
  const double exposed =
      stripe.exposed.empty()
          ? 1
          : std::clamp(ValueAt(Nearest(stripe.exposed, own.positions), file.size_bytes), 0.0, 1.0);
  cost.time = DurationOf(parts.longer() + exposed * parts.shorter());
  return cost;
}

}  // namespace

double ValueAt(const Curve& curve, uint64_t bytes) {
  if (curve.size() == 1 || bytes <= curve.front().bytes) return curve.front().value;
  // The points on either side, or the last two.
  const auto high =
      std::lower_bound(curve.begin() + 1, curve.end() - 1, bytes,
                       [](const CurvePoint& point, uint64_t x) { return point.bytes < x; });
  const auto low = high - 1;
  const double value = low->value + static_cast<double>(bytes - low->bytes) *
                                        (high->value - low->value) /
                                        static_cast<double>(high->bytes - low->bytes);
  // Longer files never cost less than the longest that was simulated.
  return bytes > high->bytes ? std::max(value, high->value) : value;
}

ReadParts PartsOf(const ReadCosts& costs, const StripeCurves& stripe, uint64_t remote_bytes,
                  uint64_t local_bytes) {
  // The file is opened only once.
  return {ValueAt(stripe.remote, remote_bytes),
          ValueAt(costs.by_mount, local_bytes) - ValueAt(costs.by_mount, 0)};
}

FileCosts CostsOf(const ReadCosts& costs, const ReadableFile& file) {
  if (file.size_bytes == 0 || file.is_inline || !file.layout.bound()) {
    const Duration time = DurationOf(ValueAt(costs.in_manager, file.size_bytes));
    return {{time, file.size_bytes, 0}, {}};
  }
  FileCosts all{CostAt(costs, file, {}), {}};
  for (const NodeBytes& own : BytesByNode(file.layout, file.size_bytes))
    all.holders.emplace_back(own.node, CostAt(costs, file, own));
  return all;
}

}  // namespace mosa::manager
