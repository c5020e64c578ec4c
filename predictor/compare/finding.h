// Finding: what runs show, in words: by how much they are slower than expected and since when,
// which part of the deployment explains it, what would have been without it, and what to look at.
#ifndef MOSA_PREDICTOR_COMPARE_FINDING_H_
#define MOSA_PREDICTOR_COMPARE_FINDING_H_

#include <string>
#include <vector>

#include "predictor/compare/detection.h"
#include "predictor/compare/diagnosis.h"

namespace mosa::predict {

// A part that explains it.
struct Cause {
  std::vector<Suspect> suspects;  // One, or two that are slow at once.
  // The logarithm of how much more likely the runs are with it than if nothing were wrong.
  double gain = 0;
  double without_s = 0;  // The workflow, as it would have been had this part been as predicted.
  std::string sentence;  // Which part, how slow it is, and what would have been.
  std::vector<std::string> witnesses;  // What shows it, strongest first.
  std::string open_first;
};

struct Finding {
  bool is_slower = false;
  double evidence = 0;        // Times and suspicions together: kEvidenceMin is needed.
  bool is_replayed = false;   // Suspicions were replayed.
  std::string sentence;       // How much longer the runs took than expected; if slower, since when.
  std::vector<Cause> causes;  // Best first, each part once; those that nearly explain as much as
                              // the best one, and it. Empty if no part does.
};

// Runs are slower if their times and what the best suspicion explains say so together. `runs` names
// the runs that were judged, as Detection counts them. Nothing is found if it shows none.
Finding FindingOf(const Detection& detection, const std::vector<Diagnosis>& diagnoses,
                  bool is_replayed, const std::vector<std::string>& runs);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_FINDING_H_
