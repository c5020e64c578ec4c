// Compare: compares predicted runs with measured ones, time by time, and says whether the workflow
// has become slower and because of what (Provisioning, section 5).
//
// The tables show every time and byte beside its prediction and the interval in which nine of ten
// predicted runs lie. They accuse nobody: of hundreds of figures, many lie outside by chance. What
// is wrong is said once, for the workflow as a whole, by finding.h.
//
// Pure.
#ifndef MOSA_PREDICTOR_COMPARE_COMPARISON_H_
#define MOSA_PREDICTOR_COMPARE_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "predictor/compare/bytes.h"
#include "predictor/compare/cells.h"
#include "predictor/compare/detection.h"
#include "predictor/compare/diagnosis.h"
#include "predictor/compare/finding.h"
#include "predictor/compare/request_cells.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

enum class Verdict : uint8_t {
  kAsPredicted,  // Nine of ten predicted runs lie around it.
  kNotMeasured,
  kSlower,  // Most of them are faster;
  kFaster,  // or slower.
};
const char* ToText(Verdict verdict);

struct ComparedCell {
  CellName cell;
  double predicted_s = 0;  // The median of the draws; for a host, what the other hosts predict.
  std::optional<Interval<double>> predicted_interval_s;  // Nine of ten runs lie in it.
  uint32_t runs = 0;                                     // Number of judged runs that have it.
  double measured_s = 0;                                 // Their median,
  Interval<double> measured_range_s;                     // least and most.
  double residual_share = 0;  // Relative to the prediction; 0.2: a fifth more.
  double effect_share = 0;    // Its share of the workflow's predicted time, at most; signed.
  Verdict verdict = Verdict::kNotMeasured;
};

struct Comparison {
  std::vector<std::string> runs;    // The compared runs,
  std::vector<std::string> judged;  // and the last of them, which the tables show.
  uint32_t draws = 0;
  std::vector<ComparedCell> cells;  // By level and name.
  std::vector<ComparedBytes> stage_bytes, link_bytes;
  std::vector<ComparedBytes> node_bytes;  // The bytes that tasks wrote, by node.
  std::vector<ChunkShare> chunks;         // From the last judged run that has them; else empty.
  std::string other_chunks;  // A sentence, if more than a tenth of the bytes is in other chunks.
  std::vector<std::pair<std::string, SeenMachine>> machines;  // In judged runs, by run name.
  std::string machine_busy;  // A sentence, if machines were busy in judged runs.
  // From judged runs, by request_cells.h; empty if runs or draws have no request times.
  std::vector<RequestCell> requests;
  // Set by the caller, who can replay runs: whether the workflow is slower, and because of what.
  Detection detection;
  std::vector<Diagnosis> diagnoses;
  Finding finding;
};

// `slots`: concurrent tasks per host. Preconditions: at least kDrawsMin draws; all are of this
// workflow, on hosts of the same names, and runs are in order of time. Without runs, every cell has
// its prediction only.
Comparison Compare(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& runs, uint32_t slots);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_COMPARISON_H_
