// Implements `mosa watch`: checks interval after interval whether the requests of a running cluster
// take as long as its platform file predicts. Judges each interval as `mosa compare` judges a run.
#ifndef MOSA_TOOLS_OBSERVE_WATCH_H_
#define MOSA_TOOLS_OBSERVE_WATCH_H_

#include <string>

#include "common/base/status.h"
#include "tools/console/manager.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct WatchRequest {
  ManagerChoice manager;
  PredictionWords words;
  std::string interval = "10s";
  std::string duration;
  bool once = false;
};

// Runs until a signal or the requested time ends it. Returns true if a class of requests took
// longer than predicted.
Result<bool> RunWatch(const WatchRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_WATCH_H_
