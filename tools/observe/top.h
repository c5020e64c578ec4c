// What `mosa top` does: what a cluster is doing, drawn again after each interval.
#ifndef MOSA_TOOLS_OBSERVE_TOP_H_
#define MOSA_TOOLS_OBSERVE_TOP_H_

#include <string>

#include "common/base/status.h"
#include "tools/console/manager.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct TopRequest {
  ManagerChoice manager;
  PredictionWords words;  // Without a platform nothing is predicted.
  std::string interval = "2s";
  bool once = false;
};

// Until a signal or the key q ends it; once if asked to.
Status RunTop(const TopRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TOP_H_
