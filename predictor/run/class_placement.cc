#include "predictor/run/class_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "manager/core/glob.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

constexpr size_t kStagesShownMax = 20;

Status Wrong(std::string_view name, std::string_view what) {
  return InvalidArgumentError(fmt::format("configuration: placement{}: {}", name, what));
}

std::string StagesOf(const Workflow& workflow) {
  std::set<std::string_view> stages;
  for (const Task& task : workflow.tasks) stages.insert(task.stage);
  std::string text;
  size_t shown = 0;
  for (const std::string_view stage : stages) {
    if (++shown > kStagesShownMax) return text + " and others";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", stage);
  }
  return text;
}

Result<std::vector<PathIndex>> OfStage(const Workflow& workflow, std::string_view name) {
  const std::string_view stage = name.substr(1);
  std::vector<PathIndex> files;
  bool is_known = false;
  for (const Task& task : workflow.tasks) {
    if (task.stage != stage) continue;
    is_known = true;
    for (const PathIndex output : task.outputs)
      if (IsOnTheStore(workflow.at(output))) files.push_back(output);
  }
  if (!is_known)
    return Wrong(name, fmt::format("'{}' has no such stage; its stages are {}", workflow.name,
                                   StagesOf(workflow)));
  if (files.empty()) return Wrong(name, "the tasks of this stage write no file on the store");
  return files;
}

Result<std::vector<PathIndex>> OfGlob(const Workflow& workflow, std::string_view name) {
  const auto glob = manager::Glob::Parse(fmt::format("/{}", name.substr(1)));
  if (!glob.ok()) return Wrong(name, MessageOf(glob.status()));
  std::vector<PathIndex> files;
  for (uint32_t i = 0; i < workflow.files.size(); ++i) {
    const WorkflowFile& file = workflow.files[i];
    if (file.producer && IsOnTheStore(file) && glob->Matches("/" + file.path))
      files.push_back(PathIndex{i});
  }
  if (files.empty())
    return Wrong(name, fmt::format("no task of '{}' writes a file that it matches; globs start in "
                                   "the run's directory, and '*' does not match '/'",
                                   workflow.name));
  return files;
}

}  // namespace

Result<Workflow> WithPlacements(const Workflow& workflow, const Configuration& configuration) {
  Workflow placed = workflow;
  const std::vector<PathIndex> later = LaterVersionsIn(workflow);
  std::map<PathIndex, std::string_view> classes;
  for (const auto& [name, placement] : configuration.class_placements) {
    MOSA_ASSIGN_OR_RETURN(std::vector<PathIndex> files,
                          name.starts_with('@') ? OfStage(workflow, name) : OfGlob(workflow, name));
    std::erase_if(files, [&later](PathIndex index) {
      return std::binary_search(later.begin(), later.end(), index);
    });
    if (files.empty())
      return Wrong(name,
                   "it matches only later versions of traced files, which lie where their first "
                   "version does");
    for (const PathIndex index : files) {
      WorkflowFile& file = placed.files[index.value];
      const auto [other, is_first] = classes.emplace(index, name);
      if (!is_first)
        return InvalidArgumentError(
            fmt::format("configuration: '{}' belongs to two classes, placement{} and placement{}: "
                        "change them so that each file belongs to one",
                        file.path, other->second, name));
      if (placement == kPlacementByDefault) continue;
      file.hints.erase("pattern");
      file.hints.insert_or_assign("placement", placement);
    }
  }
  return placed;
}

}  // namespace mosa::predict
