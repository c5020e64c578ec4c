// Carries out `mosa run` once the workflow and its hosts are known.
#ifndef MOSA_TOOLS_RUNNER_CARRY_OUT_H_
#define MOSA_TOOLS_RUNNER_CARRY_OUT_H_

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"
#include "tools/runner/engine.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// Prints which hints each file of the workflow gets, and why. `record` already has its hosts.
void ShowPlan(const predict::Workflow& workflow, const RunRecord& record, bool as_json);

// Runs the workflow on the hosts of `record` and prints a summary. `resume`: takes what the run
// whose record exists has done; if `record` reuses, whatever became of that run. `engine` names the
// record and the logs. Returns the status of the run; FailedPrecondition if the record belongs to
// another run.
Status CarryOut(const predict::Workflow& workflow, RunRecord& record, EngineOptions engine,
                bool resume, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_CARRY_OUT_H_
