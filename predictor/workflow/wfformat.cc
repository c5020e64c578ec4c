// WfFormat, the JSON schema of WfCommons. Up to 1.4, tasks carry everything and refer to each other
// by name. From 1.5 on, the graph (`specification`) is separate from a run of it (`execution`), and
// ids identify tasks and files.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "predictor/workflow/fields.h"
#include "predictor/workflow/read.h"

namespace mosa::predict {
namespace {

class WfFormatReader {
 public:
  WfFormatReader(const Value& root, DraftResult& result)
      : root_(root), result_(result), fields_(result.faults) {}

  void Read() {
    result_.draft.name = fields_.Text(root_, "name", "the workflow");
    const std::string version = fields_.Text(root_, "schemaVersion", "the workflow");
    const Value* workflow = root_.Find("workflow");
    if (workflow == nullptr || workflow->kind != Value::Kind::kMap) {
      fields_.Fault(root_.line, "a WfFormat text needs a map 'workflow'");
    } else if (version == "1.3" || version == "1.4") {
      ReadTasksWithFiles(*workflow);
    } else if (version == "1.5" || version == "1.6") {
      ReadSpecification(*workflow);
    } else {
      fields_.Fault(root_.line,
                    fmt::format("unsupported WfFormat '{}': 1.3, 1.4, 1.5 and 1.6 can be read",
                                version.substr(0, 80)));
    }
  }

 private:
  // Ids of the tasks that a name may refer to.
  using Names = std::map<std::string, std::set<std::string>>;

  // ---- 1.3 and 1.4

  void ReadTasksWithFiles(const Value& workflow) {
    const auto maps = fields_.Maps(workflow, "tasks", "the workflow");
    Names ids;  // By every name that others may use for the task.
    for (const Value* map : maps) {
      TaskDraft task;
      task.line = map->line;
      const std::string name = fields_.Text(*map, "name", "the task");
      const std::string id = fields_.Text(*map, "id", "the task");
      // As WfCommons migrates them, since an id may be only a number and a name may be shared.
      task.id = id.empty() || name.find(id) != std::string::npos ? name : name + "_" + id;
      const std::string of = Of(task.id);
      task.stage = fields_.Text(*map, "category", of);
      if (task.stage.empty()) task.stage = StageOf(name);
      ReadExecution(*map, "runtime", task);
      for (const Value* file : fields_.Maps(*map, "files", of)) ReadFile(*file, task);
      for (const std::string& called : {task.id, name, id}) {
        if (!called.empty()) ids[called].insert(task.id);
      }
      result_.draft.tasks.push_back(std::move(task));
    }
    ReadOrder(maps, ids);
  }

  void ReadFile(const Value& map, TaskDraft& task) {
    const std::string of = "a file of " + Of(task.id);
    FileDraft file;
    file.line = map.line;
    file.path = fields_.Text(map, "path", of);
    if (!file.path.empty() && !file.path.ends_with('/')) file.path += '/';
    file.path += fields_.Text(map, "name", of);
    file.size_bytes = fields_.Bytes(map, map.Find("size") ? "size" : "sizeInBytes", of);
    const std::string link = fields_.Text(map, "link", of);
    if (link == "input") {
      task.inputs.push_back(file.path);
    } else if (link == "output") {
      task.outputs.push_back(file.path);
    } else {
      fields_.Fault(map.line, fmt::format("'link' of {} must be input or output, not '{}'", of,
                                          link.substr(0, 80)));
    }
    result_.draft.files.push_back(std::move(file));
  }

  // ---- 1.5 and 1.6

  void ReadSpecification(const Value& workflow) {
    const Value* specification = workflow.Find("specification");
    if (specification == nullptr || specification->kind != Value::Kind::kMap) {
      fields_.Fault(workflow.line, "'workflow' needs a map 'specification'");
      return;
    }
    const auto maps = fields_.Maps(*specification, "tasks", "the specification");
    Names ids;
    std::map<std::string, size_t> places;
    for (const Value* map : maps) {
      TaskDraft task;
      task.line = map->line;
      task.id = fields_.Text(*map, "id", "the task");
      const std::string of = Of(task.id);
      task.stage = StageOf(fields_.Text(*map, "name", of));
      for (const std::string& id : fields_.Texts(*map, "inputFiles", of))
        task.inputs.push_back(PathOf(id));
      for (const std::string& id : fields_.Texts(*map, "outputFiles", of))
        task.outputs.push_back(PathOf(id));
      ids[task.id].insert(task.id);
      places.emplace(task.id, result_.draft.tasks.size());
      result_.draft.tasks.push_back(std::move(task));
    }
    ReadOrder(maps, ids);
    std::map<std::string, std::string> ids_of_paths;
    for (const Value* map : fields_.Maps(*specification, "files", "the specification")) {
      FileDraft file;
      file.line = map->line;
      const std::string id = fields_.Text(*map, "id", "the file");
      file.path = PathOf(id);
      const auto [same, is_new] = ids_of_paths.emplace(file.path, id);
      if (!is_new && same->second != id)
        fields_.Fault(map->line, fmt::format("the files '{}' and '{}' would have the same name",
                                             same->second.substr(0, 80), id.substr(0, 80)));
      file.size_bytes = fields_.Bytes(*map, "sizeInBytes", "the file");
      result_.draft.files.push_back(std::move(file));
    }
    const Value* execution = workflow.Find("execution");
    if (execution == nullptr) return;
    for (const Value* map : fields_.Maps(*execution, "tasks", "the execution")) {
      const std::string id = fields_.Text(*map, "id", "the task");
      if (const auto place = places.find(id); place == places.end()) {
        fields_.Fault(map->line,
                      fmt::format("'execution' has task '{}', but 'specification' does not", id));
      } else {
        ReadExecution(*map, "runtimeInSeconds", result_.draft.tasks[place->second]);
      }
    }
  }

