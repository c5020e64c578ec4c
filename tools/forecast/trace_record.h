// What the record of a `mosa run` says for a workload.
#ifndef MOSA_TOOLS_FORECAST_TRACE_RECORD_H_
#define MOSA_TOOLS_FORECAST_TRACE_RECORD_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/trace/workload.h"

namespace mosa::cli {

struct RecordedRun {
  std::vector<predict::RecordedTask> tasks;
  predict::Workload workload;  // By itself: without operations.
};

// NotFound, or InvalidArgument: it is no record, or one with a task that is not done.
Result<RecordedRun> ReadRecordedRun(const std::string& path);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_TRACE_RECORD_H_
