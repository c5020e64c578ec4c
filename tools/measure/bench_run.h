// One run of one cell: runs its phases, compares everything that is read, and measures it.
#ifndef MOSA_TOOLS_MEASURE_BENCH_RUN_H_
#define MOSA_TOOLS_MEASURE_BENCH_RUN_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/workflow/synthetic.h"
#include "tools/hosts/hosts.h"
#include "tools/measure/bench_systems.h"
#include "tools/measure/bench_traffic.h"
#include "tools/runner/record.h"

namespace mosa::cli {

struct RunPlace {
  std::vector<RunHost> hosts;
  Meters meters;                    // The cluster's; empty on other machines.
  std::string workdir;              // Below each system's place; ours alone, created and removed.
  std::string stage_in, stage_out;  // Backend directories; empty: none.
  std::string scratch;              // A local directory, for records and logs.
  std::string program;              // The `mosa` that hosts run.
  int held = -1;                    // As in TaskProcesses.
};

// Returns the run as JSON with stable names: seconds of each phase and stage, bytes by path and
// link, and for each host the number of tasks of each stage and the bytes of its files. Removes the
// run's files. An error names the task, its host and its message, and keeps records and logs.
// Precondition: at least one host.
Result<nlohmann::json> RunCell(const RunPlace& place, const Cell& cell, uint32_t width,
                               uint64_t seed);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_RUN_H_
