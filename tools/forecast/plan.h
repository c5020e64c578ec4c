// Implements `mosa plan`: finds where the tasks of a workflow should run and its files should lie.
#ifndef MOSA_TOOLS_FORECAST_PLAN_H_
#define MOSA_TOOLS_FORECAST_PLAN_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "tools/forecast/work.h"

namespace mosa::cli {

struct PlanningRequest {
  WorkRequest work;
  std::string configuration;
  std::string output;
  uint32_t repeats = 20;
  uint32_t jobs = 0;
};

// What `mosa run` follows: a plan, or the reason why it has none.
struct RunPlan {
  bool made = false;
  std::string said;  // For people, a clause.
};

// Makes a plan within some hundredths of the time that the run is predicted to take, and writes it
// to `output`.
Result<RunPlan> PlanRun(const PlanningRequest& request);

// Simulates, prints what the plan gains, and writes it to `output` if that is not empty. After all
// that, returns DataLoss if the traces do not cover the whole run.
Status MakePlan(const PlanningRequest& request, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PLAN_H_
