// `mosa capacity run`: checks the whole request before the first effect; then goes round over all
// loads until there are enough samples or the time is used up.
#ifndef MOSA_TOOLS_MEASURE_CAPACITY_RUN_H_
#define MOSA_TOOLS_MEASURE_CAPACITY_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

struct CapacityRequest {
  ClusterChoice cluster;
  HostsRequest hosts;
  std::string path;
  std::vector<std::string> sizes = {"4K", "16K", "32K", "128K", "1M"};
  bool check = false;
  std::vector<uint32_t> ratios = {10, 30, 50, 70, 90};
  std::vector<std::string> mixes;
  uint32_t jobs = 4;
  std::string file_bytes = "16M";
  double sample_seconds = 2;
  std::string pages = "direct";
  std::string writes = "stored";
  uint32_t repeats = 3;
  double budget_seconds = 540;
  uint64_t seed = 1;
  std::string out = "capacity.json";
};

// Measures what `options.out` does not have yet, stores it there, and prints everything.
Status RunCapacity(const CapacityRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_CAPACITY_RUN_H_
