// For tests that compare runs: their usual deployment, its hosts, and its platform.
#ifndef MOSA_PREDICTOR_COMPARE_COMPARE_FIXTURE_H_
#define MOSA_PREDICTOR_COMPARE_COMPARE_FIXTURE_H_

#include <string>
#include <vector>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {

inline constexpr const char* kDeployment = "hosts=4,slots=1,manager=apart,system=dss";
inline const std::vector<std::string> kHosts = {"h1", "h2", "h3", "h4"};

// A platform whose figures are uncertain only by their draws. Bytes of other hosts cross links.
inline Platform Known() {
  Platform platform = Forgetful(BusyPlatform());
  platform.network.spread = 0.03;
  platform.model.spread = 0.05;
  return platform;
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_COMPARE_FIXTURE_H_
