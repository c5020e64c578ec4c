// Request cells: how long requests of each class stayed with each daemon, predicted and measured
// (Provisioning, section 5), and which part of the deployment explains those that stayed too long.
//
// A class is tested by the logarithm of its mean, with kSmallRequestSeconds added, and is an
// anomaly by the rules of judging.h: if it is slower, as a request that waits less harms nobody. A
// platform is measured with whole files, so kRequestsSurest limits how sure a prediction of single
// requests can be. The effect is the total excess time of the class, as a share of the workflow's
// predicted time: an upper limit, since many requests wait at once.
//
// Some classes are shown but not judged, because prediction and measurement differ by definition:
//
//  fuse.*          The kernel merges, splits and avoids requests differently from the model.
//  manager         The daemon commits and answers a round of requests together, the model each one
//                  alone: with a busy manager, each request takes as long as its round. (The
//                  `manager.*` requests of mounts, which wait for these, are judged, and so is the
//                  manager's own work: `NAME.core` and `log`.)
//  storage `read`  The daemon is done when the network has accepted the last byte, the model when
//                  that byte has arrived.
//
// Classes that are not simulated, not measured, or too rare are not judged either. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
#define MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/judging.h"
#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/compare/suspect.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

inline constexpr double kSmallRequestSeconds = 0.001;
inline constexpr double kRequestsSurest = 0.25;

enum class RequestVerdict : uint8_t {
  kAsPredicted,
  kNotPredicted,  // It is not simulated, or too rare.
  kNotMeasured,
  kTooFew,  // In every run: the mean of a few says little.
  kShown,   // Not comparable.
  kFaster,
  kSmall,        // Deviates, but too little to matter.
  kNotYet,       // Deviates in one run only, or not enough to be believed.
  kMachineBusy,  // Deviates by no more than the work of others explains (busy.h).
  kAnomaly,
};
const char* ToText(RequestVerdict verdict);

struct RequestFigures {
  double count = 0;
  double mean_s = 0;
  double median_s = 0;
  double p90_s = 0;
};

// All requests of a class in one run.
struct RequestsInRun {
  size_t run = 0;  // Index into the given runs.
  double count = 0;
  double more_s = 0;  // Total excess, at most.
};

struct RequestCell {
  RequestClass which;
  RequestFigures predicted;                    // Medians of the draws that have the class.
  std::optional<Interval<double>> interval_s;  // For the mean: nine of ten runs lie in it.
  uint32_t runs = 0;                           // Number of judged runs that have it.
  // Medians of these runs; for an anomaly, of the runs that show it.
  RequestFigures measured;
  // Two modes, if most of those runs have two and most draws have one.
  std::optional<Modes> modes;
  double residual_share = 0;                 // For the mean; 0.2: a fifth longer.
  Interval<double> residual_share_interval;  // At 95 %.
  double more_s = 0;                         // Total excess of all requests of a run, at most.
  double effect_share = 0;
  std::optional<double> p;            // Set if tested: over all judged runs.
  std::vector<RequestsInRun> tested;  // The runs in which it was tested.
  std::vector<std::string> shown_in;  // For an anomaly: names of the runs that show it.
  RequestVerdict verdict = RequestVerdict::kNotPredicted;
  std::string sentence, open_first;  // Set for an anomaly.
};

// Judges the last runs, if they have request times. `workflow_s` is as predicted. Sorts the classes
// by largest deviation, then by total time, measured or predicted.
std::vector<RequestCell> CompareRequests(const std::vector<SeenRun>& draws,
                                         const std::vector<SeenRun>& runs, double workflow_s);

// Number of anomalies. They come first.
size_t CountOff(const std::vector<RequestCell>& cells);

// Whether prediction and measurement mean the same: see above.
bool IsJudged(const RequestClass& which);

// What a daemon does without any other part: a node's `write.object` and `read.object`, the
// manager's `NAME.core` and `log`.
bool IsOwnWork(const RequestClass& which);

// "1.23 ms".
std::string ShowTime(double seconds);

// The share, from 0 to 1, that each suspect explains of the excess time of requests from mounts to
// others and of nodes' work for them, over all runs in which they were tested: the squared cosine
// between excess and use. A class uses the manager and storage nodes once per request, and other
// parts for the predicted time. Empty if there is no anomaly.
std::map<Suspect, double> RequestEvidence(const std::vector<RequestCell>& cells);

// Sets the sentences of anomalies.
void ExplainRequests(std::vector<RequestCell>& cells);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
