#include "predictor/run/forecast_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "predictor/run/copies_forecast.h"
#include "predictor/run/read_trial.h"

namespace mosa::predict {
namespace {

using manager::Curve;
using manager::ReadCosts;
using manager::StripeCurves;
using Kind = ReadShape::Kind;

constexpr uint64_t kKiB = 1024;
// File sizes for which times are simulated. They are denser where one request more or less counts.
// Beyond the last, times are extrapolated from the last two.
struct Steps {
  uint64_t end = 0;
  uint64_t step = 0;
};
constexpr std::array<Steps, 5> kSteps = {
    {{64, 12}, {4096, 256}, {16384, 1024}, {32768, 4096}, {98304, 32768}}};  // KiB.
// To measure overlap, whole rows of a stripe are read: one, then this factor more each time up to
// the limit.
constexpr uint64_t kMoreRows = 4;
constexpr uint64_t kRowsBytesMax = uint64_t{64} << 20;
// In longer files of short chunks, each further chunk reads like those before.
constexpr uint64_t kChunksMax = 4096;

std::vector<uint64_t> SizesFor(const ReadShape& shape) {
  if (shape.kind == Kind::kInline) return {0, 1, 4 * kKiB, kInlineBytesMax};
  const uint64_t most = shape.kind == Kind::kNodes ? shape.chunk_bytes * kChunksMax : UINT64_MAX;
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

Result<Curve> TimesOf(const ReadShape& shape, const Platform& platform) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<ReadSample> samples,
                        SimulateReads(shape, platform, SizesFor(shape)));
  Curve curve;
  for (const ReadSample& sample : samples)
    curve.push_back({sample.size_bytes, static_cast<double>(sample.time.ns)});
  return curve;
}

Result<StripeCurves> StripeOf(ReadShape shape, const Platform& platform, const ReadCosts& costs) {
  StripeCurves stripe;
  MOSA_ASSIGN_OR_RETURN(stripe.remote, TimesOf(shape, platform));
  for (const uint32_t local : std::set<uint32_t>{1, shape.width / 2, shape.width - 1}) {
    if (local == 0 || local >= shape.width) continue;
    shape.local = local;
    MOSA_ASSIGN_OR_RETURN(Curve curve, TimesOf(shape, platform));
    for (auto& [bytes, value] : curve) {
      const uint64_t local_bytes = bytes / shape.width * local;
      const auto parts = PartsOf(costs, stripe, bytes - local_bytes, local_bytes);
      value = std::clamp((value - parts.longer()) / std::max(parts.shorter(), 1.0), 0.0, 1.0);
    }
    // Constant beyond the last size.
    curve.push_back({2 * curve.back().bytes, curve.back().value});
    stripe.exposed.emplace(local, std::move(curve));
  }
  return stripe;
}

}  // namespace

ForecastGrid DefaultForecastGrid() {
  ForecastGrid grid{{}, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}};
  for (uint64_t bytes = 4 * kKiB; bytes <= 65536 * kKiB; bytes *= 2)
    grid.chunks_bytes.push_back(bytes);
  return grid;
}

Result<manager::Forecasts> MakeForecasts(const Platform& platform, const ForecastGrid& grid) {
  MOSA_RETURN_IF_ERROR(Check(platform));
  manager::Forecasts forecasts;
  ReadCosts& reads = forecasts.reads;
  MOSA_ASSIGN_OR_RETURN(reads.in_manager, TimesOf({Kind::kInline, 0, 1, 0}, platform));
  MOSA_ASSIGN_OR_RETURN(reads.whole, TimesOf({Kind::kWhole, 0, 1, 0}, platform));
  MOSA_ASSIGN_OR_RETURN(reads.by_mount, TimesOf({Kind::kMount, 0, 1, 0}, platform));
  for (const uint64_t chunk_bytes : grid.chunks_bytes)
    for (const uint32_t width : grid.widths) {
      MOSA_ASSIGN_OR_RETURN(reads.stripes[chunk_bytes][width],
                            StripeOf({Kind::kNodes, chunk_bytes, width, 0}, platform, reads));
    }
  for (const uint32_t nodes : grid.nodes) {
    MOSA_ASSIGN_OR_RETURN(forecasts.copies[nodes], ForecastCopies(platform, nodes));
  }
  return forecasts;
}

}  // namespace mosa::predict
