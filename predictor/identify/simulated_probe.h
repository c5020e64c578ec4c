// A probe on a simulated deployment: what it would take if the platform's figures were right.
#ifndef MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_
#define MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_

#include "common/base/status.h"
#include "predictor/identify/probe.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// Seconds of one operation, or of as many as go on at once until the last has ended. `deployment`
// has at least two hosts, and no storage of their own apart. Internal names what the simulated
// store refuses.
Result<double> SimulateProbe(const Probe& probe, const Platform& platform,
                             const Configuration& deployment);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SIMULATED_PROBE_H_
