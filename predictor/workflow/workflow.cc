#include "predictor/workflow/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <queue>
#include <set>

#include "common/base/units.h"
#include "predictor/workflow/document.h"

namespace mosa::predict {
namespace {

std::string Describe(const std::string& id, int line) {
  return line > 0 ? fmt::format("task '{}' (line {})", id, line) : fmt::format("task '{}'", id);
}

// "a/./b//c/../d" becomes "a/b/d". Returns nothing if the path leaves the directory or names
// nothing in it.
std::optional<std::string> Normal(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  if (parts.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(parts, "/"));
}

class WorkflowBuilder {
 public:
  explicit WorkflowBuilder(const WorkflowDraft& draft) : draft_(draft) {}

  BuildResult Build() {
    workflow_.name = draft_.name;
    if (draft_.tasks.empty()) Fault("the workflow has no tasks");
    if (draft_.tasks.size() > kTasksMax) {
      Fault(fmt::format("the workflow has {} tasks, but at most {} are supported",
                        draft_.tasks.size(), kTasksMax));
      return {{}, std::move(faults_)};
    }
    AddDirectories();
    for (uint32_t i = 0; i < draft_.tasks.size(); ++i) AddTask(TaskIndex{i});
    CheckNesting();
    for (const FileDraft& file : draft_.files) AddFacts(file);
    for (uint32_t i = 0; i < draft_.tasks.size(); ++i) Connect(TaskIndex{i});
    Order();
    return {std::move(workflow_), std::move(faults_)};
  }

 private:
  void Fault(std::string sentence) {
    if (faults_.size() < kFaultsMax) faults_.push_back(std::move(sentence));
  }

  // Before any input is read: an input inside a directory of another task depends on that task.
  void AddDirectories() {
    const size_t faults = faults_.size();
    for (const TaskDraft& draft : draft_.tasks) {
      for (const std::string& path : draft.outputs) {
        if (!path.ends_with('/')) continue;
        if (const auto file = FileOf(path, "writes", draft, false))
          workflow_.files[file->value].is_directory = true;
      }
    }
    has_directories_ = !files_.empty();
    faults_.resize(faults);  // AddPaths() finds them again.
  }

  void AddTask(TaskIndex index) {
    const TaskDraft& draft = draft_.tasks[index.value];
    Task task;
    task.id = draft.id;
    task.stage = draft.stage.empty() ? StageOf(draft.id) : draft.stage;
    task.command = draft.command;
    task.expected = draft.expected;
    task.needs = draft.needs;
    task.line = draft.line;
    const auto [named, fresh] = tasks_.emplace(draft.id, index);
    if (draft.id.empty() || draft.id.find_first_of(std::string_view("\0\n", 2)) != draft.id.npos) {
      Fault(fmt::format("{} needs an id of one line", Describe(draft.id, draft.line)));
    } else if (!fresh) {
      Fault(fmt::format("{} has the same id as {}", Describe(draft.id, draft.line),
                        draft_.tasks[named->second.value].line > 0
                            ? fmt::format("that of line {}", draft_.tasks[named->second.value].line)
                            : "one before it"));
    }
    const auto blank = [](const std::string& s) { return s.find_first_not_of(" \t\n") == s.npos; };
    if (draft.command.empty() || blank(draft.command[0]))
      Fault(fmt::format("{} has no command", Describe(draft.id, draft.line)));
    for (const std::string& word : draft.command) {
      if (word.find('\0') != std::string::npos)
        Fault(fmt::format("the command of {} holds a NUL byte", Describe(draft.id, draft.line)));
    }
    workflow_.tasks.push_back(std::move(task));
    AddPaths(index, draft);
  }

  void AddPaths(TaskIndex index, const TaskDraft& draft) {
    Task& task = workflow_.tasks[index.value];
    std::set<PathIndex> inputs;
    for (const std::string& path : draft.inputs) {
      const auto file = FileOf(path, "reads", draft, true);
      if (!file || !inputs.insert(*file).second) continue;
      task.inputs.push_back(*file);
      workflow_.files[file->value].consumers.push_back(index);
    }
    for (const std::string& path : draft.outputs) {
      const auto file = FileOf(path, "writes", draft, false);
      if (!file) continue;
      std::optional<TaskIndex>& producer = workflow_.files[file->value].producer;
      if (producer && *producer == index) {
        Fault(fmt::format("{} names its output '{}' twice", mosa::predict::Describe(task), path));
      } else if (producer) {
        Fault(fmt::format("'{}' is written by {} and by {}", path,
                          mosa::predict::Describe(workflow_.at(*producer)),
                          mosa::predict::Describe(task)));
      } else if (inputs.contains(*file)) {
        Fault(fmt::format("{} reads '{}', which it also writes", mosa::predict::Describe(task),
                          path));
      } else {
        producer = index;
        task.outputs.push_back(*file);
      }
    }
  }

