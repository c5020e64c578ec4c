// How busy the processors of a run's machines were, and with how much work of the run itself:
// `mosa compare` recognises a busy machine by it.
#ifndef MOSA_TOOLS_RUNNER_LOAD_H_
#define MOSA_TOOLS_RUNNER_LOAD_H_

#include <vector>

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

// For each machine of the run. `others_s` is the stolen time and what remains of the busy time
// without tasks, daemons and the runner. `hosts` are those of its tasks, its storage nodes and its
// mounts. Hosts that are namespaces share one machine. `during` is what daemons say of the time
// between; null: there are none.
//
// `others_s` is absent where some of the own work is unknown: a daemon did not answer or was
// restarted, --exec started tasks, so that only the command's own seconds are known, or the kernel
// took back what it had counted. If the machine of such a daemon or of such tasks is unknown,
// `others_s` is absent for all machines.
std::vector<MachineUse> MachinesOfRun(const RunRecord& record, const RunnerLoad& before,
                                      const RunnerLoad& after, const ClusterResidence* during);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_LOAD_H_
