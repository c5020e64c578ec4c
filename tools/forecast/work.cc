#include "tools/forecast/work.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "predictor/advise/candidates.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/operations.h"
#include "predictor/workflow/read.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trace_workload.h"

namespace mosa::cli {
namespace {

// Builds a workload from a run by means of the same texts that `mosa trace workload` writes.
Status ReadRun(const WorkRequest& request, Work& work) {
  const std::string name =
      std::filesystem::path(request.record.empty() ? request.traces.front() : request.record)
          .stem()
          .string();
  MOSA_ASSIGN_OR_RETURN(const RunWorkload run, WorkloadOfRun(request.traces, request.record, name));
  work.incomplete = run.incomplete;
  predict::BuildResult read = predict::ReadWorkflow(predict::ToWfFormat(run.workload), name);
  if (read.faults.empty() && !request.traces.empty())
    read.faults = predict::AddOperations(predict::ToOperationsText(run.workload), read.workflow);
  if (!read.faults.empty())
    return InvalidArgumentError(
        fmt::format("the run cannot be used as a workload: {}", read.faults.front()));
  work.workflow = std::move(read.workflow);
  return OkStatus();
}

}  // namespace

Result<Work> ReadWork(const WorkRequest& request) {
  const bool seen = !request.record.empty() || !request.traces.empty();
  if (!request.parsed && seen != request.workload.empty())
    return InvalidArgumentError(
        "give either --workload, or a recorded run: traces, --record, or both");
  Work work;
  if (request.parsed) {
    MOSA_ASSIGN_OR_RETURN(work.platform, ReadPlatformFile(request.platform));
    work.workflow = *request.parsed;
  } else if (seen) {
    MOSA_ASSIGN_OR_RETURN(work.platform, ReadPlatformFile(request.platform));
    MOSA_RETURN_IF_ERROR(ReadRun(request, work));
  } else {
    MOSA_ASSIGN_OR_RETURN(Inputs inputs, ReadFiles(request.platform, request.workload));
    work.workflow = std::move(inputs.workflow);
    work.platform = std::move(inputs.platform);
  }
  if (!request.operations.empty())
    MOSA_RETURN_IF_ERROR(ReadOperations(request.operations, work.workflow));
  MOSA_RETURN_IF_ERROR(predict::CheckSizes(work.workflow));
  MOSA_RETURN_IF_ERROR(predict::MakeSpeedHintsCanonical(work.workflow));
  return work;
}

}  // namespace mosa::cli
