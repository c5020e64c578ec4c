// The numbers of the MTC Envelope paper's figures: each metric at a number of clients, heat maps of
// writing over sizes and clients (Figures 18, 19), how metrics grow with clients (Figure 17), and
// where they fall. Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_FIGURES_H_
#define MOSA_PREDICTOR_ENVELOPE_FIGURES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "predictor/envelope/envelope.h"

namespace mosa::predict {

struct EnvelopeMetric {
  EnvelopeOperation operation = EnvelopeOperation::kCreate;
  bool is_bandwidth = false;  // Bytes per second; else operations per second.
};
// The eight metrics of section 3.1.
inline constexpr std::array<EnvelopeMetric, 8> kEnvelopeMetrics = {{
    {EnvelopeOperation::kCreate, false},
    {EnvelopeOperation::kOpen, false},
    {EnvelopeOperation::kRead, false},
    {EnvelopeOperation::kRead, true},
    {EnvelopeOperation::kSharedRead, false},
    {EnvelopeOperation::kSharedRead, true},
    {EnvelopeOperation::kWrite, false},
    {EnvelopeOperation::kWrite, true},
}};
// "create throughput", "N-to-1 read bandwidth".
std::string NameOf(const EnvelopeMetric& metric);
// The rate at the file size where it is highest.
double RateOf(const EnvelopeMetric& metric, const EnvelopeScale& scale);

// Files created and written per second: C / (C/T_create + max(C/T_w, C*D/B_w)), as in equations 1
// and 2.
double WritesPerSecond(const EnvelopeScale& scale, uint64_t size_bytes);

struct HeatMap {
  std::vector<uint32_t> clients;
  std::vector<uint64_t> sizes;             // The measured sizes and the powers of two between them.
  std::vector<std::vector<double>> rates;  // Files per second, by size and clients.
};
// Covers the numbers of clients for which the envelope is complete.
HeatMap WriteHeatMap(const Envelope& envelope);

// How each metric compares with its value at the fewest clients.
struct Growth {
  uint32_t clients = 1;
  std::array<double, kEnvelopeMetrics.size()> factors{};
};
// One for each number of clients for which the envelope is complete, the fewest first.
std::vector<Growth> GrowthOf(const Envelope& envelope);

// A cell in which more clients get less done than fewer, beyond both intervals. Cells of one sample
// have no interval and are skipped.
struct Fall {
  EnvelopeCell cell;          // With more clients.
  uint32_t best_clients = 1;  // The smaller number that gets the most done.
  double best = 0;            // Operations per second, medians.
  double rate = 0;
};
// Ordered by operation, size and clients.
std::vector<Fall> FallsOf(const Envelope& envelope);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_FIGURES_H_
