#include "predictor/capacity/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "predictor/envelope/figures.h"

namespace mosa::predict {
namespace {

// The kernel's largest request to a mount.
constexpr uint64_t kRequestBytesMax = 1 << 20;
constexpr uint64_t kPageBytes = 4096;

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

bool IsOnlyNamed(EnvelopeOperation operation) { return !MovesBytes(operation); }

// The smallest measured number of clients that is not below `clients`. Precondition: there is one.
uint32_t NotBelow(const Envelope& envelope, uint32_t clients) {
  const std::vector<uint32_t> measured = envelope.clients();
  const auto above = std::lower_bound(measured.begin(), measured.end(), clients);
  MOSA_CHECK(above != measured.end());
  return *above;
}

double MostOf(const Envelope& envelope, const EnvelopeMetric& metric, uint32_t clients_max) {
  double most = 0;
  for (const auto& [cell, rate] : envelope.cells) {
    if (cell.operation != metric.operation || cell.clients > clients_max) continue;
    const double unit = metric.is_bandwidth ? static_cast<double>(cell.size_bytes) : 1;
    most = std::max(most, rate.high * unit);
  }
  return most;
}

struct FileSizes {
  uint64_t smallest = UINT64_MAX;
  uint64_t greatest = 0;
};

FileSizes SizesOf(const StageProfile& stage, bool is_input) {
  FileSizes sizes;
  for (const auto& [kind, files] : stage.transfers) {
    if (IsInput(kind.first) != is_input) continue;
    sizes.smallest = std::min(sizes.smallest, kind.second);
    sizes.greatest = std::max(sizes.greatest, kind.second);
  }
  return sizes;
}

void AddLimit(RateLimit limit, std::vector<RateLimit>& limits) {
  if (limit.amount > 0 && limit.most > 0) limits.push_back(std::move(limit));
}

}  // namespace

Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Envelope& envelope,
                                        uint32_t clients) {
  MOSA_CHECK(clients > 0);
  MOSA_RETURN_IF_ERROR(envelope.At(clients).status());
  const uint32_t clients_max = NotBelow(envelope, clients);
  std::vector<RateLimit> limits;
  for (const EnvelopeMetric& metric : kEnvelopeMetrics)
    AddLimit({NameOf(metric), IsInput(metric.operation), metric.is_bandwidth,
              IsOnlyNamed(metric.operation), AmountOf(stage, metric),
              MostOf(envelope, metric, clients_max)},
             limits);
  return limits;
}

Result<std::vector<RateLimit>> LimitsOf(const StageProfile& stage, const Capacity& capacity,
                                        uint32_t clients) {
  if (capacity.clients < clients)
    return FailedPreconditionError(
        capacity.clients == 0
            ? fmt::format("the capacity of '{}' does not state its number of clients",
                          capacity.name)
            : fmt::format("the capacity of '{}' was measured with {} clients, not {}: measure one "
                          "with more hosts or --jobs",
                          capacity.name, capacity.clients, clients));
  std::vector<RateLimit> limits;
  for (const bool is_input : {true, false}) {
    const FileSizes files = SizesOf(stage, is_input);
    const uint64_t request = std::min(files.greatest, kRequestBytesMax);
    bool has_small = false, has_large = false;
    double operations = 0, bytes = 0;
    for (const uint64_t size : capacity.seeded_sizes()) {
      const auto& samples = *capacity.Find(OneSize(size, is_input ? 100 : 0));
      const double high = MeasuredOperations(samples).high;
      operations = std::max(operations, high);
      bytes = std::max(bytes, high * static_cast<double>(size));
      has_small = has_small || size <= std::max(files.smallest, kPageBytes);
      has_large = has_large || size >= request;
    }
    const std::string what = is_input ? "read" : "write";
    const uint64_t count = is_input ? stage.files_read : stage.files_written;
    const uint64_t moved = is_input ? stage.bytes_read : stage.bytes_written;
    if (has_small)
      AddLimit(
          {what + " throughput", is_input, false, false, static_cast<double>(count), operations},
          limits);
    if (has_large)
      AddLimit({what + " bandwidth", is_input, true, false, static_cast<double>(moved), bytes},
               limits);
  }
  return limits;
}

OpenTime OpenTimeOf(const std::vector<std::vector<OpenSpan>>& by_task) {
  // Change of the number of tasks with a file open, by time.
  std::map<int64_t, int> changes;
  for (std::vector<OpenSpan> spans : by_task) {
    std::sort(spans.begin(), spans.end(),
              [](const OpenSpan& a, const OpenSpan& b) { return a.begin < b.begin; });
    for (size_t i = 0; i < spans.size();) {
      Time end = spans[i].end;
      ++changes[spans[i].begin.ns];
      for (++i; i < spans.size() && spans[i].begin <= end; ++i) end = std::max(end, spans[i].end);
      --changes[end.ns];
    }
  }
  OpenTime open;
  int64_t since = 0, open_ns = 0;
  int tasks = 0;
  for (const auto& [moment, change] : changes) {
    if (tasks > 0) open_ns += moment - since;
    since = moment;
    tasks += change;
    open.tasks_max = std::max(open.tasks_max, static_cast<uint32_t>(tasks));
  }
  open.seconds = static_cast<double>(open_ns) / 1e9;
  return open;
}

std::vector<Excess> ExcessesOf(const std::vector<RateLimit>& limits,
                               const StageTransfer& transfer) {
  std::vector<Excess> excesses;
  if (transfer.seconds < kOpenSecondsMin) return excesses;
  for (const RateLimit& limit : limits) {
    if (limit.is_input != transfer.is_input) continue;
    double amount = limit.amount;
    if (limit.is_bandwidth)
      amount -= transfer.own_bytes;
    else if (!limit.is_only_named && transfer.own_bytes > 0)
      continue;
    if (amount > limit.most * transfer.seconds)
      excesses.push_back({limit, amount / transfer.seconds});
  }
  std::stable_sort(excesses.begin(), excesses.end(), [](const Excess& a, const Excess& b) {
    return a.simulated / a.limit.most > b.simulated / b.limit.most;
  });
  return excesses;
}

}  // namespace mosa::predict
