// `mosa identify`: checks the whole request before the first effect; then measures, and fits a
// platform to the measurements.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/evidence.h"
#include "tools/console/cluster_choice.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

inline constexpr uint32_t kIdentifyHostsMax = 3;
inline constexpr double kIdentifyBudgetMax = 120;

struct IdentifyRequest {
  ClusterChoice cluster;
  HostsRequest hosts;
  std::vector<std::string> paths;
  uint32_t hosts_max = kIdentifyHostsMax;
  double budget_seconds = kIdentifyBudgetMax;
  std::string out = "platform.json";
};

// FailedPrecondition if no figure was measured: predictions from such a platform would be guesses.
Status CheckFigures(const predict::Evidence& evidence, const IdentifyRequest& options);

// Writes the platform file, and prints what it has measured. Writes none if CheckFigures() refuses.
Status RunIdentify(IdentifyRequest options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_H_
