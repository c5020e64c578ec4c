#include "storage-node/core/data_runs.h"

namespace mosa::node {

std::vector<DataRuns> RunsOf(std::span<const ByteRange> ranges, size_t runs_max) {
  std::vector<DataRuns> runs;
  for (const ByteRange& range : ranges) {
    if (!runs.empty() && runs.back().length == range.size()) {
      DataRuns& last = runs.back();
      const uint64_t last_begin = last.begin + (last.count - 1) * last.stride;
      const uint64_t stride = range.begin - last_begin;
      if (last.count == 1 || stride == last.stride) {
        last.stride = stride;
        ++last.count;
        continue;
      }
    }
    if (runs.size() == runs_max) {
      DataRuns& last = runs.back();
      last = {.begin = last.begin, .length = ranges.back().end - last.begin};
      break;
    }
    runs.push_back({.begin = range.begin, .length = range.size()});
  }
  return runs;
}

}  // namespace mosa::node
