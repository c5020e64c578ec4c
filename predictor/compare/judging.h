// Judging: which of many values, each drawn often and measured in a few runs, are slower than
// predicted. For the times of requests (request_cells.h).
//
// A value is judged by its last three runs (kJudgedRuns).
//
//  1. It must persist: it is slower in two of these runs, by its own test at 5 %, and matters.
//  2. The residual of the runs that show it is tested (statistics.h), on the slower side alone. Its
//     p is multiplied by the number of ways to choose these runs, and must stand at the
//     false-discovery rate of all values.
//  3. It must matter: its effect in each of them is a share of the workflow's predicted time.
//
// One run alone is enough only if the value stands in that run at the lower rate, with the larger
// effect.
//
// A residual is compared with the spread of the draws and the spread from one run to the next. The
// latter is half the mean square of the difference between successive runs, over all values of a
// group: these rise and fall together, so they count as one step. The variance of the draws counts
// as some more steps, and as the only ones if there is a single run. So a change that begins
// between two runs widens the spread by one step only. An excuse (`excused`) is known to within a
// half of it, and widens its steps accordingly.
//
// Hence one run among others is never slower by these rules, whatever it took: it makes two steps
// as large as itself. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_JUDGING_H_
#define MOSA_PREDICTOR_COMPARE_JUDGING_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/statistics.h"

namespace mosa::predict {

inline constexpr size_t kJudgedRuns = 3;

// The effect of what persists, as a share of the workflow's time.
inline constexpr double kEffectShareMin = 0.05;

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
  std::vector<double> drawn;                   // Places; at least two.
  double surest = 0;                           // Lower limit of its uncertainty.
  std::string group;                           // Values whose runs vary together.
  std::vector<std::optional<JudgedRun>> runs;  // All, in order.
  // Set by Judge():
  RunSpread spread;
  double p = 1;               // Over the judged runs.
  bool stands = false;        // Whether the residual stands.
  bool is_faster = false;     // By its own test.
  std::vector<size_t> shown;  // The runs that make it an anomaly; else none.
};

// The first judged run.
size_t FirstJudged(size_t runs);

// All values have as many runs.
void Judge(std::vector<JudgedValue>& values);

// The residual in these runs. Precondition: they have the value.
Residual ResidualIn(const JudgedValue& value, const std::vector<size_t>& runs);

// As shares of the prediction, for places that are logarithms.
Interval<double> SharesOf(const Residual& residual);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_JUDGING_H_
