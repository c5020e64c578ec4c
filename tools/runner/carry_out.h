// What `mosa run` does once it is known what to run, and where.
#ifndef MOSA_TOOLS_RUNNER_CARRY_OUT_H_
#define MOSA_TOOLS_RUNNER_CARRY_OUT_H_

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"
#include "tools/runner/engine.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// Prints which hints each file of the workflow gets, and why. `record` has its hosts.
void ShowPlan(const predict::Workflow& workflow, const RunRecord& record, bool as_json);

// Runs the workflow on the hosts of `record`, goes on with the record of an earlier run if `resume`
// says so, and prints what it took. `engine` names the record and the logs. The status is that of
// the run; FailedPrecondition if the record is another run's.
Status CarryOut(const predict::Workflow& workflow, RunRecord& record, EngineOptions engine,
                bool resume, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_CARRY_OUT_H_
