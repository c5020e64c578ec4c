// Finds what bounds each stage of an application on a store, and how long its input and output take
// (MTC Envelope, section 4), by equations 1 to 3 with the rates of the store's envelope.
//
//   write = ceil(N/C) * (C/T_create + max(C/T_w, C*D/B_w))                           (1), (2)
//   read  = ceil(N/C) * (max(C/T_1, C*D_1/B_1) + max(C/T_N, C*D_N/B_N))              (3)
//
// N tasks run on C clients in rounds; a task's terms are summed over its files. A stage with fewer
// tasks than clients uses that many clients. Rates are those of the envelope at C clients, or at
// the fewest measured clients if those are more, as in the paper for its stage of 16 tasks:
//
// - coarse: the highest rate of any file size, with every file's creation counted. The paper's
//   Table 4 uses this model; its metadata share of a read is what the opens alone would take.
// - fine: linear in the file's size between measured sizes, with one creation per task, since later
//   ones are spread over the round.
//
// Pure.
#ifndef MOSA_PREDICTOR_ENVELOPE_CLASSIFY_H_
#define MOSA_PREDICTOR_ENVELOPE_CLASSIFY_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/envelope.h"
#include "predictor/envelope/profile.h"

namespace mosa::predict {

enum class Bound : uint8_t { kNothing = 1, kMetadata, kThroughput, kBandwidth };
// "-", "metadata", "throughput", "bandwidth".
std::string_view NameOf(Bound bound);

// The input or the output of a stage.
struct PhaseForecast {
  double metadata_share = 0;  // Metadata operations' share of the coarse time.
  // The larger of the two transfer terms; for reads, of the kind that takes longer.
  Bound transfer_bound = Bound::kNothing;
  // `transfer_bound`, or kMetadata if that takes more than half. `operation` is the bounding one.
  Bound bound = Bound::kNothing;
  EnvelopeOperation operation = EnvelopeOperation::kCreate;
  // Also bound by concurrency: fewer clients that get more done per second, beyond both intervals.
  // 0: no measured number does.
  uint32_t better_clients = 0;
  double coarse_seconds = 0;
  double fine_seconds = 0;
};

struct StageForecast {
  uint32_t clients = 1;        // Concurrent clients: at most the stage's tasks.
  uint32_t rated_clients = 1;  // The number of clients whose rates were used.
  uint64_t rounds = 1;
  PhaseForecast input;
  PhaseForecast output;
};

// Uses at most as many clients as the stage has tasks. Fails as Envelope::At() does. Precondition:
// clients > 0.
Result<StageForecast> Classify(const StageProfile& stage, const Envelope& envelope,
                               uint32_t clients);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_CLASSIFY_H_
