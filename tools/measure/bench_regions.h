// Files whose tasks read or write regions: prepares them with their hints, and finds where each
// region is. The Opportunity Study (section III.B) sets the chunk to the region and runs each task
// on the node of its chunk.
#ifndef MOSA_TOOLS_MEASURE_BENCH_REGIONS_H_
#define MOSA_TOOLS_MEASURE_BENCH_REGIONS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/synthetic.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

// The node that holds, or will hold, the byte at `offset`, by `user.mosa.layout`; empty if that is
// not settled yet.
std::string NodeAt(const nlohmann::json& layout, uint64_t offset);

class RegionFile {
 public:
  // With `hinted`, files get their own hints; else none.
  RegionFile(const std::vector<RunHost>& hosts, bool hinted) : hosts_(hosts), hinted_(hinted) {}

  // Creates the files that the workflow's tasks expect, through the first host's mount.
  Status Prepare(const predict::Workflow& workflow);

  // The host of the node that holds, or will hold, the region; `otherwise` if that node is on no
  // host.
  Result<predict::HostIndex> HostOf(const predict::Transfer& region, predict::HostIndex otherwise);

 private:
  const std::vector<RunHost>& hosts_;
  const bool hinted_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_REGIONS_H_
