// Request cells: how long requests of each class stayed with each daemon, predicted and measured
// (paper 000, section 5), and which part of the deployment those point to that stayed too long.
//
// A class is tested by the logarithm of its mean, as cells are (comparison.h), with
// kSmallRequestSeconds added. It is an anomaly under the same three rules, among the classes of
// requests; but only if it is slower, as a request that waits less than predicted harms nobody. A
// platform is measured by whole files, so that no prediction of single requests is surer than
// kRequestsSurest. The effect is what all requests of the class stayed longer, as a share of the
// workflow's predicted time, at most: many wait at once.
//
// Not judged, only shown: `fuse.*`, as the kernel merges, splits and spares requests as the model
// does not, so that there are others; and classes that are not simulated or not measured. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
#define MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/blame.h"
#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

inline constexpr double kSmallRequestSeconds = 0.001;
inline constexpr double kRequestsSurest = 0.25;

enum class RequestVerdict : uint8_t {
  kAsPredicted,
  kNotPredicted,  // It is not simulated, or too seldom.
  kNotMeasured,   // Or too seldom.
  kShown,         // Not comparable.
  kFaster,
  kSmall,   // Off, but too little to matter.
  kNotYet,  // Off in one run, and not enough to be believed.
  kAnomaly,
};
const char* ToText(RequestVerdict verdict);

struct RequestFigures {
  double count = 0;
  double mean_s = 0;
  double median_s = 0;
  double p90_s = 0;
};

struct RequestCell {
  RequestClass which;
  RequestFigures predicted;                    // Medians of the draws that have them.
  std::optional<Interval<double>> interval_s;  // Of the mean: nine of ten runs.
  RequestFigures measured;                     // Medians of the judged runs that have them.
  uint32_t runs = 0;                           // How many.
  double residual_share = 0;                   // Of the mean; 0.2: a fifth longer.
  Interval<double> residual_share_interval;    // Of 95 %.
  double p = 1;
  double more_s = 0;  // All requests of a run together, at most.
  double effect_share = 0;
  std::vector<std::string> shown_in;  // Of an anomaly: names of the runs.
  RequestVerdict verdict = RequestVerdict::kNotPredicted;
  std::string sentence, open_first;  // Of an anomaly.
};

struct RequestRules {
  double rate = 0.01, rate_once = 0.001;  // As CompareOptions.
  double share_min = 0.05, share_once_min = 0.1;
  double workflow_s = 0;  // As predicted.
};

// Those that are off most come first, then those that took most time, measured or predicted.
std::vector<RequestCell> CompareRequests(const std::vector<SeenRun>& draws,
                                         const std::vector<const SeenRun*>& judged,
                                         const RequestRules& rules);

// What each suspect explains, from 0 to 1, of what mounts' requests to others, and nodes' work for
// them, stayed longer: as of tasks (blame.h). A class uses the manager and storage nodes as often
// as it asks, and other parts for as long as is predicted. Empty: none is an anomaly.
std::map<Suspect, double> RequestEvidence(const std::vector<RequestCell>& cells);

// What mounts' requests to others stayed longer in all, of classes that are anomalies.
double SecondsMore(const std::vector<RequestCell>& cells);

// Sets the sentences of anomalies.
void ExplainRequests(const std::map<Suspect, double>& evidence, size_t judged,
                     std::vector<RequestCell>& cells);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REQUEST_CELLS_H_
