// Describes where a sparse object has data in few runs: the chunks of a stripe are one run. Pure.
#ifndef MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_
#define MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "common/model/ranges.h"
#include "common/model/storage.h"

namespace mosa::node {

// Precondition: `ranges` are not empty, ascend and do not touch; runs_max >= 1. Returns at most
// `runs_max` runs. If more would be needed, the last run is one range that includes the holes after
// it.
std::vector<DataRuns> RunsOf(std::span<const ByteRange> ranges, size_t runs_max);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_
