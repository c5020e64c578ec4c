// Diagnosis: which part of a deployment was slower than predicted, found by replaying the workflow
// with each part slower and asking which replay is most like the runs.
//
// A suspicion (suspicion.h) is simulated with the random numbers of the prediction. What changes
// between the two simulations is added to the prediction, and the runs are judged against the sum:
// feature by feature (features.h), with Student's t of four degrees of freedom as the density of
// errors, so that one odd feature does not decide. Earlier sound runs move the prediction and
// narrow it: the error of a prediction is the same in all runs, their own spread is not. Sizes are
// found by maximum likelihood. The answer is a likelihood, and a run that did not happen: how long
// the workflow would have taken had this part alone been slower. (After model-based diagnosis: de
// Kleer and Williams, "Diagnosing multiple faults", Artificial Intelligence 32, 1987.)
#ifndef MOSA_PREDICTOR_COMPARE_DIAGNOSIS_H_
#define MOSA_PREDICTOR_COMPARE_DIAGNOSIS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/features.h"
#include "predictor/compare/suspicion.h"

namespace mosa::predict {

// A feature that a suspicion explains.
struct Witness {
  Feature feature;
  double measured = 0;   // Seconds or bytes.
  double predicted = 0;  // Without the suspicion, with what earlier runs have taught,
  double replayed = 0;   // and with it.
  double gain = 0;       // The logarithm of how much more likely the feature is with it.
};

struct Diagnosis {
  std::vector<Suspicion> suspicions;  // One, or two that are there together.
  // The logarithm of how much more likely the runs are with them than without.
  double gain = 0;
  double predicted_s = 0;          // The workflow, with its tasks where they ran, as predicted,
  double drawn_s = 0;              // with its tasks where they would have run,
  double replayed_s = 0;           // and as it ran, with the suspicions;
  double measured_s = 0;           // as measured.
  std::vector<Witness> witnesses;  // Those that speak most for it first.
};

// A run, replayed with these suspicions.
struct ReplayOf {
  size_t run = 0;
  uint64_t seed = 1;      // The cluster's.
  bool as_placed = true;  // Files lie where they lay; else where they would.
  std::vector<Suspicion> suspicions;
};
// Simulates each of these; nothing where such a run would fail.
using Replay = std::function<std::vector<std::optional<SeenRun>>(const std::vector<ReplayOf>&)>;

// A run, replayed without suspicions: with those of the cluster's seeds whose files lie most like
// those of the run.
struct RunReplayed {
  uint64_t seed = 1;
  Features features;
};
// By index; without those whose replays all fail. Each is simulated with kSeedsTried seeds.
inline constexpr uint64_t kSeedsTried = 16;
std::map<size_t, RunReplayed> ReplayRuns(const Workflow& workflow, const std::vector<SeenRun>& runs,
                                         const std::vector<size_t>& which, const Replay& replay);

struct DiagnosisQuestion {
  std::vector<size_t> shown;   // The runs to explain, by index; at least one.
  std::vector<size_t> before;  // Earlier runs that were sound.
  std::vector<Suspicion> suspicions;
  std::map<size_t, RunReplayed> replayed;  // All these runs.
};

// About how many replays of each shown run that takes.
size_t ReplaysOf(const std::vector<Suspicion>& suspicions);

// Best first; at most `kDiagnosesMax` single ones, and a pair first if one is much more likely than
// any single one. Empty if nothing is more likely than that nothing is wrong.
inline constexpr size_t kDiagnosesMax = 8;
std::vector<Diagnosis> Diagnose(const Workflow& workflow, const std::vector<SeenRun>& draws,
                                const std::vector<SeenRun>& runs, const DiagnosisQuestion& question,
                                const Replay& replay);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_DIAGNOSIS_H_
