// Times runs of trivial tasks by the engine of `mosa run`.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_TASKS_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_TASKS_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/identify/run_probe.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

// Seconds from the first task's start to the last one's end. Creates the hosts' directory, which
// holds the outputs afterwards; `scratch` is a local directory, for record and logs. Aborted after
// a signal (cluster::InterruptGuard).
Result<double> SecondsOfRun(const predict::RunProbe& probe, const std::vector<RunHost>& hosts,
                            const std::string& scratch);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_TASKS_H_
