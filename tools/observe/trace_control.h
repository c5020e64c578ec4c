// Starts and stops the traces of mounts that are in use, for `mosa trace start`, `stop` and `run`.
#ifndef MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_
#define MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"

namespace mosa::cli {

struct TraceControlRequest {
  std::string mount;  // Empty: all mounts of the cluster.
  ClusterChoice cluster;
  std::string directory;
  bool light = false;
  bool cold = false;
  std::vector<std::string> command;
};

// Starts the traces of all mounts, or of none.
Status StartTraces(const TraceControlRequest& options);
// Ends all traces and prints their state; DataLoss if one is incomplete.
Status StopTraces(const TraceControlRequest& options, bool as_json);
// Traces while the command runs. If the command fails, ends this process with its exit code.
Status RunTraced(const TraceControlRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_
