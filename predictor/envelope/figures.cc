#include "predictor/envelope/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace mosa::predict {
namespace {

std::vector<EnvelopeScale> WholeScales(const Envelope& envelope) {
  std::vector<EnvelopeScale> scales;
  for (const uint32_t clients : envelope.clients()) {
    auto scale = envelope.At(clients);
    if (scale.ok()) scales.push_back(*std::move(scale));
  }
  return scales;
}

}  // namespace

std::string NameOf(const EnvelopeMetric& metric) {
  return fmt::format("{} {}", NameOf(metric.operation),
                     metric.is_bandwidth ? "bandwidth" : "throughput");
}

double RateOf(const EnvelopeMetric& metric, const EnvelopeScale& scale) {
  if (metric.operation == EnvelopeOperation::kCreate) return scale.creates;
  if (metric.operation == EnvelopeOperation::kOpen) return scale.opens;
  const SizeCurve& curve = scale.curve(metric.operation);
  return metric.is_bandwidth ? curve.PeakBytes() : curve.PeakOperations();
}

double WritesPerSecond(const EnvelopeScale& scale, uint64_t size_bytes) {
  const double by_operations = 1 / scale.writes.OperationsAt(size_bytes);
  const double by_bytes =
      size_bytes == 0 ? 0 : static_cast<double>(size_bytes) / scale.writes.BytesAt(size_bytes);
  return 1 / (1 / scale.creates + std::max(by_operations, by_bytes));
}

HeatMap WriteHeatMap(const Envelope& envelope) {
  HeatMap map;
  const std::vector<uint64_t> measured = envelope.sizes();
  const std::vector<EnvelopeScale> scales = WholeScales(envelope);
  if (measured.empty() || scales.empty()) return map;
  std::set<uint64_t> sizes(measured.begin(), measured.end());
  for (uint64_t size = std::bit_ceil(measured.front()); size < measured.back(); size *= 2)
    sizes.insert(size);
  map.sizes.assign(sizes.begin(), sizes.end());
  for (const EnvelopeScale& scale : scales) map.clients.push_back(scale.clients);
  for (const uint64_t size : map.sizes) {
    std::vector<double> row;
    for (const EnvelopeScale& scale : scales) row.push_back(WritesPerSecond(scale, size));
    map.rates.push_back(std::move(row));
  }
  return map;
}

std::vector<Growth> GrowthOf(const Envelope& envelope) {
  std::vector<Growth> all;
  const std::vector<EnvelopeScale> scales = WholeScales(envelope);
  for (const EnvelopeScale& scale : scales) {
    Growth growth{scale.clients, {}};
    for (size_t i = 0; i < kEnvelopeMetrics.size(); ++i)
      growth.factors[i] =
          RateOf(kEnvelopeMetrics[i], scale) / RateOf(kEnvelopeMetrics[i], scales.front());
    all.push_back(growth);
  }
  return all;
}

std::vector<Fall> FallsOf(const Envelope& envelope) {
  std::vector<Fall> falls;
  const std::pair<const EnvelopeCell, Estimate>* best = nullptr;
  // Cells of the same operation and size are adjacent, the fewest clients first.
  for (const auto& own : envelope.cells) {
    const auto& [cell, rate] = own;
    if (rate.confidence == 0) continue;
    const bool is_first = best == nullptr || best->first.operation != cell.operation ||
                          best->first.size_bytes != cell.size_bytes;
    if (is_first || rate.median > best->second.median) {
      best = &own;
      continue;
    }
    if (rate.high < best->second.low)
      falls.push_back({cell, best->first.clients, best->second.median, rate.median});
  }
  return falls;
}

}  // namespace mosa::predict
