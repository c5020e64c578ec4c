// How busy the processors of a run's machines were, and how much of it was the run's own work: what
// `mosa compare` tells a busy machine by.
#ifndef MOSA_TOOLS_RUNNER_LOAD_H_
#define MOSA_TOOLS_RUNNER_LOAD_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/time.h"
#include "common/observe/processor_use.h"
#include "tools/console/residence.h"
#include "tools/runner/record.h"

namespace mosa::cli {

// What the runner's own machine and process had used at a moment.
struct RunnerLoad {
  ProcessorUse use;
  Time taken;  // On the monotonic clock.
};
RunnerLoad TakeRunnerLoad();

// For each machine of the run, in processor seconds: `busy_s` of all work on it, `stolen_s` of what
// its own host took, `daemons_s` of Mosa's daemons, `tasks_s` of this run's tasks, and `others_s`:
// what is left if that and the runner's own are taken off, and what was stolen. `hosts` are those
// of its tasks, its storage nodes and its mounts; `runner` and `manager` say whether these are
// there. Hosts that are namespaces share one machine. `during` is what daemons say of the time
// between; null: there are none.
//
// `others_s` is missing where some of the own work is not known: a daemon did not answer or was
// started again, tasks were started by a command (--exec), of which only the command's own seconds
// are known, or the kernel took back what it had counted. Where such a daemon or such tasks are not
// known to be on one machine, it is missing for all. Null if there is no machine at all.
nlohmann::json MachinesOfRun(const RunRecord& record, const RunnerLoad& before,
                             const RunnerLoad& after, const ClusterResidence* during);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_LOAD_H_
