#include "predictor/run/read_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

namespace mosa::predict {
namespace {

using Kind = ReadShape::Kind;

constexpr uint64_t kKiB = 1024;
// File sizes for which times are simulated. They are denser where one request more or less counts.
// Beyond the last, times are extrapolated from the last two.
struct Steps {
  uint64_t end = 0;
  uint64_t step = 0;
};
constexpr std::array<Steps, 5> kSteps = {
    {{64, 60}, {4096, 256}, {16384, 1024}, {32768, 4096}, {98304, 32768}}};  // KiB.
// To measure overlap, whole rows of a stripe are read: one, then this factor more each time up to
// the limit.
constexpr uint64_t kMoreRows = 4;
constexpr uint64_t kRowsBytesMax = uint64_t{64} << 20;
// In longer files of short chunks, each further chunk reads like those before.
constexpr uint64_t kChunksMax = 4096;
// Wider stripes and longer chunks are treated like these.
constexpr uint32_t kWidthMax = 32;
constexpr uint64_t kChunkMin = 4 * kKiB, kChunkMax = 64 * 1024 * kKiB;

std::vector<uint64_t> SizesFor(const ReadShape& shape) {
  if (shape.kind == Kind::kInline) return {0, 1, 4 * kKiB, kInlineBytesMax};
  const uint64_t most =
      shape.chunk_bytes == 0 ? UINT64_MAX : std::max(shape.chunk_bytes, kChunkMin) * kChunksMax;
  if (shape.local > 0) {
    std::vector<uint64_t> sizes = {shape.chunk_bytes * shape.width};
    while (sizes.back() * kMoreRows <= std::min(kRowsBytesMax, most))
      sizes.push_back(sizes.back() * kMoreRows);
    return sizes;
  }
  std::vector<uint64_t> sizes = {1};
  uint64_t at = 4 * kKiB;
  for (const Steps& steps : kSteps)
    for (; at <= steps.end * kKiB && at <= most; at += steps.step * kKiB) sizes.push_back(at);
  return sizes;
}

void AddTo(ReadCost& sum, const ReadCost& cost) {
  sum.time = sum.time + cost.time;
  sum.local_bytes += cost.local_bytes;
  sum.remote_bytes += cost.remote_bytes;
}

}  // namespace

// ---- times

double ReadCosts::At(const Curve& curve, uint64_t bytes) {
  const auto at = static_cast<double>(bytes);
  if (curve.size() == 1 || at <= curve.front().bytes) return curve.front().value;
  // The points on either side, or the last two.
  auto high = std::lower_bound(curve.begin() + 1, curve.end() - 1, at,
                               [](const Point& point, double x) { return point.bytes < x; });
  const auto low = high - 1;
  return low->value + (at - low->bytes) * (high->value - low->value) / (high->bytes - low->bytes);
}

Result<const ReadCosts::Curve*> ReadCosts::CurveOf(const ReadShape& shape) {
  const auto known = curves_.find(shape);
  if (known != curves_.end()) return &known->second;
  MOSA_ASSIGN_OR_RETURN(const std::vector<ReadSample> samples,
                        SimulateReads(shape, platform_, SizesFor(shape)));
  Curve curve;
  for (const ReadSample& sample : samples)
    curve.push_back({static_cast<double>(sample.size_bytes), static_cast<double>(sample.time.ns)});
  if (shape.local > 0) {
    // The share of the shorter part that is not hidden behind the longer one.
    for (Point& point : curve) {
      const auto size = static_cast<uint64_t>(point.bytes);
      const uint64_t local_bytes = size / shape.width * shape.local;
      MOSA_ASSIGN_OR_RETURN(const Parts parts, PartsOf(shape, size - local_bytes, local_bytes));
      point.value = (point.value - parts.longer()) / std::max(parts.shorter(), 1.0);
      point.value = std::clamp(point.value, 0.0, 1.0);
    }
    // Constant beyond the last size.
    curve.push_back({2 * curve.back().bytes, curve.back().value});
  }
  return &curves_.emplace(shape, std::move(curve)).first->second;
}

Result<ReadCosts::Parts> ReadCosts::PartsOf(ReadShape shape, uint64_t remote_bytes,
                                            uint64_t local_bytes) {
  shape.local = 0;
  MOSA_ASSIGN_OR_RETURN(const Curve* const remote, CurveOf(shape));
  MOSA_ASSIGN_OR_RETURN(const Curve* const local, CurveOf({Kind::kMount, 0, 1, 0}));
  // The file is opened only once.
  return Parts{At(*remote, remote_bytes), At(*local, local_bytes) - At(*local, 0)};
}

Result<Duration> ReadCosts::TimeOf(const ReadShape& shape, uint64_t remote_bytes,
                                   uint64_t local_bytes) {
  MOSA_ASSIGN_OR_RETURN(const Curve* const curve, CurveOf(shape));
  double ns = At(*curve, remote_bytes + local_bytes);
  if (shape.local > 0) {
    MOSA_ASSIGN_OR_RETURN(const Parts parts, PartsOf(shape, remote_bytes, local_bytes));
    ns = parts.longer() + ns * parts.shorter();
  }
  return Nanoseconds(std::llround(std::clamp(ns, 0.0, static_cast<double>(kServiceMax.ns))));
}

// ---- costs of files

FileToRead::FileToRead(const ReadableFile& file) : size_bytes(file.size_bytes) {
  if (file.size_bytes == 0 || file.is_inline || !file.layout.bound()) return;
  chunk_bytes = file.layout.chunk_bytes;
  width = file.layout.segments.front().width;
  for (const NodeBytes& own : BytesByNode(file.layout, file.size_bytes))
    holders.push_back({own, own.bytes == size_bytes && file.layout.HoldsAll(own.node)});
}

Status ReadCosts::Add(const FileToRead& file, std::span<const NodeId> hosts,
                      std::vector<ReadCost>& costs) {
  if (file.width == 0) {
    MOSA_ASSIGN_OR_RETURN(const Duration time,
                          TimeOf({Kind::kInline, 0, 1, 0}, file.size_bytes, 0));
    for (ReadCost& cost : costs) AddTo(cost, {time, file.size_bytes, 0});
    return OkStatus();
  }
  // Most hosts hold nothing of the file; compute their cost once.
  std::optional<ReadCost> elsewhere;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto holder = std::lower_bound(
        file.holders.begin(), file.holders.end(), hosts[i],
        [](const FileToRead::Holder& each, NodeId node) { return each.own.node < node; });
    const bool has = holder != file.holders.end() && holder->own.node == hosts[i];
    if (!has && elsewhere) {
      AddTo(costs[i], *elsewhere);
      continue;
    }
    MOSA_ASSIGN_OR_RETURN(const ReadCost cost, CostAt(file, has ? *holder : FileToRead::Holder{}));
    AddTo(costs[i], cost);
    if (!has) elsewhere = cost;
  }
  return OkStatus();
}

Result<ReadCost> ReadCosts::CostAt(const FileToRead& file, const FileToRead::Holder& holder) {
  const NodeBytes& own = holder.own;
  ReadCost cost{{}, own.bytes, file.size_bytes - own.bytes};
  ReadShape shape;
  if (cost.remote_bytes == 0) {
    const bool by_kernel = platform_.client.passthrough && holder.has_all;
    shape.kind = by_kernel ? Kind::kWhole : Kind::kMount;
  } else {
    shape.width = std::min(file.width, kWidthMax);
    shape.chunk_bytes = std::bit_ceil(std::clamp(file.chunk_bytes, kChunkMin, kChunkMax));
    if (own.bytes > 0) {
      // A file that continued on other nodes may have parts here without any shared stripe.
      shape.width = std::max(shape.width, 2U);
      shape.local = std::clamp(own.positions, 1U, shape.width - 1);
    }
  }
  MOSA_ASSIGN_OR_RETURN(cost.time, TimeOf(shape, cost.remote_bytes, cost.local_bytes));
  return cost;
}

}  // namespace mosa::predict
