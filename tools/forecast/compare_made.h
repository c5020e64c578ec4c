// Runs that are made to be compared: what is predicted of them is written down before the first.
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
  std::vector<std::string> command;  // "run", the workflow, and what else `mosa run` is told.
  uint32_t repeats = 3;
  std::string directory;  // For prediction.json, run-1.json and so on; made if it is not there.
};

struct MadeComparison {
  Compared compared;
  int exit_code = 0;  // From the first run that failed.
};

// AlreadyExists if the directory has such files. Each run is a process of this program.
Result<MadeComparison> CompareMade(const RunsToMake& runs);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_COMPARE_MADE_H_