  // A file's id is a name, and no path of this machine: recorders often write that of a task's
  // working directory.
  static std::string PathOf(const std::string& id) {
    return id.substr(std::min(id.find_first_not_of('/'), id.size()));
  }

  // ---- both

  static std::string Of(const std::string& id) {
    return id.empty() ? "the task" : fmt::format("task '{}'", id);
  }

  void ReadExecution(const Value& map, std::string_view runtime, TaskDraft& task) {
    task.expected =
        fields_.Seconds(map, map.Find(runtime) ? runtime : "runtimeInSeconds", Of(task.id));
    task.needs.cores = CoresOf(map, task.id);
    const Value* command = map.Find("command");
    if (command == nullptr) return;
    const std::string of = fmt::format("the command of task '{}'", task.id);
    if (command->kind != Value::Kind::kMap) {
      fields_.Fault(command->line, fmt::format("{} must be a map", of));
      return;
    }
    task.command = {fields_.Text(*command, "program", of)};
    for (std::string& argument : fields_.Texts(*command, "arguments", of)) {
      const size_t blank = argument.starts_with('-') ? argument.find(' ') : std::string::npos;
      if (blank == std::string::npos) {
        task.command.push_back(std::move(argument));
      } else {
        task.command.push_back(argument.substr(0, blank));
        task.command.push_back(argument.substr(blank + 1));
      }
    }
  }

  // Recorders also write 0, for none that was asked for.
  uint32_t CoresOf(const Value& map, const std::string& id) {
    const std::string_view key = map.Find("coreCount") ? "coreCount" : "cores";
    const Value* cores = map.Find(key);
    if (cores != nullptr && (cores->text == "0" || cores->text == "0.0")) return 1;
    return fields_.Count(map, key, Of(id), kTaskCoresMax).value_or(1);
  }

  // Either end of a dependency may state it.
  void ReadOrder(const std::vector<const Value*>& maps, const Names& ids) {
    std::map<std::string, size_t> places;
    auto& tasks = result_.draft.tasks;
    for (size_t i = 0; i < tasks.size(); ++i) places.emplace(tasks[i].id, i);
    for (size_t i = 0; i < maps.size(); ++i) {
      const std::string of = Of(tasks[i].id);
      for (const std::string& parent : fields_.Texts(*maps[i], "parents", of)) {
        if (const auto id = Meant(ids, parent, "parent", *maps[i], of))
          tasks[i].after.push_back(*id);
      }
      for (const std::string& child : fields_.Texts(*maps[i], "children", of)) {
        if (const auto id = Meant(ids, child, "child", *maps[i], of))
          tasks[places[*id]].after.push_back(tasks[i].id);
      }
    }
  }

  std::optional<std::string> Meant(const Names& ids, const std::string& called,
                                   std::string_view kind, const Value& map, const std::string& of) {
    const auto found = ids.find(called);
    if (found != ids.end() && found->second.size() == 1) return *found->second.begin();
    fields_.Fault(map.line,
                  fmt::format("{} has the {} '{}', but {}", of, kind, called.substr(0, 80),
                              found == ids.end() ? "there is no such task"
                                                 : "several tasks have that name: give their ids"));
    return std::nullopt;
  }

  const Value& root_;
  DraftResult& result_;
  Fields fields_;
};

}  // namespace

DraftResult ReadWfFormat(const Value& root) {
  DraftResult result;
  WfFormatReader(root, result).Read();
  return result;
}

BuildResult ReadWorkflow(std::string_view text, std::string_view default_name,
                         std::vector<std::string> directories) {
  const auto root = ParseDocument(text);
  if (!root.ok()) return {{}, {MessageOf(root.status())}};
  if (root->kind != Value::Kind::kMap)
    return {{}, {fmt::format("line {}: a workflow must be a map with 'tasks'", root->line)}};
  DraftResult read = root->Find("schemaVersion") ? ReadWfFormat(*root) : ReadOwnForm(*root);
  if (!read.faults.empty()) return {{}, std::move(read.faults)};
  if (read.draft.name.empty()) read.draft.name = default_name;
  read.draft.directories = std::move(directories);
  return BuildWorkflow(read.draft);
}

}  // namespace mosa::predict
