// Cost: what a run's hosts are paid for: the number of hosts times the time from the first task's
// start to the last one's end (Provisioning, section 3.3). All hosts count: those that run tasks,
// those that only store, and the manager's own.
#ifndef MOSA_PREDICTOR_MODEL_COST_H_
#define MOSA_PREDICTOR_MODEL_COST_H_

#include <cstdint>

#include "common/base/time.h"
#include "predictor/model/configuration.h"

namespace mosa::predict {

// The number of hosts of a configuration, with storage-only hosts and the manager's own.
uint32_t HostsInAll(const Configuration& configuration);

double NodeHours(uint32_t hosts, Duration time);

inline double SecondsOf(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_COST_H_
