#include "predictor/envelope/classify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace mosa::predict {
namespace {

using Transfers = std::map<std::pair<EnvelopeOperation, uint64_t>, uint64_t>;

// Seconds for all clients together, at the highest rates.
struct Terms {
  double throughput = 0;
  double bandwidth = 0;
  double larger() const { return std::max(throughput, bandwidth); }
};

Terms TermsOf(const StageProfile& stage, const EnvelopeScale& scale, EnvelopeOperation operation) {
  const TransferAmount amount = AmountOf(stage, operation);
  const SizeCurve& curve = scale.curve(operation);
  return {amount.files / curve.PeakOperations(), amount.bytes / curve.PeakBytes()};
}

// The same at the rates for each file's size.
double FineSeconds(const Transfers& transfers, const EnvelopeScale& scale,
                   EnvelopeOperation operation) {
  const SizeCurve& curve = scale.curve(operation);
  double seconds = 0;
  for (const auto& [key, count] : transfers) {
    const auto& [kind, size] = key;
    if (kind != operation) continue;
    const double by_operations = 1 / curve.OperationsAt(size);
    const double by_bytes = size == 0 ? 0 : static_cast<double>(size) / curve.BytesAt(size);
    seconds += static_cast<double>(count) * std::max(by_operations, by_bytes);
  }
  return seconds;
}

// The rate at the file size where it is highest.
std::optional<Estimate> BestOf(const Envelope& envelope, EnvelopeOperation operation, bool bytes,
                               uint32_t clients) {
  std::optional<Estimate> best;
  for (const auto& [cell, rate] : envelope.cells) {
    if (cell.operation != operation || cell.clients != clients) continue;
    const double unit = bytes ? static_cast<double>(cell.size_bytes) : 1;
    if (best && rate.median * unit <= best->median) continue;
    best = Estimate{rate.median * unit, rate.low * unit, rate.high * unit, rate.confidence};
  }
  return best;
}

// Implements PhaseForecast::better_clients. Between measured numbers of clients, the next larger
// one counts.
uint32_t BetterClients(const Envelope& envelope, const PhaseForecast& phase, uint32_t clients) {
  if (phase.bound == Bound::kNothing) return 0;
  const bool bytes = phase.bound == Bound::kBandwidth;
  const std::vector<uint32_t> measured = envelope.clients();
  const auto own = std::lower_bound(measured.begin(), measured.end(), clients);
  if (own == measured.end()) return 0;
  const auto here = BestOf(envelope, phase.operation, bytes, *own);
  if (!here) return 0;
  uint32_t better = 0;
  double most = here->median;
  for (auto fewer = measured.begin(); fewer != own; ++fewer) {
    const auto there = BestOf(envelope, phase.operation, bytes, *fewer);
    if (!there || there->median <= most || there->low <= here->high) continue;
    most = there->median;
    better = *fewer;
  }
  return better;
}

// Splits the time `whole` into `metadata`, for `opening`, and the rest, for `moving` with these
// terms.
void SetBound(double metadata, double whole, const Terms& terms, EnvelopeOperation opening,
              EnvelopeOperation moving, PhaseForecast& phase) {
  phase.metadata_share = std::min(1.0, metadata / whole);
  phase.transfer_bound =
      terms.throughput >= terms.bandwidth ? Bound::kThroughput : Bound::kBandwidth;
  const bool by_metadata = phase.metadata_share > 0.5;
  phase.bound = by_metadata ? Bound::kMetadata : phase.transfer_bound;
  phase.operation = by_metadata ? opening : moving;
}

PhaseForecast InputOf(const StageProfile& stage, const EnvelopeScale& scale, double filled) {
  PhaseForecast phase;
  if (stage.files_read == 0) return phase;
  const Terms own = TermsOf(stage, scale, EnvelopeOperation::kRead);
  const Terms shared = TermsOf(stage, scale, EnvelopeOperation::kSharedRead);
  const double whole = own.larger() + shared.larger();
  const double opening = static_cast<double>(stage.files_read) / scale.opens;
  if (own.larger() >= shared.larger())
    SetBound(opening, whole, own, EnvelopeOperation::kOpen, EnvelopeOperation::kRead, phase);
  else
    SetBound(opening, whole, shared, EnvelopeOperation::kOpen, EnvelopeOperation::kSharedRead,
             phase);
  phase.coarse_seconds = filled * whole;
  phase.fine_seconds =
      filled * (FineSeconds(stage.transfers, scale, EnvelopeOperation::kRead) +
                FineSeconds(stage.transfers, scale, EnvelopeOperation::kSharedRead));
  return phase;
}

PhaseForecast OutputOf(const StageProfile& stage, const EnvelopeScale& scale, double filled) {
  PhaseForecast phase;
  if (stage.files_written == 0) return phase;
  const Terms terms = TermsOf(stage, scale, EnvelopeOperation::kWrite);
  const double creating = static_cast<double>(stage.files_written) / scale.creates;
  const double whole = creating + terms.larger();
  SetBound(creating, whole, terms, EnvelopeOperation::kCreate, EnvelopeOperation::kWrite, phase);
  phase.coarse_seconds = filled * whole;
  phase.fine_seconds = filled * (static_cast<double>(stage.tasks_creating) / scale.creates +
                                 FineSeconds(stage.transfers, scale, EnvelopeOperation::kWrite));
  return phase;
}

}  // namespace

std::string_view NameOf(Bound bound) {
  switch (bound) {
    case Bound::kMetadata:
      return "metadata";
    case Bound::kThroughput:
      return "throughput";
    case Bound::kBandwidth:
      return "bandwidth";
    case Bound::kNothing:
      break;
  }
  return "-";
}

Result<StageForecast> Classify(const StageProfile& stage, const Envelope& envelope,
                               uint32_t clients) {
  MOSA_CHECK(clients > 0 && stage.tasks > 0);
  StageForecast forecast;
  forecast.clients = static_cast<uint32_t>(std::min<uint64_t>(clients, stage.tasks));
  forecast.rounds = (stage.tasks + forecast.clients - 1) / forecast.clients;
  MOSA_ASSIGN_OR_RETURN(const EnvelopeScale scale, envelope.At(forecast.clients));
  forecast.rated_clients = scale.clients;
  // The last round takes as long as a full one.
  const double filled =
      static_cast<double>(forecast.rounds * forecast.clients) / static_cast<double>(stage.tasks);
  forecast.input = InputOf(stage, scale, filled);
  forecast.output = OutputOf(stage, scale, filled);
  for (PhaseForecast* phase : {&forecast.input, &forecast.output})
    phase->better_clients = BetterClients(envelope, *phase, forecast.clients);
  return forecast;
}

}  // namespace mosa::predict
