// Lower bounds: what no simulated run of a workflow takes less than, found without simulating it.
// Used to leave configurations out that cannot win (front.h); if a bound were ever above the
// simulated time, the best one could be lost.
//
// The run takes at least the longest of these, each of which is part of what the simulation does:
//
//  1. path: tasks on a path of the graph run one after the other, and each takes one after the
//     other its dispatch, its launch, reading its inputs, computing on one core, writing its
//     outputs, and the runner's notice of its end. A byte is read or written at the cheapest of the
//     ways that there are; if storage is apart it also crosses the link of the task's host, unless
//     the kernel may have it because another task read the file (then it is taken to be there).
//  2. slots: a task holds a slot of a host all that time; there are only so many.
//  3. cores: what tasks and their files take of processors, over all cores of hosts that run tasks.
//  4. runner: it dispatches tasks and looks at their outputs one after the other.
//  5. links: if storage is apart, every byte that is written, and every file that is read once at
//     least, crosses a link of a host that runs tasks and a link of one that stores.
//
// If a task's operations are known, only its computing counts: it may read parts of files. Files
// that are small enough to stay with the manager cross no link. Waiting for servers,
// messages, copies and small files' costs are left out: they only add. What the simulation rounds
// down to whole nanoseconds is taken off.
#ifndef MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_
#define MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_

#include <cstdint>

#include "common/base/time.h"
#include "predictor/model/configuration.h"
#include "predictor/model/energy.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// What a workflow needs on a platform, however many hosts there are.
struct LeastWork {
  double path_ns = 0;         // The longest path.
  double slots_ns = 0;        // Sum over tasks.
  double application_ns = 0;  // Cores, sum over tasks: programs,
  double store_ns = 0;        // and what hosts that run tasks do for their files.
  double runner_ns = 0;
  // Over links; 0 unless storage is apart.
  double read_bytes = 0;
  double written_bytes = 0;
  double transfers = 0;  // How many pieces they are at most.
};

// Precondition: every file has a size, as for a prediction.
LeastWork LeastWorkOf(const Workflow& workflow, const Platform& platform, bool storage_apart);

// `work` is of this platform, and of storage apart or not as in the configuration.
Duration TimeAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration);
// Joules of a run that takes `time` or more.
double EnergyAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration, const PowerLevel& level, Duration time);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_
