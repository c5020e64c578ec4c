// Runs of trivial tasks, whose time is the runner's own: dispatch, launch and looking at files.
#ifndef MOSA_PREDICTOR_IDENTIFY_RUN_PROBE_H_
#define MOSA_PREDICTOR_IDENTIFY_RUN_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

struct RunProbe {
  uint32_t tasks = 1;
  bool one_by_one = false;  // One after the other; else all at once.
  bool outputs = false;     // Each task writes a file of one byte.
  bool operator==(const RunProbe&) const = default;
};

// "run 8 tasks one by one, each with an output".
std::string ToText(const RunProbe& probe);
std::vector<RunProbe> PlanRunProbes();

// The tasks run `/bin/sh`; outputs are named after their tasks.
Workflow MakeRunProbe(const RunProbe& probe);

// Simulates the run. Returns the seconds from the first task's start to the last one's end.
Result<double> SimulateRun(const RunProbe& probe, const Platform& platform,
                           const Configuration& deployment);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_RUN_PROBE_H_
