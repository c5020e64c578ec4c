// Read again: whether the page caches of hosts kept what tasks on them had read. A file that a task
// has read is in the pages of its host's kernel, so only the first read moves bytes from other
// nodes. If a mount moved more than that, pages were gone: the bytes prove it, whatever time they
// took. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_
#define MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/own_times.h"
#include "predictor/compare/seen_run.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

struct ColdPagesQuestion {
  const Workflow& workflow;
  const std::vector<SeenRun>& draws;
  const std::vector<SeenRun>& runs;
  const std::vector<size_t>& asked_runs;  // Indexes into `runs`.
  const std::string& stage;               // The stage whose tasks took longer; empty: all.
  const std::map<std::string, TaskTimes>& tasks;
  uint64_t link_bytes_per_second = 0;  // As predicted.
};

// Looks at hosts whose mounts moved half or more of what tasks read there again. Returns the one
// that moved most, if that was not predicted, and if moving what the stage's tasks read again takes
// a quarter or more of their total excess time.
std::optional<OwnTime> FindColdPages(const ColdPagesQuestion& question);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_
