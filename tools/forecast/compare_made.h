// Makes runs and compares them with a prediction that is written down before the first of them.
#ifndef MOSA_TOOLS_FORECAST_COMPARE_MADE_H_
#define MOSA_TOOLS_FORECAST_COMPARE_MADE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct RunsToMake {
  PredictionWords words;
  std::vector<std::string> command;  // "run", the workflow and further arguments of `mosa run`.
  uint32_t repeats = 3;
  std::string directory;  // For prediction.json, run-1.json and so on. Created if missing.
};

struct MadeComparison {
  Compared compared;
  int exit_code = 0;  // From the first run that failed.
};

// AlreadyExists if the directory has such files. Each run is a separate process of this program.
Result<MadeComparison> CompareMade(const RunsToMake& runs);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_MADE_H_
