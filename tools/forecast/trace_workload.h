// What was seen of a run, by traces and the record of `mosa run`, as a workload.
#ifndef MOSA_TOOLS_FORECAST_TRACE_WORKLOAD_H_
#define MOSA_TOOLS_FORECAST_TRACE_WORKLOAD_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/trace.h"
#include "predictor/trace/workload.h"

namespace mosa::cli {

struct Traces {
  std::vector<TraceFile> files;
  std::vector<std::string> faults;  // One sentence for each that is not whole.
};
Result<Traces> ReadTraces(const std::vector<std::string>& paths);

// DataLoss: what was shown or written is not all that happened.
Status Incomplete(const std::vector<std::string>& faults);

struct RunWorkload {
  predict::Workload workload;
  Status incomplete;  // As Incomplete().
};
// Built from traces, or a record, or both; `record` may be empty. InvalidArgument: neither, or not
// valid; FailedPrecondition: no task has used a file.
Result<RunWorkload> WorkloadOfRun(const std::vector<std::string>& traces, const std::string& record,
                                  const std::string& name);

struct RecordedRun {
  std::vector<predict::RecordedTask> tasks;
  predict::Workload workload;  // By itself: without operations.
};

// What the record of a 'mosa run' says for a workload. Fails as ReadRunFile(); InvalidArgument if a
// task is not done or has no command.
Result<RecordedRun> ReadRecordedRun(const std::string& path);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_TRACE_WORKLOAD_H_
