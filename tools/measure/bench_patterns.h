// `mosa bench patterns`: checks the whole request before the first run, then runs cell by cell. The
// systems of a group take turns, so that their ratios are of the same minutes.
#ifndef MOSA_TOOLS_MEASURE_BENCH_PATTERNS_H_
#define MOSA_TOOLS_MEASURE_BENCH_PATTERNS_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"
#include "tools/hosts/hosts.h"
#include "tools/measure/bench_plan.h"

namespace mosa::cli {

struct PatternsRequest {
  ClusterChoice cluster;
  HostsRequest hosts;
  PlanRequest plan;
  uint32_t width = 0;  // 0: the number of hosts.
  uint64_t seed = 1;
  std::string workdir = "mosa-bench";
  std::string stage_in, stage_out;
  std::string out = "patterns.json";
  bool map = false;
};

// Measures what `options.out` does not have yet, stores it there, and prints everything. Aborted: a
// signal came, and the same request continues.
Status RunPatterns(PatternsRequest options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_PATTERNS_H_
