// Lower bounds on a run's time and energy, found without simulating it. They are used to skip
// configurations that cannot win (front.h). If a bound were ever above the simulated time, the best
// configuration could be lost.
//
// A run takes at least the longest of these; each is part of what the simulation does:
//
//  1. path: tasks on a path of the graph run one after the other; a reader of a stream starts after
//     its writer has started. Each takes, in sequence, its
//     dispatch, its launch, reading its inputs, computing on one core, writing its outputs, and
//     the runner's notice of its end. A byte is read or written in the cheapest possible way. If
//     storage is apart it also crosses the link of the task's host. A file that fits into a host's
//     page cache may be read from there, because that host has written it or read it before.
//  2. slots: a task holds a slot of a host for all that time, and the number of slots is limited.
//  3. cores: processor time of tasks and their files, over all cores of hosts that run tasks.
//  4. runner: it dispatches tasks and looks at their outputs one after the other.
//  5. links: if storage is apart, every byte that is written, and every file that is read and
//     fits into no page cache, crosses a link of a host that runs tasks and a link of one that
//     stores.
//
// If a task's operations are known, or if it has streams, only its computing counts, since it may
// read parts of files.
// Small files that stay with the manager cross no link. Waiting for servers, messages, copies and
// small files' costs are left out, since they only add time. Rounding down to whole nanoseconds in
// the simulation is subtracted.
#ifndef MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_
#define MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_

#include <cstdint>

#include "common/base/time.h"
#include "predictor/model/configuration.h"
#include "predictor/model/energy.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// What a workflow needs on a platform, for any number of hosts.
struct LeastWork {
  double path_ns = 0;         // The longest path.
  double slots_ns = 0;        // Sum over tasks.
  double application_ns = 0;  // Core time of programs, summed over tasks.
  double store_ns = 0;        // Core time that hosts with tasks spend on their files.
  double runner_ns = 0;
  // Bytes over links; 0 unless storage is apart.
  double read_bytes = 0;
  double written_bytes = 0;
  double transfers = 0;  // An upper bound on the number of pieces.
};

// Precondition: every file has a size (CheckSizes()).
LeastWork LeastWorkOf(const Workflow& workflow, const Platform& platform, bool storage_apart);

// `work` must be of this platform, with storage apart as in the configuration.
Duration TimeAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration);
// Joules of a run that takes at least `time`.
double EnergyAtLeast(const LeastWork& work, const Platform& platform,
                     const Configuration& configuration, const PowerLevel& level, Duration time);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_LOWER_BOUND_H_
