// Checks, plans and prepares a run before its first task.
#ifndef MOSA_TOOLS_RUNNER_BEGIN_H_
#define MOSA_TOOLS_RUNNER_BEGIN_H_

#include <string>

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/record.h"
#include "tools/runner/run_file.h"

namespace mosa::cli {

// Creates the directory that tasks run in, finds all files that no task writes (`record.outside`;
// NotFound names the missing file and a task that reads it), and settles which outputs get which
// hints. Asks the mount whether it accepts them. `mount` is that of the record's first host.
Status BeginRun(const predict::Workflow& workflow, HostMount& mount, RunRecord& record);

// Settles which outputs get which hints. Fails if the mount refuses one that the workflow gives.
Status PlanRecordHints(const predict::Workflow& workflow, HostMount& mount, RunRecord& record);

// Copies into `record` the tasks that the run with the record at `path` finished and that need not
// run again: their commands and outside inputs are the same, and their outputs are unchanged and
// readable. Prints which outputs are lost and which tasks run again for them. A record that reuses
// needs no earlier one, and its further tasks have what they did earlier, if that may serve.
Status ResumeRun(const predict::Workflow& workflow, const std::string& path, HostMount& mount,
                 RunRecord& record);

// FailedPrecondition if a directory that a task fills holds files, and the run of the record
// `earlier` (null: there is none) had no such output: they are not ours to remove.
Status CheckDirectories(const predict::Workflow& workflow, HostMount& mount,
                        const RunFile* earlier);

// Lets a directory of outputs carry the hints if all outputs in it want the same, and removes hints
// that an earlier run put there.
Status SettleDirectories(const predict::Workflow& workflow, HostMount& mount, RunRecord& record);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_BEGIN_H_
