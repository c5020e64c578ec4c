// Compare: predicted runs beside measured ones, cell by cell, and what of the differences is an
// anomaly: which part of the deployment does not do what the prediction says it does (Provisioning,
// section 5).
//
// Which cells are anomalies: judging.h; their effect is the residual, times how often one such time
// follows another. One run alone tells of the workflow, its stages, their tasks in the mean and the
// waits before them; hosts and single tasks must persist, since where streams meet it is chance
// which of them is the last.
//
// A host is beside other hosts: only a slower one is an anomaly.
//
// A workflow, stage or its tasks that are slower at `rate_witnessed`, by their tasks, are an
// anomaly as well if there is a part whose own time or bytes, beside what is predicted of them, say
// that it made them so (own_times.h, read_again.h): by chance one of these two is there seldom,
// both hardly ever.
//
// What others' work on busy machines explains (busy.h) is taken off before it is judged. What is an
// anomaly without that only is no anomaly, but *machine busy*; unless what it asks of other hosts
// says in the same runs that a host is slow beside them: they had the same others. Pure.
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
#include "predictor/compare/judging.h"
#include "predictor/compare/request_cells.h"
#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

struct CompareOptions {
  JudgeRules rules;
  double surest = 0.03;                // No prediction is surer than that.
  uint32_t slots = 1;                  // Tasks at a time on each host.
  uint64_t link_bytes_per_second = 0;  // As predicted, each direction.
};

enum class Verdict : uint8_t {
  kAsPredicted,
  kNotMeasured,
  kSmall,         // Off, but too little of the workflow's time to matter.
  kNotYet,        // Off in one run, and not enough to be believed.
  kOthersSlower,  // Hosts only: it is faster than others, since one of them is slow.
  kMachineBusy,   // Off by no more than others' work on the machines explains.
  kAnomaly,
};
const char* ToText(Verdict verdict);

struct ComparedCell {
  CellName cell;
  double predicted_s = 0;  // The median of the draws; for a host, what is expected of it.
  std::optional<Interval<double>> predicted_interval_s;  // Nine of ten runs.
  uint32_t runs = 0;                                     // Judged ones that have it.
  double measured_s = 0;                                 // Their median,
  Interval<double> measured_range_s;                     // least and most.
  double residual_s = 0;
  double residual_share = 0;                 // Relative to the predicted; 0.2: a fifth more.
  Interval<double> residual_share_interval;  // At 95 %.
  double p = 1;
  double effect_share = 0;  // What it makes of the workflow's predicted time, at most; signed.
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
  size_t judged = 0;                  // How many were judged.
  std::string since;                  // The first run that shows it up to now.
  std::vector<Blame> blamed;          // Best first; for the tasks that the cell is about.
  std::string sentence;               // What, where, since when, how large;
  std::string cause;                  // which part explains it, and how well; may be empty;
  std::string open_first;             // what to look at.
};

// A judged run that is much slower in something than the others and the prediction, alone.
struct OddRun {
  std::string run;
  std::string sentence;
};

struct Comparison {
  std::vector<std::string> runs;    // That were compared,
  std::vector<std::string> judged;  // the last of them.
  uint32_t draws = 0;
  std::vector<ComparedCell> cells;  // By level and name.
  std::vector<ComparedBytes> stage_bytes, link_bytes;
  std::vector<ComparedBytes> node_bytes;  // What each node holds of the bytes that tasks wrote.
  std::vector<ChunkShare> chunks;         // From the last judged run that says it; else empty.
  std::string other_chunks;  // A sentence, if more than a tenth of the bytes is in other chunks.
  std::vector<std::pair<std::string, SeenMachine>> machines;  // In judged runs, by name.
  std::string machine_busy;  // A sentence, if machines were, in judged runs.
  std::vector<OddRun> odd_runs;
  // From judged runs that know requests' times; each class took a twentieth of the workflow's time
  // more in all than the same elsewhere.
  std::vector<SlowRequests> slow_requests;
  // Judged runs, by request_cells.h; empty if runs or draws do not know requests' times.
  std::vector<RequestCell> requests;
  std::vector<Anomaly> anomalies;  // Largest effect first; levels in their order among equals.
  size_t anomalies_left_out = 0;   // Single tasks smaller than the 100 above.
  std::vector<Blame> blamed;       // For all tasks.
};

// Preconditions: kDrawsMin draws; all of this workflow, on hosts of the same names, runs in their
// order in time. Without runs every cell says what is predicted.
Comparison Compare(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& runs, const CompareOptions& options);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_COMPARISON_H_