  // A written file cannot be a directory of another written file.
  void CheckNesting() {
    for (const WorkflowFile& file : workflow_.files) {
      if (!file.producer) continue;
      for (size_t slash = file.path.find('/'); slash != std::string::npos;
           slash = file.path.find('/', slash + 1)) {
        const auto above = files_.find(file.path.substr(0, slash));
        if (above == files_.end() || !workflow_.at(above->second).producer) continue;
        const std::string own = mosa::predict::Describe(workflow_.at(*file.producer));
        const std::string other =
            mosa::predict::Describe(workflow_.at(*workflow_.at(above->second).producer));
        Fault(workflow_.at(above->second).is_directory
                  ? fmt::format("{} writes '{}', but all of '{}/' is one output, of {}", own,
                                file.path, above->first, other)
                  : fmt::format("{} writes '{}', but '{}', which {} writes, is not a directory",
                                own, file.path, above->first, other));
      }
    }
  }

  // Makes the path relative to the run's directory if it lies below one of its absolute names.
  std::string Inside(const std::string& path) const {
    const auto normal = path.starts_with('/') ? Normal(path) : std::nullopt;
    if (!normal) return path;
    for (const std::string& directory : draft_.directories) {
      if (("/" + *normal).starts_with(directory + "/")) return normal->substr(directory.size());
    }
    return path;
  }

  std::optional<PathIndex> FileOf(const std::string& named, std::string_view does,
                                  const TaskDraft& draft, bool may_be_absolute) {
    const std::string path = Inside(named);
    const auto fault = [&](std::string_view why) {
      Fault(fmt::format("{} {} '{}', {}", Describe(draft.id, draft.line), does,
                        path.substr(0, path.find('\0')), why));
      return std::nullopt;
    };
    if (path.find('\0') != std::string::npos) return fault("a path with a NUL byte");
    const bool absolute = path.starts_with('/');
    if (absolute && !may_be_absolute)
      return fault("which is outside the mount: outputs are paths below the run's directory");
    const auto normal = Normal(path);
    if (!normal && path.find_first_not_of("./") == std::string::npos &&
        path.find("..") == std::string::npos)
      return fault("which names no file");
    if (!normal)
      return fault("which is outside the mount: paths may not leave the run's directory");
    return Named(absolute ? "/" + *normal : WithoutInside(*normal, does == "reads"));
  }

  // An input inside a directory that a task fills is that directory: it is one output.
  std::string WithoutInside(const std::string& path, bool is_input) const {
    if (!is_input || !has_directories_) return path;
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      const auto above = files_.find(path.substr(0, slash));
      if (above != files_.end() && workflow_.at(above->second).is_directory) return above->first;
    }
    return path;
  }

  PathIndex Named(const std::string& path) {
    const auto [found, fresh] =
        files_.emplace(path, PathIndex{static_cast<uint32_t>(workflow_.files.size())});
    if (fresh) workflow_.files.emplace_back().path = path;
    return found->second;
  }

  void AddFacts(const FileDraft& draft) {
    const std::string inside = Inside(draft.path);
    const auto normal = Normal(inside);
    const std::string path =
        normal ? (inside.starts_with('/') ? "/" : "") + *normal : std::string();
    const auto found = files_.find(path);
    const std::string line = draft.line > 0 ? fmt::format(" (line {})", draft.line) : "";
    if (found == files_.end()) {
      const std::string above = WithoutInside(path, /*is_input=*/true);
      if (above != path)
        Fault(fmt::format("file '{}'{} lies in '{}/', which is one output: say it of '{}/'",
                          draft.path, line, above, above));
      else if (draft.must_be_used)
        Fault(fmt::format("file '{}'{} is neither read nor written by any task", draft.path, line));
      return;
    }
    WorkflowFile& file = workflow_.files[found->second.value];
    if (!draft.hints.empty() && !file.producer)
      Fault(fmt::format("file '{}'{} has hints, but no task writes it", draft.path, line));
    if (draft.size_bytes) file.size_bytes = draft.size_bytes;
    for (const auto& [name, value] : draft.hints) file.hints.insert_or_assign(name, value);
    const auto stream = draft.hints.find("stream");
    if (stream == draft.hints.end() || stream->second != "append") return;
    file.is_stream = true;
    if (file.is_directory)
      Fault(
          fmt::format("file '{}'{} is a directory: only a file can be a stream", draft.path, line));
  }

  void Connect(TaskIndex index) {
    std::set<TaskIndex> before, must_end;
    Task& task = workflow_.tasks[index.value];
    for (const PathIndex input : task.inputs) {
      const WorkflowFile& file = workflow_.at(input);
      if (!file.producer) continue;
      before.insert(*file.producer);
      if (!file.is_stream) must_end.insert(*file.producer);
    }
    for (const std::string& id : draft_.tasks[index.value].after) {
      const auto found = tasks_.find(id);
      if (found == tasks_.end()) {
        Fault(fmt::format("{} comes after '{}', but there is no such task",
                          mosa::predict::Describe(task), id));
      } else {
        before.insert(found->second);
        must_end.insert(found->second);
      }
    }
    std::ranges::set_difference(before, must_end, std::back_inserter(task.stream_writers));
    for (const TaskIndex other : before) workflow_.tasks[other.value].successors.push_back(index);
    task.predecessors.assign(before.begin(), before.end());
  }

