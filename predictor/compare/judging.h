// Judging: which of many values, each drawn often and measured in a few runs, are anomalies. One
// place for the times of a run and for those of its requests.
//
// A value is judged by its last three runs (kJudgedRuns).
//
//  1. It must persist: be off in the same direction, by its own test at 5 %, and matter, in two of
//     these runs.
//  2. The residual of the runs that show it is tested (statistics.h), its p times in how many ways
//     they could have been chosen; it must stand at the false-discovery rate, in its family.
//  3. It must matter: its effect in each of them is a share of the workflow's predicted time.
//
// Rule 2 has a lower bar (`rate_witnessed`) for what a part's own time shows as well; the caller
// says for what.
//
// One run alone is enough only for what is said to be told by one (`can_stand_alone`), if it stands
// in that run at the lower rate, with the larger effect.
//
// What a residual is held against is the spread of the draws and that from one run to the next:
// half the mean square of what two that follow one another differ by, of all values of a group,
// which go up and down together and are one step; to these the draws' own variance counts as some
// more, and as all there are of a single run. Something that begins between two runs makes it wider
// by that one step alone. What was taken off a run (`excused`) is known to a half of it, and makes
// its steps as much wider. For values that are off only if slower, rule 2 tests that side
// alone.
//
// So one run among others never is an anomaly, however slow: it makes two steps, as large as
// itself. If it stands at the lower rate, with the larger effect, against the steps of the other
// runs alone, and they do not show it, it is *odd*: told, and no anomaly unless it persists. Pure.
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
  double rate_once = 0.001;      // in what one run alone shows,
  double rate_witnessed = 0.05;  // and in what a part's own time shows as well (comparison.h).
  double share_min = 0.05;       // Share of the workflow's time: the effect of what persists,
  double share_once_min = 0.25;  // and of what one run alone shows.
};

struct JudgedRun {
  double place = 0;  // On the scale of the test.
  double effect_share = 0;
  double excused = 0;  // Taken off `place` before, as not known to be the run's own.
  // Set by Judge():
  Residual residual;
  bool shows = false;
  bool shows_much = false;  // Enough for an anomaly by itself.
};

struct JudgedValue {
  std::vector<double> drawn;  // Places; two at least.
  double surest = 0;          // No prediction is surer than that.
  std::string family;         // Tested together.
  std::string group;          // Whose runs differ alike.
  bool is_off_if_slower_only = false;
  bool can_stand_alone = false;
  std::vector<std::optional<JudgedRun>> runs;  // All, in their order.
  // Set by Judge():
  RunSpread spread;
  double p = 1;               // Over the judged runs.
  bool stands = false;        // Whether that is off.
  bool is_faster = false;     // For values off only if slower: it is faster, by its own test.
  std::vector<size_t> shown;  // The runs by which it is an anomaly, in one direction; else none.
  std::optional<size_t> odd;  // The judged run that is slower, alone.
};

// From this run on they are judged.
size_t FirstJudged(size_t runs);

void Judge(const JudgeRules& rules, size_t runs, std::vector<JudgedValue>& values);

bool ShowsAs(const JudgedValue& value, size_t run, bool slower);

// The residual in these runs, which have the value.
Residual ResidualIn(const JudgedValue& value, const std::vector<size_t>& runs);

// As shares of the predicted, of places that are logarithms.
Interval<double> SharesOf(const Residual& residual);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_JUDGING_H_
