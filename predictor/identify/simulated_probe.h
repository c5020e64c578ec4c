// Runs a probe on a simulated deployment: how long it would take if the platform's figures were
// right.
#ifndef MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_
#define MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_

#include "common/base/status.h"
#include "predictor/identify/probe.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// Returns the seconds of one operation, or of `at_once` concurrent ones until the last has ended.
// `deployment` must have at least two hosts and no storage hosts apart. Internal names what the
// simulated store refuses.
Result<double> SimulateProbe(const Probe& probe, const Platform& platform,
                             const Configuration& deployment);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_
