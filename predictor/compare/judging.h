// Judging: which of many values, each drawn often and measured in a few runs, are anomalies. Shared
// by the times of a run and the times of its requests.
//
// A value is judged by its last three runs (kJudgedRuns).
//
//  1. It must persist: in two of these runs it deviates in the same direction, by its own test at
//     5 %, and matters.
//  2. The residual of the runs that show it is tested (statistics.h). Its p is multiplied by the
//     number of ways to choose these runs, and must stand at the false-discovery rate of its
//     family.
//  3. It must matter: its effect in each of them is a share of the workflow's predicted time.
//
// Rule 2 has a lower bar (`rate_witnessed`) for values that a part's own time confirms; the caller
// decides which these are.
//
// One run alone is enough only for values that the caller marks with `can_stand_alone`, and only if
// the value stands in that run at the lower rate, with the larger effect.
//
// A residual is compared with the spread of the draws and the spread from one run to the next. The
// latter is half the mean square of the difference between successive runs, over all values of a
// group: these rise and fall together, so they count as one step. The variance of the draws counts
// as some more steps, and as the only ones if there is a single run. So a change that begins
// between two runs widens the spread by one step only. An excuse (`excused`) is known to within a
// half of it, and widens its steps accordingly. For values that are off only if slower, rule 2
// tests that side alone.
//
// Hence one run among others is never an anomaly, however slow: it makes two steps as large as
// itself. If it stands at the lower rate, with the larger effect, against the steps of the other
// runs alone, and the others do not show it, it is *odd*: it is reported, but is not an anomaly
// unless it persists. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_JUDGING_H_
#define MOSA_PREDICTOR_COMPARE_JUDGING_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/statistics.h"

namespace mosa::predict {

inline constexpr size_t kJudgedRuns = 3;

struct JudgeRules {
  double rate = 0.01;            // False discoveries among what persists,
  double rate_once = 0.001;      // in a single run alone,
  double rate_witnessed = 0.05;  // and among what a part's own time confirms (comparison.h).
  double share_min = 0.05;       // Share of the workflow's time: the effect of what persists,
  double share_once_min = 0.25;  // and of a single run alone.
};

struct JudgedRun {
  double place = 0;  // On the scale of the test.
  double effect_share = 0;
  double excused = 0;  // Taken off `place` before, because others may have caused it.
  // Set by Judge():
  Residual residual;
  bool shows = false;
  bool shows_much = false;  // Enough for an anomaly alone.
};

struct JudgedValue {
  std::vector<double> drawn;  // Places; at least two.
  double surest = 0;          // Lower limit of its uncertainty.
  std::string family;         // Tested together.
  std::string group;          // Values whose runs vary together.
  bool is_off_if_slower_only = false;
  bool can_stand_alone = false;
  std::vector<std::optional<JudgedRun>> runs;  // All, in order.
  // Set by Judge():
  RunSpread spread;
  double p = 1;               // Over the judged runs.
  bool stands = false;        // Whether the residual stands.
  bool is_faster = false;     // For values off only if slower: it is faster, by its own test.
  std::vector<size_t> shown;  // The runs that make it an anomaly, in one direction; else none.
  std::optional<size_t> odd;  // The only judged run that is slower.
};

// The first judged run.
size_t FirstJudged(size_t runs);

void Judge(const JudgeRules& rules, size_t runs, std::vector<JudgedValue>& values);

bool ShowsAs(const JudgedValue& value, size_t run, bool slower);

// The residual in these runs. Precondition: they have the value.
Residual ResidualIn(const JudgedValue& value, const std::vector<size_t>& runs);

// As shares of the prediction, for places that are logarithms.
Interval<double> SharesOf(const Residual& residual);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_JUDGING_H_
