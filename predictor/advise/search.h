// Finds which hints pay: for each class of files (candidates.h), the alternative without which the
// run is slower. It simulates the run with and without each.
//
// Hints interact: two may pay only together, or each may make the other useless. So none is judged
// alone. The search starts from what `mosa run` does without advice:
//
//  1. A class takes another alternative if that makes the run *faster*: in all but fewer than a
//     twentieth of the draws, and by at least `share_min` in the median. The best alternatives of
//     all classes are tried together; unless that is better still, the single best one is taken.
//     Repeat until nothing is faster.
//  2. Backward elimination: a class takes a cheaper alternative (first, no hint at all) unless the
//     result of step 1 is faster, or unless it moves at least a twentieth more bytes over the
//     network, which costs others that share it. (The bytes count only if the dearer choice fails
//     in no more draws.) The comparison is always with the result of step 1, so that many small
//     losses, each too small to tell, do not add up. The smallest loss goes first, until stable.
//  3. If something is faster again, steps 1 and 2 are repeated, at most three times in all.
//
// Draws are common random numbers: platforms and the places where files begin are drawn once for
// all choices and compared draw by draw. Draw 0 is as measured. Pure.
#ifndef MOSA_PREDICTOR_ADVISE_SEARCH_H_
#define MOSA_PREDICTOR_ADVISE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/advise/candidates.h"
#include "predictor/model/cost.h"
#include "predictor/model/draws.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {

// One simulation to run. With `system` dss, `choice` has no hints.
struct Trial {
  HintChoice choice;
  System system = System::kWass;
  uint32_t draw = 0;
  auto operator<=>(const Trial&) const = default;
};

struct TrialOutcome {
  Duration time;
  Duration computing;        // As Prediction::computing.
  uint64_t link_bytes = 0;   // Bytes sent by all hosts.
  uint64_t store_bytes = 0;  // The most that each node held, summed over nodes.
  std::string failure;       // Empty: the run ends well.
  // The model's error in this draw (ModelFactor()) where no task computes. It widens intervals.
  // Comparisons and medians leave it out, since both sides share it.
  double factor = 1;
  double seconds_off() const { return FactorOfWhole(factor, time, computing) * SecondsOf(time); }
};
TrialOutcome TrialOutcomeOf(const Prediction& prediction);

// Returns the outcomes of these trials, in order.
using Simulate = std::function<Result<std::vector<TrialOutcome>>(const std::vector<Trial>&)>;

struct AdviseOptions {
  uint32_t draws = 20;      // 0: only draw 0.
  double share_min = 0.01;  // A gain below this share of the run is not worth a rule.
};

// A run's time over all draws.
struct RunTime {
  double measured_s = 0;  // Draw 0: with figures as measured.
  double median_s = 0;
  std::optional<Interval<double>> interval_s;
  uint32_t draws_failed = 0;
  std::string failure;     // Draw 0's failure, or the first draw's that failed.
  double link_bytes = 0;   // Median.
  double store_bytes = 0;  // Median.
};

// The differences between two runs, draw by draw; positive if the other takes more.
struct Gain {
  double median_s = 0;
  std::optional<Interval<double>> interval_s;
  double share = 0;  // Relative to the other's median.
  double link_bytes = 0;
  double store_bytes = 0;  // Positive: the other holds more.
  bool pays = false;       // The run is *faster*, as defined above.
};
// Compares the same draws. Draws in which both fail do not count. A run that fails alone counts as
// infinitely slow.
Gain GainOf(const std::vector<TrialOutcome>& run, const std::vector<TrialOutcome>& other,
            const AdviseOptions& options);
RunTime RunTimeOf(const std::vector<TrialOutcome>& draws, const AdviseOptions& options);

// Advice on a class. If a hint is kept: what it gains over no hint, with everything else as
// advised. If it is left out: what it would gain.
struct ClassAdvice {
  size_t alternative = 0;  // The alternative that this is about; 0: there is none.
  bool kept = false;
  Gain gain;
  std::string reason;  // Why it is left out, or kept though it does not pay alone.
};

struct HintAdvice {
  HintChoice choice;
  RunTime unhinted;   // No hints, and tasks go to hosts in turn: system=dss.
  RunTime by_itself;  // What `mosa run` does without advice.
  RunTime advised;
  Gain over_unhinted, over_by_itself;
  std::vector<ClassAdvice> classes;  // By class.
};

// FailedPrecondition: the run would fail with hints and without them.
Result<HintAdvice> FindHints(const std::vector<HintClass>& classes, const AdviseOptions& options,
                             const Simulate& simulate);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_SEARCH_H_
