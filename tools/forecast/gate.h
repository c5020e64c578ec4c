// Implements `mosa bench gate`, which checks in CI that the store is as fast as predicted. It
// compares with a prediction, not with an earlier run, so a store that gets a little slower each
// day fails as soon as it is slower than its platform file predicts.
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

// Predicts, runs and judges each pattern and prints the verdicts. Returns true if all pass.
Result<bool> RunGate(const GateRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_GATE_H_
