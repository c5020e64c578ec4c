// Traces that are written, in a table or as a workload: what `mosa trace show` and `workload` do.
#ifndef MOSA_TOOLS_OBSERVE_TRACE_FILES_H_
#define MOSA_TOOLS_OBSERVE_TRACE_FILES_H_

#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

struct TraceFilesRequest {
  std::vector<std::string> files;
  std::string record;
  std::string output;
  std::string version = "1.5";  // The WfFormat version.
};

// DataLoss after it has shown them if they are not whole.
Status ShowTraces(const TraceFilesRequest& options, bool as_json);
// Writes the workload and, of traces, its operations beside it.
Status ExportWorkload(const TraceFilesRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_TRACE_FILES_H_
