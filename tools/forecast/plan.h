// Implements `mosa plan`: finds where the tasks of a workflow should run and its files should lie.
#ifndef MOSA_TOOLS_FORECAST_PLAN_H_
#define MOSA_TOOLS_FORECAST_PLAN_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "predictor/plan/plan.h"
#include "tools/forecast/work.h"

namespace mosa::cli {

struct PlanningRequest {
  std::string command = "plan";  // Which one asks.
  WorkRequest work;
  std::string configuration;
  std::string output;
  uint32_t repeats = 20;
  uint32_t jobs = 0;
};

struct RunPlan {
  predict::Plan plan;  // Empty: the run has none.
  std::string said;    // For people: what it gains, or why there is none.
};

// Looks for a plan for about a fiftieth of the time that the run is predicted to take.
Result<RunPlan> PlanRun(const PlanningRequest& request);

// Simulates, prints what the plan gains, and writes it to `output` if that is not empty. After all
// that, returns DataLoss if the traces do not cover the whole run.
Status MakePlan(const PlanningRequest& request, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PLAN_H_
