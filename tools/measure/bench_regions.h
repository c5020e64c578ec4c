// Files whose tasks read or write regions: prepared with their hints, and where each region is. The
// Opportunity Study (section III.B) sets the chunk to the region and has each task run on the node
// of its chunk.
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

// The node that holds the byte at `offset`, or will, by `user.mosa.layout`; empty if it is not
// settled yet.
std::string NodeAt(const nlohmann::json& layout, uint64_t offset);

class RegionFile {
 public:
  // With `hinted` files get their own hints; else none.
  RegionFile(const std::vector<RunHost>& hosts, bool hinted) : hosts_(hosts), hinted_(hinted) {}

  // Makes the files that the workflow's tasks need to be there, through the first host's mount.
  Status Prepare(const predict::Workflow& workflow);

  // Where the region is, or will be; `otherwise` if no host is the node's.
  Result<predict::HostIndex> HostOf(const predict::Transfer& region, predict::HostIndex otherwise);

 private:
  const std::vector<RunHost>& hosts_;
  const bool hinted_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_REGIONS_H_
