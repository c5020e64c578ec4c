// Request cells: how long requests of each class stayed with each daemon, predicted and measured
// (Provisioning, section 5), and which part of the deployment those point to that stayed too long.
//
// A class is tested by the logarithm of its mean, as cells are (comparison.h), with
// kSmallRequestSeconds added. It is an anomaly under the same three rules, among the classes of
// requests; but only if it is slower, as a request that waits less than predicted harms nobody. A
// platform is measured by whole files, so that no prediction of single requests is surer than
// kRequestsSurest. The effect is what all requests of the class stayed longer, as a share of the
// workflow's predicted time, at most: many wait at once.
//
// Not judged, only shown, as predicted and measured are not the same:
//
//  fuse.*          the kernel merges, splits and spares requests as the model does not: there are
//                  others.
//  manager         the daemon commits and answers a round of requests together, the model each
//                  alone: a busy manager's stay as long as their round. (Mounts' `manager.*`, which
//                  wait for these, are judged, and so is the manager's own work: `NAME.core` and
//                  `log`.)
//  storage `read`  the daemon is through when the network has taken the last byte over, the model
//                  when it has arrived.
//
// Classes that are not simulated, not measured, or too seldom are not judged either. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
#define MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/blame.h"
#include "predictor/compare/judging.h"
#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

inline constexpr double kSmallRequestSeconds = 0.001;
inline constexpr double kRequestsSurest = 0.25;

enum class RequestVerdict : uint8_t {
  kAsPredicted,
  kNotPredicted,  // It is not simulated, or too seldom.
  kNotMeasured,
  kTooFew,  // In every run: a mean of few says little.
  kShown,   // Not comparable.
  kFaster,
  kSmall,        // Off, but too little to matter.
  kNotYet,       // Off in one run, and not enough to be believed.
  kMachineBusy,  // Off by no more than others' work on the machines explains (busy.h).
  kAnomaly,
};
const char* ToText(RequestVerdict verdict);

struct RequestFigures {
  double count = 0;
  double mean_s = 0;
  double median_s = 0;
  double p90_s = 0;
};

// All that a run has of a class.
struct RequestsInRun {
  size_t run = 0;  // Index of a given run.
  double count = 0;
  double more_s = 0;  // All of them together, at most.
};

struct RequestCell {
  RequestClass which;
  RequestFigures predicted;                    // Medians of the draws that have them.
  std::optional<Interval<double>> interval_s;  // For the mean: nine of ten runs.
  uint32_t runs = 0;                           // Judged ones that have it.
  // Medians of these runs; for an anomaly, of the runs that show it.
  RequestFigures measured;
  // In most of those: two kinds, where most draws have one.
  std::optional<Modes> modes;
  double residual_share = 0;                 // For the mean; 0.2: a fifth longer.
  Interval<double> residual_share_interval;  // At 95 %.
  double more_s = 0;                         // All requests of a run together, at most.
  double effect_share = 0;
  std::optional<double> p;            // It was tested: over all judged runs.
  std::vector<RequestsInRun> tested;  // In which runs.
  std::vector<std::string> shown_in;  // For an anomaly: names of the runs.
  std::optional<size_t> odd_run;      // A judged one that is much slower, alone.
  RequestVerdict verdict = RequestVerdict::kNotPredicted;
  std::string sentence, open_first;  // Set for an anomaly.
};

// The last runs are judged, if they know requests' times. `workflow_s`: as predicted. Classes that
// are off most come first, then those that took most time, measured or predicted.
std::vector<RequestCell> CompareRequests(const std::vector<SeenRun>& draws,
                                         const std::vector<SeenRun>& runs, const JudgeRules& rules,
                                         double workflow_s);

// How many are anomalies: they come first.
size_t CountOff(const std::vector<RequestCell>& cells);

// Whether what is predicted of them and what is measured are the same: see above.
bool IsJudged(const RequestClass& which);

// What a daemon does by itself, with nobody else's part in it: a node's `write.object` and
// `read.object`, the manager's `NAME.core` and `log`.
bool IsOwnWork(const RequestClass& which);

// "1.23 ms".
std::string ShowTime(double seconds);

// Which requests are looked at: those in these runs, from mounts on these hosts.
struct RequestScope {
  std::vector<size_t> runs;
  // What the tasks took that may have waited for them; null: mounts on any host.
  const std::map<std::string, TaskTimes>* tasks = nullptr;
};

// What each suspect explains, from 0 to 1, of what mounts' requests to others, and nodes' work for
// them, stayed longer: as of tasks (blame.h). A class uses the manager and storage nodes as often
// as it asks, and other parts for as long as is predicted. Empty: none is an anomaly.
std::map<Suspect, double> RequestEvidence(const std::vector<RequestCell>& cells,
                                          const RequestScope& scope);

// How much of what tasks took longer they may have waited for requests that are anomalies: 0 to 1.
// As many requests wait at once as predicted (they stay so many times as long in all as tasks
// move bytes), and those of a mount delay the tasks on its host alone.
// Precondition: scope.tasks.
double WaitingShare(const std::vector<RequestCell>& cells, const RequestScope& scope);

// How much longer requests stayed in the odd run, by its name. Precondition: odd_run.
double OddMoreOf(const RequestCell& cell);
std::string SayOddRequests(const RequestCell& cell, const std::string& run);

// Sets the sentences of anomalies.
void ExplainRequests(std::vector<RequestCell>& cells);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
