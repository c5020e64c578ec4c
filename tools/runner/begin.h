// What a run checks, plans and makes before its first task.
#ifndef MOSA_TOOLS_RUNNER_BEGIN_H_
#define MOSA_TOOLS_RUNNER_BEGIN_H_

#include <string>

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// Makes the directory that tasks run in, finds all that no task writes (`record.outside`; NotFound
// names what is not there and which task reads it), and settles which outputs get which hints: the
// mount is asked whether it takes them. `mount` is that of the record's first host.
Status BeginRun(const predict::Workflow& workflow, HostMount& mount, RunRecord& record);

// Takes into `record` what the earlier run of the record at `path` finished and need not run again:
// commands and outside inputs are the same, outputs are as it left them and can be read. Says what
// is lost, and what runs again for it.
Status ResumeRun(const predict::Workflow& workflow, const std::string& path, HostMount& mount,
                 RunRecord& record);

// Has the directories of outputs carry their hints where all in it want the same, and takes back
// what an earlier run gave them.
Status SettleDirectories(const predict::Workflow& workflow, HostMount& mount, RunRecord& record);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_BEGIN_H_
