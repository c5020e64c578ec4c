// What `mosa bench patterns` does: what is asked for, checked whole before the first run; then cell
// by cell, the systems of a group in turns, so that their ratios are of the same minutes.
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
  uint32_t width = 0;  // 0: as many as hosts.
  uint64_t seed = 1;
  std::string workdir = "mosa-bench";
  std::string stage_in, stage_out;
  std::string out = "patterns.json";
  bool map = false;
};

// Measures what `options.out` does not have yet, keeps it there, and prints all. Aborted: a signal
// came, and the same request goes on.
Status RunPatterns(PatternsRequest options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_PATTERNS_H_
