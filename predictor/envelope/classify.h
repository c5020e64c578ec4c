// What bounds each stage of an application on a store, and how long its input and output take
// (MTC Envelope, section 4): equations 1 to 3 with the rates of the store's envelope.
//
//   write = ceil(N/C) * (C/T_create + max(C/T_w, C*D/B_w))                           (1), (2)
//   read  = ceil(N/C) * (max(C/T_1, C*D_1/B_1) + max(C/T_N, C*D_N/B_N))              (3)
//
// N tasks run on C clients in rounds; a task's terms are added up over its files. A stage of
// fewer tasks than clients has that many clients. Rates are those of the envelope at C clients, or
// at the fewest measured ones if those are more, as the paper takes them for its stage of 16 tasks:
//
// - coarse: the highest of any file size, each file's creation counted. That is the model of the
//   paper's Table 4, too, whose metadata share of a read is what its opens alone would take.
// - fine: linear in the file's size between measured ones, and one creation for each task, since
//   later ones are spread over the round.
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
  double metadata_share = 0;  // Share of the coarse time; the rest is reading or writing.
  // The larger of the two terms of the equations; for reads, of the kind that takes longer.
  Bound transfer_bound = Bound::kNothing;
  // As above, or kMetadata where that takes the larger share; and of which operation.
  Bound bound = Bound::kNothing;
  EnvelopeOperation operation = EnvelopeOperation::kCreate;
  // Bound by concurrency, too: so many clients, fewer than there are, get more of it done per
  // second, beyond the intervals of both. 0: none measured do.
  uint32_t better_clients = 0;
  double coarse_seconds = 0;
  double fine_seconds = 0;
};

struct StageForecast {
  uint32_t clients = 1;        // At the same time: at most the stage's tasks.
  uint32_t rated_clients = 1;  // Whose rates they were given.
  uint64_t rounds = 1;
  PhaseForecast input;
  PhaseForecast output;
};

// As Envelope::At() of `clients`, or of as many as the stage has tasks. Precondition: clients > 0.
Result<StageForecast> Classify(const StageProfile& stage, const Envelope& envelope,
                               uint32_t clients);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ENVELOPE_CLASSIFY_H_
