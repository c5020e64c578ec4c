// Random graphs for tests.
#ifndef MOSA_PREDICTOR_WORKFLOW_RANDOM_WORKFLOW_FIXTURE_H_
#define MOSA_PREDICTOR_WORKFLOW_RANDOM_WORKFLOW_FIXTURE_H_

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/rng.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// Makes up to `tasks_max` tasks, each with up to two outputs and up to four inputs from earlier
// tasks.
inline Workflow RandomWorkflow(Rng& rng, uint64_t tasks_max) {
  WorkflowDraft draft;
  std::vector<std::string> files;
  const uint64_t count = 1 + rng.Below(tasks_max);
  for (uint64_t i = 0; i < count; ++i) {
    TaskDraft task;
    task.id = fmt::format("t{}", i);
    task.command = {"true"};
    for (uint64_t k = rng.Below(5); k > 0 && !files.empty(); --k)
      task.inputs.push_back(files[rng.Below(files.size())]);
    if (i > 0 && rng.Chance(100)) task.after.push_back(fmt::format("t{}", rng.Below(i)));
    for (uint64_t k = rng.Below(3); k > 0; --k) {
      task.outputs.push_back(fmt::format("f{}.{}", i, k));
      draft.files.push_back({task.outputs.back(), rng.Below(1 << 20), {}, false, 0});
    }
    files.insert(files.end(), task.outputs.begin(), task.outputs.end());
    draft.tasks.push_back(std::move(task));
  }
  // The order of tasks in a text must not matter.
  for (size_t i = draft.tasks.size(); i > 1; --i)
    std::swap(draft.tasks[i - 1], draft.tasks[rng.Below(i)]);
  BuildResult built = BuildWorkflow(draft);
  MOSA_CHECK(built.faults.empty());
  return std::move(built.workflow);
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_RANDOM_WORKFLOW_FIXTURE_H_
