// Identify: turns measurements into a platform. Pure.
//
// Each figure is chosen so that the simulation reproduces the measured times. (Provisioning,
// section 2.5, takes differences of measured times instead.) What is measured and what is charged
// are therefore the same thing, even where operations overlap, share cores or links, or wait for
// each other.
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
  uint32_t run_hosts = 0;  // How many hosts the runs used; 0: all of the deployment.
  // How far off guesses may be, as the standard deviation of their logarithms.
  double guess_sigma = 1.5;
};

struct Identified {
  Platform platform;
  Evidence evidence;
  // How far the fit exceeds the intervals, as a root mean square in units of them; 1: not at all.
  double misfit = 1;
  bool converged = true;  // False: time ran out.
};

// `known` has everything that was measured directly (hosts, links) and guesses of the rest.
// `deployment` is where the probes ran. `time_left` returns the remaining share of the time limit,
// from 1 to 0; when it is used up, the best result so far is returned with a note. Internal if the
// simulated store fails at something that the real one did.
Result<Identified> Identify(const Platform& known, const Configuration& deployment,
                            const Findings& findings, const std::function<double()>& time_left);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_IDENTIFY_H_
