#include "predictor/workflow/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/base/hash.h"

namespace mosa::predict {
namespace {

constexpr size_t kGroupBytesMax = 64;

// A hint's group may hold no blanks and is short. The hash distinguishes ids that would otherwise
// become equal.
std::string GroupOf(const Task& reader) {
  std::string group;
  for (const char c : reader.id.substr(0, kGroupBytesMax)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || c == '.';
    group += plain ? c : '_';
  }
  return group == reader.id ? group : fmt::format("{}.{:016x}", group, Hash64(reader.id));
}

class Planner {
 public:
  Planner(const Workflow& workflow, const PatternOptions& options)
      : workflow_(workflow), options_(options) {
    for (const WorkflowFile& file : workflow.files) {
      if (!file.producer || file.consumers.size() < 2) continue;
      FanOuts& level = fan_outs_[workflow.at(*file.producer).level];
      ++level.files;
      level.writers.insert(*file.producer);
      level.bytes += file.size_bytes.value_or(0);
      level.sizes_are_known = level.sizes_are_known && file.size_bytes.has_value();
    }
    for (const Task& task : workflow.tasks) writers_.push_back(WritersFor(task));
  }

  FileHints Plan(PathIndex index) const {
    const WorkflowFile& file = workflow_.at(index);
    FileHints plan{index, {}, ""};
    if (workflow_.hints_are_whole) {
      plan.reason =
          file.hints.empty() ? "no rule or plan speaks of it" : "as the rules or the plan say";
    } else if (file.hints.contains("pattern") || file.hints.contains("placement")) {
      plan.reason = "as the workflow says";
    } else if (file.consumers.empty()) {
      plan.reason = "a result: no task reads it";
    } else if (file.consumers.size() > 1) {
      PlanFanOut(file, plan);
    } else {
      PlanOneReader(file, plan);
    }
    for (const auto& [name, value] : file.hints) plan.hints.insert_or_assign(name, value);
    // Whatever plan or rules say of its place.
    if (file.is_stream) plan.hints["stream"] = "append";
    return plan;
  }

 private:
  // Files that tasks of one level write and several tasks read.
  struct FanOuts {
    uint32_t files = 0;
    std::set<TaskIndex> writers;
    uint64_t bytes = 0;
    bool sizes_are_known = true;

    // This file's share of `hosts`, rounded up.
    uint32_t ShareOf(const WorkflowFile& file, uint32_t hosts) const {
      const auto tasks = static_cast<uint32_t>(writers.size());
      if (!sizes_are_known || bytes == 0) return (hosts + tasks - 1) / tasks;
      const double part = static_cast<double>(*file.size_bytes) * hosts;
      return static_cast<uint32_t>(std::ceil(part / static_cast<double>(bytes)));
    }
  };

  // The number of tasks with a file that only `reader` reads.
  size_t WritersFor(const Task& reader) const {
    std::set<TaskIndex> writers;
    for (const PathIndex input : reader.inputs) {
      const WorkflowFile& file = workflow_.at(input);
      if (file.producer && file.consumers.size() == 1) writers.insert(*file.producer);
    }
    return writers.size();
  }

  void PlanFanOut(const WorkflowFile& file, FileHints& plan) const {
    const size_t readers = file.consumers.size();
    const FanOuts& level = fan_outs_.at(workflow_.at(*file.producer).level);
    const uint32_t share = level.ShareOf(file, options_.hosts);
    const auto copies = std::min<size_t>({readers, share, options_.broadcast_copies_max});
    if (copies > 1) {
      plan.hints["pattern"] = fmt::format("broadcast:{}", copies);
      plan.reason = fmt::format("fan-out: {} tasks read it", readers);
    } else {
      plan.hints["placement"] = "local";
      plan.reason =
          fmt::format("{} tasks read it, but its share of {} such files is one of {} hosts",
                      readers, level.files, options_.hosts);
    }
  }

  void PlanOneReader(const WorkflowFile& file, FileHints& plan) const {
    const Task& reader = workflow_.at(file.consumers.front());
    const size_t writers = writers_[file.consumers.front().value];
    if (writers > 1) {
      plan.hints["pattern"] = "reduce:" + GroupOf(reader);
      plan.reason =
          fmt::format("fan-in: task '{}' gathers the files of {} tasks", reader.id, writers);
    } else {
      plan.hints["pattern"] = "pipeline";
      plan.reason = fmt::format("1:1: only task '{}' reads it", reader.id);
    }
  }

  const Workflow& workflow_;
  const PatternOptions& options_;
  std::map<uint32_t, FanOuts> fan_outs_;  // By level.
  std::vector<size_t> writers_;           // By task: WritersFor() it.
};

}  // namespace

std::vector<FileHints> PlanHints(const Workflow& workflow, const PatternOptions& options) {
  const Planner planner(workflow, options);
  std::vector<FileHints> plans;
  for (uint32_t i = 0; i < workflow.files.size(); ++i) {
    if (workflow.files[i].producer) plans.push_back(planner.Plan(PathIndex{i}));
  }
  return plans;
}

}  // namespace mosa::predict
