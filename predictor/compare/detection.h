// Detection: whether the last runs of a workflow took longer than predicted, and since when.
//
// A run's time differs from its prediction by the prediction's error, which all runs of a
// deployment share, and by a spread of its own. Earlier sound runs show the shared error, so each
// of them makes later runs easier to judge. The runs may have become slower at some point, or may
// all be slow; Bayes' factor says how much more likely the best such story is than that nothing has
// changed, all chances for a change counted. (Raftery and Akman, "Bayesian analysis of a Poisson
// process with a change-point", Biometrika 73, 1986, for the method.)
//
// Runs are held against two predictions, and the clearer answer counts. One knows only the
// workflow: it sees that files or tasks are in bad places. The other replays each run with its
// tasks and files where they were: runs differ from it by less.
#ifndef MOSA_PREDICTOR_COMPARE_DETECTION_H_
#define MOSA_PREDICTOR_COMPARE_DETECTION_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace mosa::predict {

inline constexpr double kExcessMin = 0.05;
// The logarithm of how much more likely it must be that runs are slower, with what replays add
// (finding.h). At most one in a hundred simulated sound runs has so much by its time alone, if
// predictions are off by 3 to 10 % and runs differ by 3 % (detection_test.cc).
inline constexpr double kEvidenceMin = 1.2;
// Times that speak against it more than this are not outweighed by what a part shows.
inline constexpr double kEvidenceLeast = -1.5;

// How long a run took, as logarithms of seconds.
struct TimeOfRun {
  double measured = 0;
  double by_others = 0;  // What the work of others on its machines added, as the simulator has it.
  std::optional<double> replayed;  // What its tasks take where they ran, beside the same others.
};

struct Detection {
  std::vector<size_t> shown;   // The runs since the change, by index; the last one at least.
  std::vector<size_t> before;  // Those before it: sound as far as is known.
  double measured_s = 0;       // The shown runs;
  double expected_s = 0;       // as predicted, with what earlier runs have taught.
  // The former over the latter, less one: 0.2 is a fifth more.
  double excess_share = 0;
  double last_excess_share = 0;  // The same of the last run alone.
  // The logarithm of how much more likely the runs are if they have become slower.
  double evidence = 0;

  // By at least so much, and surely enough, to look which part might be slow. What slowed down
  // earlier runs may have gone.
  bool may_be_slower() const {
    return excess_share >= kExcessMin && last_excess_share >= kExcessMin &&
           evidence >= kEvidenceLeast;
  }
};

// Judges the last of `runs`. `draws` are logarithms of seconds, too: those of the prediction. At
// most kRunsJudged runs may be slow because of a change; with more, all are. Preconditions: two
// draws, one run.
inline constexpr size_t kRunsJudged = 3;
Detection Detect(const std::vector<double>& draws, const std::vector<TimeOfRun>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_DETECTION_H_
