// Cost: what a run's hosts are paid for, from its first task's start to its last one's end: the
// number of hosts times that time (Provisioning, section 3.3). All hosts count: those that run
// tasks, those that only store, and the manager's own.
#ifndef MOSA_PREDICTOR_MODEL_COST_H_
#define MOSA_PREDICTOR_MODEL_COST_H_

#include <cstdint>

#include "common/base/time.h"
#include "predictor/model/configuration.h"

namespace mosa::predict {

// How many hosts a configuration takes in all.
uint32_t HostsInAll(const Configuration& configuration);

double NodeHours(uint32_t hosts, Duration time);

inline double SecondsOf(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_COST_H_
