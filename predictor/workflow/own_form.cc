// Mosa's own form; read.h shows it.
#include <fmt/format.h>

#include "common/model/hint_values.h"
#include "predictor/workflow/fields.h"
#include "predictor/workflow/read.h"

namespace mosa::predict {
namespace {

// Text is a script for the workflow's shell, else for bash as Snakemake starts it: a failure
// anywhere in a pipe fails the task. The options are set inside the script, so that the file named
// by $BASH_ENV, such as the functions of environment modules, is read without them.
std::vector<std::string> ShellCommand(std::vector<std::string> shell, const std::string& text) {
  if (text.find_first_not_of(" \t\n") == std::string::npos) return {};
  if (shell.empty()) return {"bash", "-c", "set -euo pipefail; " + text};
  shell.push_back(text);
  return shell;
}

TaskDraft ReadTask(const Value& map, const std::vector<std::string>& shell, Fields& fields) {
  TaskDraft task;
  task.line = map.line;
  task.id = fields.Text(map, "id", "the task");
  const std::string of = task.id.empty() ? "the task" : fmt::format("task '{}'", task.id);
  fields.AllowOnly(
      map, {"id", "stage", "command", "inputs", "outputs", "after", "runtime", "cores", "memory"},
      of);
  task.stage = fields.Text(map, "stage", of);
  task.inputs = fields.Texts(map, "inputs", of);
  task.outputs = fields.Texts(map, "outputs", of);
  task.after = fields.Texts(map, "after", of);
  task.expected = fields.Seconds(map, "runtime", of);
  task.needs.cores = fields.Count(map, "cores", of, kTaskCoresMax).value_or(1);
  task.needs.memory_bytes = fields.Bytes(map, "memory", of).value_or(0);
  const Value* command = map.Find("command");
  if (command != nullptr && command->is_scalar()) {
    task.command = ShellCommand(shell, command->text);
  } else {
    task.command = fields.Texts(map, "command", of);
  }
  return task;
}

FileDraft ReadFile(const std::string& path, const Value& map, Fields& fields) {
  FileDraft file;
  file.path = path;
  file.line = map.line;
  file.must_be_used = true;
  const std::string of = fmt::format("file '{}'", path);
  if (map.kind != Value::Kind::kMap) {
    fields.Fault(map.line,
                 fmt::format("{} needs a map, such as {{size: 10M, pattern: pipeline}}", of));
    return file;
  }
  std::vector<std::string_view> keys = {"size"};
  keys.insert(keys.end(), kHintNames.begin(), kHintNames.end());
  fields.AllowOnly(map, keys, of);
  file.size_bytes = fields.Bytes(map, "size", of);
  for (const auto& [name, value] : map.fields) {
    if (name != "size") file.hints.emplace(name, fields.Text(map, name, of));
  }
  return file;
}

}  // namespace

DraftResult ReadOwnForm(const Value& root) {
  DraftResult result;
  Fields fields(result.faults);
  fields.AllowOnly(root, {"name", "shell", "tasks", "files"}, "a workflow");
  result.draft.name = fields.Text(root, "name", "the workflow");
  const std::vector<std::string> shell = fields.Texts(root, "shell", "the workflow");
  for (const Value* task : fields.Maps(root, "tasks", "the workflow"))
    result.draft.tasks.push_back(ReadTask(*task, shell, fields));
  if (const Value* files = root.Find("files"); files && files->kind == Value::Kind::kMap) {
    for (const auto& [path, facts] : files->fields)
      result.draft.files.push_back(ReadFile(path, facts, fields));
  } else if (files && files->kind != Value::Kind::kNull) {
    fields.Fault(files->line, "'files' must be a map of paths");
  }
  return result;
}

}  // namespace mosa::predict
