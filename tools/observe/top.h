// Implements `mosa top`: shows the activity of a cluster and redraws it after each interval.
#ifndef MOSA_TOOLS_OBSERVE_TOP_H_
#define MOSA_TOOLS_OBSERVE_TOP_H_

#include <string>

#include "common/base/status.h"
#include "tools/console/manager.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct TopRequest {
  ManagerChoice manager;
  PredictionWords words;  // No platform: no prediction.
  std::string interval = "2s";
  bool once = false;
};

// Runs until a signal or the key q ends it, or for one interval if `options.once`.
Status RunTop(const TopRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TOP_H_
