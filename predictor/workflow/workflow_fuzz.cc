// Whatever the bytes, the readers return a workflow or faults. A returned workflow can be run: its
// order holds every task after its predecessors.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mosa::predict::Task;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = mosa::predict::ReadWorkflow(text, "fuzz");
  if (!result.faults.empty()) return 0;
  const auto& workflow = result.workflow;
  MOSA_CHECK(workflow.order.size() == workflow.tasks.size() && !workflow.tasks.empty());
  std::vector<bool> done(workflow.tasks.size(), false);
  for (const auto index : workflow.order) {
    const Task& task = workflow.at(index);
    MOSA_CHECK(!task.id.empty() && !task.command.empty() && !done[index.value]);
    for (const auto before : task.predecessors) MOSA_CHECK(done[before.value]);
    for (const auto output : task.outputs) MOSA_CHECK(!workflow.at(output).path.starts_with("/"));
    done[index.value] = true;
  }
  mosa::predict::PlanHints(workflow, {.hosts = 4});
  return 0;
}
