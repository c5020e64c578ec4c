// Identify: from what was measured to a platform. Pure.
//
// A figure is what makes the simulation give the measured times (Provisioning, section 2.5, where
// each is a difference of measured times). So what is measured and what is charged are the same,
// also where operations overlap, share cores or links, or wait for each other.
#ifndef MOSA_PREDICTOR_IDENTIFY_IDENTIFY_H_
#define MOSA_PREDICTOR_IDENTIFY_IDENTIFY_H_

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/identify/probe.h"
#include "predictor/identify/run_probe.h"
#include "predictor/identify/sample.h"
#include "predictor/model/configuration.h"
#include "predictor/model/evidence.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

struct Findings {
  struct OfProbe {
    Probe probe;
    Measured seconds;
  };
  struct OfRun {
    RunProbe probe;
    Measured seconds;
  };
  std::vector<OfProbe> probes;
  std::vector<OfRun> runs;
  uint32_t run_hosts = 0;  // On which runs took place; 0: on all of the deployment.
  // How far off guesses may be: a standard deviation of their logarithms.
  double guess_sigma = 1.5;
};

struct Identified {
  Platform platform;
  Evidence evidence;
  // How much further off the model is than the intervals allow, root mean square; 1: it is not.
  double misfit = 1;
  bool converged = true;  // False: the time was used up first.
};

// `known` has all that was measured directly (hosts, links), and guesses of the rest; `deployment`
// is where probes ran. `time_left` says how much of the time for it is left, 1 to 0: where that is
// used up, the best so far is taken, and a note says so. Internal if the simulated store cannot do
// what the real one did.
Result<Identified> Identify(const Platform& known, const Configuration& deployment,
                            const Findings& findings, const std::function<double()>& time_left);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_IDENTIFY_H_
