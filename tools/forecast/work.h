// The workload and the platform for commands that search by simulation.
#ifndef MOSA_TOOLS_FORECAST_WORK_H_
#define MOSA_TOOLS_FORECAST_WORK_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/model/platform.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

// Names of files. Either `workload`, with `operations` of its tasks or without, or a run: `record`,
// `traces`, or both.
struct WorkRequest {
  std::string platform;
  const predict::Workflow* parsed = nullptr;  // Instead of all others but `platform`.
  std::string workload;
  std::string operations;
  std::string record;
  std::vector<std::string> traces;
};

struct Work {
  predict::Workflow workflow;  // Every file has a size; hints for speed are canonical.
  predict::Platform platform;
  Status incomplete;  // Not OK if the traces do not cover the whole run.
};

Result<Work> ReadWork(const WorkRequest& request);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_WORK_H_
