// Which hints are worth trying for a workflow: its outputs in classes as people would speak of them
// (what the tasks of one stage write, of one use), and for each class what could be said of it.
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

// One thing that could be said of a class. Files that are not named have no hint.
struct HintAlternative {
  std::map<PathIndex, HintMap> hints;
  // "pattern=broadcast:4"; of hints that differ from file to file the first one's, and " ...".
  std::string text;
};

struct HintClass {
  std::string stage;  // Stage of the tasks that write them,
  std::string use;    // and who reads them: "1:1", "fan-in", "fan-out", "result", "any".
  std::vector<PathIndex> files;
  uint64_t bytes = 0;
  // The first is nothing at all; if two do as well, the earlier is to be preferred.
  std::vector<HintAlternative> alternatives;
  size_t by_itself = 0;  // What `mosa run` says without advice.
};

struct CandidateOptions {
  uint32_t hosts = 1;
  uint32_t nodes = 1;
  // The classes with the most bytes written and read; the others are one class.
  size_t classes_max = 48;
};

// True of hints that are said for speed: pattern, placement, chunk_size and stripe_width. What is
// said of copies, strictness and lifetime by itself is not for advice to take away.
bool IsForSpeed(std::string_view hint);

// Puts what the workflow says of outputs for speed as the store keeps it ("4194304" for "4M"): only
// so can it be compared with what rules say. InvalidArgument: a value that is none, with its file.
Status MakeSpeedHintsCanonical(Workflow& workflow);

// Classes of everything that tasks write; a later version of a file gets no hints and no class.
// In the order of their first file.
std::vector<HintClass> CandidatesOf(const Workflow& workflow, const CandidateOptions& options);

// For each class: which of its alternatives.
using HintChoice = std::vector<size_t>;
HintChoice ByItself(const std::vector<HintClass>& classes);

// The workflow with these hints for speed and no others (Workflow::hints_are_whole).
Workflow WithHints(const Workflow& workflow, const std::vector<HintClass>& classes,
                   const HintChoice& choice);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_CANDIDATES_H_
