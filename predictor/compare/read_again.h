// Read again: whether hosts' page caches kept what tasks on them had read. A file that a task has
// read is in the pages of its host's kernel, so that only the first reading moves bytes from other
// nodes. What a mount moved beyond that it moved because pages were gone: the bytes say so,
// whatever they took. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_
#define MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_

#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/own_times.h"

namespace mosa::predict {

struct ColdPagesQuestion {
  const Workflow& workflow;
  const std::vector<SeenRun>& draws;
  const std::vector<SeenRun>& runs;
  const std::vector<size_t>& asked_runs;  // Of those.
  const std::map<std::string, TaskTimes>& tasks;
  uint64_t link_bytes_per_second = 0;  // As predicted.
};

// The host whose page cache was cold where most bytes had to come again, if it is not predicted so:
// half or more of what tasks read there again came from other nodes, and moving that takes a
// quarter or more of what all tasks took longer.
std::optional<OwnTime> FindColdPages(const ColdPagesQuestion& question);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_READ_AGAIN_H_
