// Where a sparse object has data, in few words: a stripe's chunks are one run. Pure.
#ifndef MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_
#define MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "common/model/ranges.h"
#include "common/model/storage.h"

namespace mosa::node {

// `ranges` are not empty, ascend and do not touch. At most `runs_max` runs (at least 1) come back:
// if there would be more, the last one is a range that also covers the holes behind it.
std::vector<DataRuns> RunsOf(std::span<const ByteRange> ranges, size_t runs_max);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_DATA_RUNS_H_
