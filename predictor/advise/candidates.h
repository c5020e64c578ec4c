// Finds which hints are worth trying for a workflow. Its outputs are divided into classes (the
// files of one use that the tasks of one stage write), each with the hints that it could get.
#ifndef MOSA_PREDICTOR_ADVISE_CANDIDATES_H_
#define MOSA_PREDICTOR_ADVISE_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// One set of hints for a class. Files that are not named have no hint.
struct HintAlternative {
  std::map<PathIndex, HintMap> hints;
  // "pattern=broadcast:4". If hints differ between files: those of the first, and " ...".
  std::string text;
};

struct HintClass {
  std::string stage;  // Stage of the tasks that write them.
  std::string use;    // How they are read: "1:1", "fan-in", "fan-out", "result", "any".
  std::vector<PathIndex> files;
  uint64_t bytes = 0;
  // The first is no hint at all. Of two that do equally well, the earlier is preferred.
  std::vector<HintAlternative> alternatives;
  size_t by_itself = 0;  // The alternative that `mosa run` uses without advice.
};

struct CandidateOptions {
  uint32_t hosts = 1;
  uint32_t nodes = 1;
  // Keeps the classes with the most traffic; the others become one class.
  size_t classes_max = 48;
};

// True for hints about speed: pattern, placement, chunk_size and stripe_width. Advice must not
// remove hints about copies, strictness or lifetime.
bool IsForSpeed(std::string_view hint);

// Rewrites the outputs' hints for speed as the store keeps them ("4194304" for "4M"), so that they
// can be compared with those of rules. InvalidArgument names a malformed value and its file.
Status MakeSpeedHintsCanonical(Workflow& workflow);

// Returns classes of all files that tasks write, in the order of their first file. Later versions
// of a file (versions.h) get no hints and no class.
std::vector<HintClass> CandidatesOf(const Workflow& workflow, const CandidateOptions& options);

// The chosen alternative of each class.
using HintChoice = std::vector<size_t>;
HintChoice ByItself(const std::vector<HintClass>& classes);

// The workflow with exactly these hints for speed (Workflow::hints_are_whole).
Workflow WithHints(const Workflow& workflow, const std::vector<HintClass>& classes,
                   const HintChoice& choice);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_CANDIDATES_H_
