// Compare: compares predicted runs with measured ones, cell by cell, and decides which differences
// are anomalies and which part of the deployment does not perform as predicted (Provisioning,
// section 5).
//
// judging.h decides which cells are anomalies. Their effect is the residual, multiplied by how many
// such times follow one another. One run alone is enough for the workflow, its stages, the mean of
// their tasks and the waits before them. Hosts and single tasks must persist, since in one run it
// is chance which of them is the last where streams meet.
//
// A host is compared with the other hosts: only a slower one is an anomaly.
//
// A workflow, a stage or its tasks that are slower at `rate_witnessed`, because of tasks, are an
// anomaly as well if the own time or bytes of a part, compared with the prediction, confirm it
// (own_times.h, read_again.h): either of the two is rarely chance, both hardly ever.
//
// What the work of others on busy machines explains (busy.h) is removed before judging. A deviation
// that is an anomaly only without this removal is not an anomaly but *machine busy*, unless the
// requests between hosts show in the same runs that one host is slower than the others, which
// suffered from the same work. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_COMPARISON_H_
#define MOSA_PREDICTOR_COMPARE_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "predictor/compare/blame.h"
#include "predictor/compare/bytes.h"
#include "predictor/compare/cells.h"
#include "predictor/compare/detection.h"
#include "predictor/compare/diagnosis.h"
#include "predictor/compare/finding.h"
#include "predictor/compare/judging.h"
#include "predictor/compare/request_cells.h"
#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

struct CompareOptions {
  JudgeRules rules;
  double surest = 0.03;                // Lower limit of a prediction's uncertainty.
  uint32_t slots = 1;                  // Concurrent tasks per host.
  uint64_t link_bytes_per_second = 0;  // As predicted, in each direction.
};

enum class Verdict : uint8_t {
  kAsPredicted,
  kNotMeasured,
  kSmall,         // Deviates, but too little of the workflow's time to matter.
  kNotYet,        // Deviates in one run, and not enough to be believed.
  kOthersSlower,  // Hosts only: it is faster than others, since one of them is slow.
  kMachineBusy,   // Deviates by no more than the work of others on the machines explains.
  kAnomaly,
};
const char* ToText(Verdict verdict);

struct ComparedCell {
  CellName cell;
  double predicted_s = 0;  // The median of the draws; for a host, what the other hosts predict.
  std::optional<Interval<double>> predicted_interval_s;  // Nine of ten runs lie in it.
  uint32_t runs = 0;                                     // Number of judged runs that have it.
  double measured_s = 0;                                 // Their median,
  Interval<double> measured_range_s;                     // least and most.
  double residual_s = 0;
  double residual_share = 0;                 // Relative to the prediction; 0.2: a fifth more.
  Interval<double> residual_share_interval;  // At 95 %.
  double p = 1;
  double effect_share = 0;  // Its share of the workflow's predicted time, at most; signed.
  Verdict verdict = Verdict::kNotMeasured;
};

struct Anomaly {
  size_t cell = 0;  // Index into Comparison::cells.
  bool slower = true;
  double measured_s = 0;  // The median of the runs that show it.
  double predicted_s = 0;
  Interval<double> residual_share_interval;  // At 95 %, over these runs.
  double effect_share = 0;
  std::vector<std::string> shown_in;  // Names of judged runs.
  size_t judged = 0;                  // Number of judged runs.
  std::string since;                  // The first run of those that show it.
  std::vector<Blame> blamed;          // Best first; for the tasks of the cell.
  std::string sentence;               // What, where, since when, how large;
  std::string cause;                  // which part explains it, and how well; may be empty;
  std::string open_first;             // what to look at.
};

// A judged run in which something is much slower than predicted and than in the other runs.
struct OddRun {
  std::string run;
  std::string sentence;
};

struct Comparison {
  std::vector<std::string> runs;    // The compared runs,
  std::vector<std::string> judged;  // and the last of them.
  uint32_t draws = 0;
  std::vector<ComparedCell> cells;  // By level and name.
  std::vector<ComparedBytes> stage_bytes, link_bytes;
  std::vector<ComparedBytes> node_bytes;  // The bytes that tasks wrote, by node.
  std::vector<ChunkShare> chunks;         // From the last judged run that has them; else empty.
  std::string other_chunks;  // A sentence, if more than a tenth of the bytes is in other chunks.
  std::vector<std::pair<std::string, SeenMachine>> machines;  // In judged runs, by run name.
  std::string machine_busy;  // A sentence, if machines were busy in judged runs.
  std::vector<OddRun> odd_runs;
  // From judged runs with request times. All requests of such a class together took longer than the
  // same class elsewhere, by a twentieth of the workflow's time.
  std::vector<SlowRequests> slow_requests;
  // From judged runs, by request_cells.h; empty if runs or draws have no request times.
  std::vector<RequestCell> requests;
  std::vector<Anomaly> anomalies;  // Largest effect first; ties by level.
  size_t anomalies_left_out = 0;   // Single tasks beyond the 100 above.
  std::vector<Blame> blamed;       // For all tasks.
  // What is said first: whether the workflow is slower, and because of what.
  Detection detection;
  std::vector<Diagnosis> diagnoses;
  Finding finding;
};

// Preconditions: at least kDrawsMin draws; all are of this workflow, on hosts of the same names,
// and runs are in order of time. Without runs, every cell has its prediction only.
Comparison Compare(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& runs, const CompareOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_COMPARISON_H_
