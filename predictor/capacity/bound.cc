#include "predictor/capacity/bound.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "predictor/envelope/figures.h"

namespace mosa::predict {
namespace {

double AmountOf(const StageProfile& stage, const EnvelopeMetric& metric) {
  if (metric.operation == EnvelopeOperation::kCreate)
    return static_cast<double>(stage.files_written);
  if (metric.operation == EnvelopeOperation::kOpen) return static_cast<double>(stage.files_read);
  const TransferAmount amount = AmountOf(stage, metric.operation);
  return metric.is_bandwidth ? amount.bytes : amount.files;
}

bool IsInput(EnvelopeOperation operation) {
  return operation != EnvelopeOperation::kCreate && operation != EnvelopeOperation::kWrite;
}

// The measured numbers of clients at both sides. Precondition: not more than there are.
std::pair<uint32_t, uint32_t> NextTo(const Envelope& envelope, uint32_t clients) {
  const std::vector<uint32_t> measured = envelope.clients();
  const auto above = std::lower_bound(measured.begin(), measured.end(), clients);
  MOSA_CHECK(above != measured.end());
  const bool alone = above == measured.begin() || *above == clients;
  return {alone ? *above : *std::prev(above), *above};
}

double MostOf(const Envelope& envelope, const EnvelopeMetric& metric,
              const std::pair<uint32_t, uint32_t>& clients) {
  double most = 0;
  for (const auto& [cell, rate] : envelope.cells) {
    if (cell.operation != metric.operation) continue;
    if (cell.clients != clients.first && cell.clients != clients.second) continue;
    const double unit = metric.is_bandwidth ? static_cast<double>(cell.size_bytes) : 1;
    most = std::max(most, rate.high * unit);
  }
  return most;
}

void AddLimit(RateLimit limit, std::vector<RateLimit>& limits) {
  if (limit.amount > 0 && limit.most > 0) limits.push_back(std::move(limit));
}

}  // namespace

Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Envelope& envelope,
                                        uint32_t clients) {
  MOSA_CHECK(clients > 0);
  MOSA_RETURN_IF_ERROR(envelope.At(clients).status());
  const auto next_to = NextTo(envelope, clients);
  std::vector<RateLimit> limits;
  for (const EnvelopeMetric& metric : kEnvelopeMetrics)
    AddLimit({NameOf(metric), IsInput(metric.operation), metric.is_bandwidth,
              AmountOf(stage, metric), MostOf(envelope, metric, next_to)},
             limits);
  return limits;
}

std::vector<RateLimit> LimitsOf(const StageProfile& stage, const Capacity& capacity) {
  std::vector<RateLimit> limits;
  for (const bool is_input : {true, false}) {
    double operations = 0, bytes = 0;
    for (const uint64_t size : capacity.seeded_sizes()) {
      const auto& samples = *capacity.Find(OneSize(size, is_input ? 100 : 0));
      const double high = MeasuredOperations(samples).high;
      operations = std::max(operations, high);
      bytes = std::max(bytes, high * static_cast<double>(size));
    }
    const std::string what = is_input ? "read" : "write";
    const uint64_t files = is_input ? stage.files_read : stage.files_written;
    const uint64_t moved = is_input ? stage.bytes_read : stage.bytes_written;
    AddLimit({what + " throughput", is_input, false, static_cast<double>(files), operations},
             limits);
    AddLimit({what + " bandwidth", is_input, true, static_cast<double>(moved), bytes}, limits);
  }
  return limits;
}

std::vector<Excess> ExcessesOf(const std::vector<RateLimit>& limits, double input_seconds,
                               double output_seconds) {
  std::vector<Excess> excesses;
  for (const RateLimit& limit : limits) {
    const double seconds = limit.is_input ? input_seconds : output_seconds;
    // What takes no time at all is not simulated as input or output, but as a part of computing.
    if (seconds <= 0 || limit.amount <= limit.most * seconds) continue;
    excesses.push_back({limit, limit.amount / seconds});
  }
  std::stable_sort(excesses.begin(), excesses.end(), [](const Excess& a, const Excess& b) {
    return a.simulated / a.limit.most > b.simulated / b.limit.most;
  });
  return excesses;
}

}  // namespace mosa::predict
