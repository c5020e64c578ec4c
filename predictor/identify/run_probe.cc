#include "predictor/identify/run_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "predictor/model/cost.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {

std::string ToText(const RunProbe& probe) {
  return fmt::format("run {} tasks {}{}", probe.tasks, probe.one_by_one ? "one by one" : "at once",
                     probe.outputs ? ", each with an output" : "");
}

std::vector<RunProbe> PlanRunProbes() {
  return {{8, true, false}, {24, false, false}, {8, true, true}, {24, false, true}};
}

Workflow MakeRunProbe(const RunProbe& probe) {
  WorkflowDraft draft;
  draft.name = "identify";
  for (uint32_t i = 0; i < probe.tasks; ++i) {
    TaskDraft task;
    task.id = fmt::format("task-{}", i);
    task.stage = "tasks";
    task.command = {"/bin/sh", "-c", ":"};
    if (probe.one_by_one && i > 0) task.after = {fmt::format("task-{}", i - 1)};
    if (probe.outputs) {
      const std::string output = fmt::format("output-{}", i);
      task.command.back() = "echo > " + output;
      task.outputs = {output};
      FileDraft file;
      file.path = output;
      file.size_bytes = 1;
      draft.files.push_back(std::move(file));
    }
    draft.tasks.push_back(std::move(task));
  }
  BuildResult built = BuildWorkflow(draft);
  MOSA_CHECK(built.faults.empty());
  return std::move(built.workflow);
}

Result<double> SimulateRun(const RunProbe& probe, const Platform& platform,
                           const Configuration& deployment) {
  const Workflow workflow = MakeRunProbe(probe);
  MOSA_ASSIGN_OR_RETURN(const Prediction prediction, Predict(workflow, platform, deployment));
  if (prediction.failure) return InternalError(*prediction.failure);
  Duration begin = kServiceMax, end;
  for (const PredictedTask& task : prediction.tasks) {
    begin = std::min(begin, task.start);
    end = std::max(end, task.end);
  }
  return SecondsOf(end - begin);
}

}  // namespace mosa::predict
