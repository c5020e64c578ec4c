// What `mosa compare` predicts: many runs, each on a cluster of its own.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_DRAWS_H_
#define MOSA_TOOLS_FORECAST_COMPARE_DRAWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/configuration.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {

struct DrawnRuns {
  predict::Prediction prediction;       // With figures as measured.
  std::vector<predict::SeenRun> draws;  // That end well.
  uint32_t failed = 0;
  std::string failure;  // The first failure.
};

// On all cores; the answer does not depend on how many there are. `hosts` as of SeenOf().
// FailedPrecondition if the run would fail, or fails in too many draws for an interval.
Result<DrawnRuns> DrawRuns(const Inputs& inputs, const predict::Configuration& configuration,
                           uint32_t draws, const std::vector<std::string>& hosts);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_DRAWS_H_
