// Turns the request of `mosa bench patterns` into the cells to measure. Pure.
#ifndef MOSA_TOOLS_MEASURE_BENCH_PLAN_H_
#define MOSA_TOOLS_MEASURE_BENCH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/measure/bench_systems.h"

namespace mosa::cli {

struct PlanRequest {
  std::vector<std::string> patterns = {"pipeline", "reduce", "broadcast", "scatter", "gather"};
  std::vector<std::string> sizes = {"small", "medium", "large"};
  std::vector<std::string> scales = {"1"};  // "0.1", or for one size "large=0.02".
  std::vector<std::string> systems = {"dss", "wass", "local"};
  std::vector<std::string> replicas;  // Numbers and "N"; empty: 1, 2, 4, 8, 12, 16, N.
  std::string repeats = "10..20";
  uint32_t hosts = 1;  // Number of hosts in the cluster.
};

// Cells that are measured in turns, because their times are compared.
struct Group {
  std::vector<Cell> cells;
};

struct BenchPlan {
  std::vector<Group> groups;
  size_t repeats_min = 1;
  size_t repeats_max = 1;
};

// InvalidArgument names the option, its value and the allowed values.
Result<BenchPlan> PlanBench(const PlanRequest& request);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_PLAN_H_
