// What `mosa bench gate` does: whether the store is as fast as predicted, for CI. What it is held
// against is a prediction, not an earlier run, so that a store that becomes slower a little each
// day fails as soon as it is slower than its platform file lets one expect.
#ifndef MOSA_TOOLS_FORECAST_GATE_H_
#define MOSA_TOOLS_FORECAST_GATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct GateRequest {
  PredictionWords words;
  ClusterChoice cluster;
  std::vector<std::string> patterns = {"pipeline", "reduce", "broadcast"};
  std::string file_bytes = "4M";
  uint32_t repeats = 3;
  double margin = 0.25;
  std::string directory = "gate";
};

// Predicts, runs and judges each pattern, and prints what it finds: whether all pass.
Result<bool> RunGate(const GateRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_GATE_H_
