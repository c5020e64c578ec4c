// One run of one cell: its phases carried out, everything read compared, and what it took.
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
  Meters meters;                    // The cluster's; none: other machines.
  std::string workdir;              // Below each system's place; ours alone, made and removed.
  std::string stage_in, stage_out;  // Directories of the backend; empty: none.
  std::string scratch;              // A directory here, for records and logs.
  std::string program;              // The `mosa` that hosts run.
  int held = -1;                    // As of TaskProcesses.
};

// The run as JSON with stable names: seconds of each phase and stage, bytes by path and link, how
// many tasks of each stage and which bytes of its files each host had. Nothing is left of its
// files. An error names the task, its host and what it said; records and logs are left then.
// Precondition: at least one host.
Result<nlohmann::json> RunCell(const RunPlace& place, const Cell& cell, uint32_t width,
                               uint64_t seed);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_RUN_H_
