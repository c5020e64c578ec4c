// The trace of mounts that are in use, on and off: what `mosa trace start`, `stop` and `run` do.
#ifndef MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_
#define MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"

namespace mosa::cli {

struct TraceControlRequest {
  std::string mount;  // Empty: all of the cluster.
  ClusterChoice cluster;
  std::string directory;
  bool light = false;
  bool cold = false;
  std::vector<std::string> command;
};

// All of them, or none.
Status StartTraces(const TraceControlRequest& options);
// Ends all the traces and shows them; DataLoss if they lack something.
Status StopTraces(const TraceControlRequest& options, bool as_json);
// Traces while the command runs. If that fails, ends this process with its exit code.
Status RunTraced(const TraceControlRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TRACE_CONTROL_H_
