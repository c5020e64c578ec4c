#include "predictor/envelope/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/check.h"

namespace mosa::predict {
namespace {

constexpr double kConfidenceWanted = 0.95;

constexpr struct {
  EnvelopeOperation operation;
  std::string_view name;
} kNames[] = {{EnvelopeOperation::kCreate, "create"},
              {EnvelopeOperation::kOpen, "open"},
              {EnvelopeOperation::kRead, "1-to-1 read"},
              {EnvelopeOperation::kSharedRead, "N-to-1 read"},
              {EnvelopeOperation::kWrite, "write"}};

// Interpolates from `from` at 0 to `to` at 1.
double Mix(double from, double to, double share) { return from + (to - from) * share; }

// Probability that the true median lies between the k-th smallest and the k-th largest of n
// samples.
double Coverage(size_t n, size_t k) {
  double outside = 0, combinations = 1;
  for (size_t i = 0; i < k; ++i) {
    outside += combinations;
    combinations *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return 1 - 2 * outside * std::pow(0.5, static_cast<double>(n));
}

}  // namespace

std::string_view NameOf(EnvelopeOperation operation) {
  for (const auto& row : kNames) {
    if (row.operation == operation) return row.name;
  }
  return "";
}

std::optional<EnvelopeOperation> EnvelopeOperationOf(std::string_view name) {
  for (const auto& row : kNames) {
    if (row.name == name) return row.operation;
  }
  return std::nullopt;
}

// ---- the grid

std::vector<EnvelopeCell> CellsOf(const EnvelopeGrid& grid) {
  std::set<EnvelopeCell> cells;
  for (const EnvelopeOperation operation : kEnvelopeOperations) {
    const auto sizes = MovesBytes(operation) ? grid.sizes : std::vector<uint64_t>{0};
    for (const uint64_t size : sizes) {
      for (const uint32_t clients : grid.clients) cells.insert({operation, size, clients});
    }
  }
  return {cells.begin(), cells.end()};
}

uint64_t OperationsOf(const EnvelopeGrid& grid, const EnvelopeCell& cell) {
  uint64_t operations = kEnvelopeFiles * grid.scale_millionths / kScaleOneMillionths;
  if (grid.bytes_max > 0 && cell.size_bytes > 0)
    operations = std::min(operations, grid.bytes_max / cell.size_bytes);
  return std::max<uint64_t>(1, operations / cell.clients) * cell.clients;
}

uint64_t StoredBytesOf(const EnvelopeGrid& grid, const EnvelopeCell& cell) {
  if (cell.operation == EnvelopeOperation::kSharedRead) return cell.size_bytes;
  return cell.size_bytes * OperationsOf(grid, cell);
}

// ---- results

Estimate MedianOf(std::vector<double> samples) {
  MOSA_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const size_t count = samples.size();
  const size_t middle = count / 2;
  const double median =
      count % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  size_t k = 1;
  while (k + 1 <= middle && Coverage(count, k + 1) >= kConfidenceWanted) ++k;
  return {median, samples[k - 1], samples[count - k], count == 1 ? 0 : Coverage(count, k)};
}

double SizeCurve::PeakOperations() const {
  double peak = 0;
  for (const auto& [size, rate] : rates_) peak = std::max(peak, rate);
  return peak;
}

double SizeCurve::PeakBytes() const {
  double peak = 0;
  for (const auto& [size, rate] : rates_) peak = std::max(peak, rate * static_cast<double>(size));
  return peak;
}

// Precondition: the size lies between the smallest and the largest measured one.
double SizeCurve::Between(uint64_t size_bytes, bool bytes) const {
  const auto rate = [bytes](const auto& point) {
    return bytes ? point.second * static_cast<double>(point.first) : point.second;
  };
  const auto above = rates_.lower_bound(size_bytes);
  if (above->first == size_bytes) return rate(*above);
  const auto below = std::prev(above);
  return Mix(rate(*below), rate(*above),
             static_cast<double>(size_bytes - below->first) /
                 static_cast<double>(above->first - below->first));
}

double SizeCurve::OperationsAt(uint64_t size_bytes) const {
  MOSA_CHECK(!empty());
  if (size_bytes <= rates_.begin()->first) return rates_.begin()->second;
  const auto& [greatest, rate] = *rates_.rbegin();
  if (size_bytes >= greatest)
    return rate * static_cast<double>(greatest) / static_cast<double>(size_bytes);
  return Between(size_bytes, false);
}

double SizeCurve::BytesAt(uint64_t size_bytes) const {
  MOSA_CHECK(!empty());
  const auto& [least, rate] = *rates_.begin();
  if (size_bytes <= least) return rate * static_cast<double>(size_bytes);
  const auto& [greatest, last] = *rates_.rbegin();
  if (size_bytes >= greatest) return last * static_cast<double>(greatest);
  return Between(size_bytes, true);
}

const SizeCurve& EnvelopeScale::curve(EnvelopeOperation operation) const {
  MOSA_CHECK(MovesBytes(operation));
  if (operation == EnvelopeOperation::kRead) return reads;
  return operation == EnvelopeOperation::kSharedRead ? shared_reads : writes;
}

std::vector<uint32_t> Envelope::clients() const {
  std::set<uint32_t> all;
  for (const auto& [cell, rate] : cells) all.insert(cell.clients);
  return {all.begin(), all.end()};
}

std::vector<uint64_t> Envelope::sizes() const {
  std::set<uint64_t> all;
  for (const auto& [cell, rate] : cells) {
    if (MovesBytes(cell.operation)) all.insert(cell.size_bytes);
  }
  return {all.begin(), all.end()};
}

const Estimate* Envelope::Find(const EnvelopeCell& cell) const {
  const auto found = cells.find(cell);
  return found == cells.end() ? nullptr : &found->second;
}

Result<EnvelopeScale> Envelope::At(uint32_t clients_wanted) const {
  const std::vector<uint32_t> measured = clients();
  const auto above = std::lower_bound(measured.begin(), measured.end(), clients_wanted);
  if (above == measured.end())
    return FailedPreconditionError(
        fmt::format("the envelope of '{}' covers {} to {} clients, not {}: measure it with that "
                    "many, or ask for fewer",
                    name, measured.empty() ? 0 : measured.front(),
                    measured.empty() ? 0 : measured.back(), clients_wanted));
  const uint32_t high = *above;
  const bool is_between = above != measured.begin() && high != clients_wanted;
  const uint32_t low = is_between ? *std::prev(above) : high;
  const double share = is_between ? static_cast<double>(clients_wanted - low) / (high - low) : 0;
  EnvelopeScale scale;
  scale.clients = is_between ? clients_wanted : high;
  for (const auto& [cell, rate] : cells) {
    if (cell.clients != low) continue;
    EnvelopeCell other = cell;
    other.clients = high;
    const Estimate* far = Find(other);
    if (far == nullptr) continue;
    const double mixed = Mix(rate.median, far->median, share);
    if (cell.operation == EnvelopeOperation::kCreate) scale.creates = mixed;
    if (cell.operation == EnvelopeOperation::kOpen) scale.opens = mixed;
    if (cell.operation == EnvelopeOperation::kRead) scale.reads.Add(cell.size_bytes, mixed);
    if (cell.operation == EnvelopeOperation::kSharedRead)
      scale.shared_reads.Add(cell.size_bytes, mixed);
    if (cell.operation == EnvelopeOperation::kWrite) scale.writes.Add(cell.size_bytes, mixed);
  }
  if (scale.creates > 0 && scale.opens > 0 && scale.reads.PeakOperations() > 0 &&
      scale.shared_reads.PeakOperations() > 0 && scale.writes.PeakOperations() > 0)
    return scale;
  return FailedPreconditionError(
      fmt::format("the envelope of '{}' is incomplete at {} clients: the same 'mosa envelope run' "
                  "continues with it",
                  name, clients_wanted));
}

}  // namespace mosa::predict