  // Topological order: the lowest index first among tasks whose predecessors are all placed.
  void Order() {
    std::vector<size_t> missing;
    std::priority_queue<TaskIndex, std::vector<TaskIndex>, std::greater<>> ready;
    for (uint32_t i = 0; i < workflow_.tasks.size(); ++i) {
      missing.push_back(workflow_.tasks[i].predecessors.size());
      if (missing.back() == 0) ready.push(TaskIndex{i});
    }
    while (!ready.empty()) {
      const TaskIndex index = ready.top();
      ready.pop();
      workflow_.order.push_back(index);
      Task& task = workflow_.tasks[index.value];
      for (const TaskIndex before : task.predecessors)
        task.level = std::max(task.level, workflow_.at(before).level + 1);
      for (const TaskIndex next : task.successors) {
        if (--missing[next.value] == 0) ready.push(next);
      }
    }
    if (workflow_.order.size() < workflow_.tasks.size()) {
      Fault(DescribeCycle(missing));
      return;
    }
    for (auto index = workflow_.order.rbegin(); index != workflow_.order.rend(); ++index) {
      Task& task = workflow_.tasks[index->value];
      for (const TaskIndex next : task.successors)
        task.levels_to_end = std::max(task.levels_to_end, workflow_.at(next).levels_to_end + 1);
    }
  }

  // Every task with a missing predecessor has one that misses one, too, so that going back from any
  // of them reaches the cycle.
  std::string DescribeCycle(const std::vector<size_t>& missing) const {
    TaskIndex at{0};
    while (missing[at.value] == 0) ++at.value;
    std::vector<TaskIndex> path;
    std::set<TaskIndex> seen;
    while (seen.insert(at).second) {
      path.push_back(at);
      const Task& task = workflow_.at(at);
      at = *std::find_if(task.predecessors.begin(), task.predecessors.end(),
                         [&](TaskIndex before) { return missing[before.value] > 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::string text = "tasks wait for each other in a cycle: ";
    constexpr size_t kShownMax = 10;
    for (size_t i = 0; i < path.size() && i < kShownMax; ++i)
      text += fmt::format("{} waits for ", mosa::predict::Describe(workflow_.at(path[i])));
    if (path.size() > kShownMax) text += fmt::format("{} more, the last for ", path.size() - 10);
    return text + mosa::predict::Describe(workflow_.at(at));
  }

  const WorkflowDraft& draft_;
  Workflow workflow_;
  std::vector<std::string> faults_;
  std::map<std::string, TaskIndex, std::less<>> tasks_;
  std::map<std::string, PathIndex, std::less<>> files_;
  bool has_directories_ = false;
};

}  // namespace

BuildResult BuildWorkflow(const WorkflowDraft& draft) { return WorkflowBuilder(draft).Build(); }

Status CheckMemory(const Workflow& workflow, const std::vector<uint64_t>& memory_bytes) {
  if (memory_bytes.empty() || std::ranges::count(memory_bytes, 0) > 0) return OkStatus();
  const uint64_t most = std::ranges::max(memory_bytes);
  for (const Task& task : workflow.tasks)
    if (task.needs.memory_bytes > most)
      return InvalidArgumentError(
          fmt::format("{} needs {} of memory, and no host has more than {} for tasks: give hosts "
                      "more (--memory "
                      "of 'mosa run', memory= of a configuration)",
                      Describe(task), HumanBytes(static_cast<int64_t>(task.needs.memory_bytes)),
                      HumanBytes(static_cast<int64_t>(most))));
  return OkStatus();
}

std::vector<PathIndex> OutsideInputs(const Workflow& workflow) {
  std::vector<PathIndex> files;
  for (uint32_t i = 0; i < workflow.files.size(); ++i) {
    if (!workflow.files[i].producer && !workflow.files[i].consumers.empty())
      files.push_back(PathIndex{i});
  }
  return files;
}

std::string Describe(const Task& task) { return Describe(task.id, task.line); }

std::string StageOf(std::string_view name) {
  std::string_view stage = name;
  const auto strip = [&stage](std::string_view characters) {
    const size_t last = stage.find_last_not_of(characters);
    stage = last == std::string_view::npos ? std::string_view() : stage.substr(0, last + 1);
  };
  strip("0123456789");
  if (stage.ends_with("_ID")) stage.remove_suffix(3);
  strip("_-.#:/");
  return std::string(stage.empty() ? name : stage);
}

}  // namespace mosa::predict
