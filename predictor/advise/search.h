// Which hints pay: for each class of files (candidates.h) the alternative without which the run is
// slower, found by simulating the run with and without it.
//
// Hints hang together (two may pay only together, or each make the other idle), so none is judged
// by itself. From what `mosa run` does without advice:
//
//  1. A class takes another alternative if the run is then *faster*: in all draws but less than
//     the twentieth part, and by a share of the run that is worth a rule in the median. What is
//     best for each class is tried for all at once; unless that is better still, the best one is
//     taken alone. Again, until nothing is faster.
//  2. Backward elimination: a class takes a cheaper alternative (nothing at all first) while what
//     1 found is not faster than that, and it does not move a twentieth more over the network
//     than the other (which costs others that share the network, if not this run) where that one
//     fails in no more draws. Compared is always with
//     the end of 1: many small losses that cannot be told apart one by one are not all given away.
//     Least loss first, until stable.
//  3. If now something is faster again, 1 and 2 once more, at most three times.
//
// Draws are common random numbers: platform and places where files begin are drawn once for all
// that is compared, and compared draw by draw. Draw 0 is as measured. Pure.
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

// One simulation that is wanted. Of `system` dss the choice is that of no hints.
struct Trial {
  HintChoice choice;
  System system = System::kWass;
  uint32_t draw = 0;
  auto operator<=>(const Trial&) const = default;
};

struct TrialOutcome {
  Duration time;
  Duration computing;        // As Prediction::computing.
  uint64_t link_bytes = 0;   // Sent by all hosts.
  uint64_t store_bytes = 0;  // The most that each node held, summed.
  std::string failure;       // Empty: the run ends well.
  // What the model is off by in this draw (ModelFactor()) where no task computes: it widens
  // intervals. Comparisons and medians leave it out, since it is the same for both sides.
  double factor = 1;
  double seconds_off() const { return FactorOfWhole(factor, time, computing) * SecondsOf(time); }
};
TrialOutcome TrialOutcomeOf(const Prediction& prediction);

// The platform and configuration of a draw, and what the model is off by in it.
Platform PlatformOfDraw(const Platform& platform, uint32_t draw);
double FactorOfDraw(const Platform& platform, uint32_t draw);
Configuration ConfigurationOfDraw(Configuration configuration, uint32_t draw);

// Outcomes of all of these, in their order.
using Simulate = std::function<Result<std::vector<TrialOutcome>>(const std::vector<Trial>&)>;

struct AdviseOptions {
  uint32_t draws = 20;      // 0: draw 0 is all there is.
  double share_min = 0.01;  // Share of the run: less is not worth a rule.
};

// How long runs take, over all draws.
struct RunTime {
  double measured_s = 0;  // Draw 0: with figures as measured.
  double median_s = 0;
  std::optional<Interval<double>> interval_s;
  uint32_t draws_failed = 0;
  std::string failure;     // Draw 0's, or the first one's.
  double link_bytes = 0;   // Median.
  double store_bytes = 0;  // The same.
};

// What one run gains over another: the differences of draws, positive if the other takes more.
struct Gain {
  double median_s = 0;
  std::optional<Interval<double>> interval_s;
  double share = 0;  // As a share of the other's median.
  double link_bytes = 0;
  double store_bytes = 0;  // Positive: the other holds more.
  bool pays = false;       // It is faster, as said above.
};
// Compares the same draws. Those where neither ends well do not count; one that fails alone takes
// for ever.
Gain GainOf(const std::vector<TrialOutcome>& run, const std::vector<TrialOutcome>& other,
            const AdviseOptions& options);
RunTime RunTimeOf(const std::vector<TrialOutcome>& draws, const AdviseOptions& options);

// Advice on a class: what is kept and what it gains over no hint, everything else being as advised;
// or what is left out, and what it would gain.
struct ClassAdvice {
  size_t alternative = 0;  // Which of the class's this is about. 0: there is none to speak of.
  bool kept = false;
  Gain gain;
  std::string reason;  // Why it is left out, or kept though it does not pay alone.
};

struct HintAdvice {
  HintChoice choice;
  RunTime unhinted;   // No hints, tasks go to hosts in turn: system=dss.
  RunTime by_itself;  // What `mosa run` does without advice.
  RunTime advised;
  Gain over_unhinted, over_by_itself;
  std::vector<ClassAdvice> classes;  // By class.
};

// FailedPrecondition: the run would fail with hints and without.
Result<HintAdvice> FindHints(const std::vector<HintClass>& classes, const AdviseOptions& options,
                             const Simulate& simulate);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_SEARCH_H_
