#include "predictor/workflow/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "predictor/workflow/document.h"
#include "predictor/workflow/fields.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kNumberMax = uint64_t{1} << 60;

// Removes a number and the blank after it from `text`, and returns the number.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > kNumberMax) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.empty() && text.front() != ' ') return std::nullopt;
  if (!text.empty()) text.remove_prefix(1);
  return number;
}

class OperationsReader {
 public:
  OperationsReader(Workflow& workflow, std::vector<std::string>& faults)
      : workflow_(workflow), fields_(faults) {
    for (uint32_t i = 0; i < workflow.tasks.size(); ++i)
      tasks_.emplace(workflow.tasks[i].id, TaskIndex{i});
    for (uint32_t i = 0; i < workflow.files.size(); ++i)
      files_.emplace(workflow.files[i].path, PathIndex{i});
  }

  void Read(const Value& root) {
    const std::string version = fields_.Text(root, "mosa_operations", "the text");
    if (version != std::to_string(kOperationsVersion)) {
      fields_.Fault(
          root.line,
          version.empty()
              ? std::string("it is not a file of operations: there is no 'mosa_operations'")
              : fmt::format("unsupported operations version '{}': only {} can be read",
                            version.substr(0, 80), kOperationsVersion));
      return;
    }
    fields_.AllowOnly(root, {"mosa_operations", "workload", "tasks"}, "the text");
    for (const Value* map : fields_.Maps(root, "tasks", "the text")) ReadTask(*map);
  }

 private:
  void ReadTask(const Value& map) {
    const std::string id = fields_.Text(map, "id", "the task");
    const auto task = tasks_.find(id);
    if (task == tasks_.end()) {
      fields_.Fault(map.line, fmt::format("the workload has no task '{}'", id.substr(0, 80)));
      return;
    }
    const std::string of = fmt::format("task '{}'", id);
    fields_.AllowOnly(map, {"id", "files", "operations"}, of);
    std::vector<PathIndex> files;
    for (const std::string& path : fields_.Texts(map, "files", of)) {
      const auto file = files_.find(path);
      if (file == files_.end()) {
        fields_.Fault(map.line,
                      fmt::format("{} uses '{}', which is not a file of the workload", of, path));
        return;
      }
      files.push_back(file->second);
    }
    Task& into = workflow_.tasks[task->second.value];
    if (!into.operations.empty()) {
      fields_.Fault(map.line, fmt::format("{} has its operations twice", of));
      return;
    }
    const Value* list = map.Find("operations");
    if (list == nullptr || list->kind != Value::Kind::kList) {
      fields_.Fault(map.line, fmt::format("{} needs a list 'operations'", of));
      return;
    }
    used_.clear();
    for (const Value& item : list->items) {
      const std::optional<TaskOperation> operation = ReadOperation(item, files);
      if (!operation) {
        fields_.Fault(item.line,
                      fmt::format("an operation of {} must look like '0 r 0 0 1048576', '0 d 0' or "
                                  "'0 c', with a number below {} for the file, not '{}'",
                                  of, files.size(), item.text.substr(0, 80)));
        return;
      }
      if (!Check(into, *operation, item.line, of)) return;
      into.operations.push_back(*operation);
    }
  }

  static std::optional<TaskOperation> ReadOperation(const Value& item,
                                                    const std::vector<PathIndex>& files) {
    if (!item.is_scalar()) return std::nullopt;
    std::string_view text = item.text;
    const auto before = TakeNumber(text);
    if (!before || text.empty()) return std::nullopt;
    TaskOperation operation;
    operation.before = Duration{static_cast<int64_t>(*before)};
    const char kind = text.front();
    if (text == "c") {
      operation.kind = TaskOperation::Kind::kCompute;
      return operation;
    }
    if (std::string_view("rwd").find(kind) == std::string_view::npos ||
        !text.substr(1).starts_with(' '))
      return std::nullopt;
    operation.kind = kind == 'r'   ? TaskOperation::Kind::kRead
                     : kind == 'w' ? TaskOperation::Kind::kWrite
                                   : TaskOperation::Kind::kRemove;
    text.remove_prefix(2);
    std::array<uint64_t, 3> numbers{};
    const size_t count = operation.kind == TaskOperation::Kind::kRemove ? 1 : numbers.size();
    for (size_t i = 0; i < count; ++i) {
      const auto taken = TakeNumber(text);
      if (!taken) return std::nullopt;
      numbers[i] = *taken;
    }
    if (!text.empty() || numbers[0] >= files.size()) return std::nullopt;
    operation.file = files[numbers[0]];
    operation.offset = numbers[1];
    operation.size_bytes = numbers[2];
    return operation;
  }

  bool Check(const Task& task, const TaskOperation& operation, int line, const std::string& of) {
    if (operation.kind == TaskOperation::Kind::kCompute) return true;
    const auto has = [&](const std::vector<PathIndex>& list) {
      return std::find(list.begin(), list.end(), operation.file) != list.end();
    };
    const WorkflowFile& file = workflow_.at(operation.file);
    const bool reads = operation.kind == TaskOperation::Kind::kRead;
    const char* does = reads                                           ? "reads"
                       : operation.kind == TaskOperation::Kind::kWrite ? "writes"
                                                                       : "removes";
    const bool writes_it = has(task.outputs);
    if (!writes_it && !(reads && has(task.inputs))) {
      fields_.Fault(line, fmt::format("{} {} '{}', which is none of its {}", of, does, file.path,
                                      reads ? "inputs and outputs" : "outputs"));
      return false;
    }
    if (file.size_bytes && operation.offset + operation.size_bytes > *file.size_bytes) {
      fields_.Fault(line, fmt::format("{} {} bytes {} to {} of '{}', which has only {}", of, does,
                                      operation.offset, operation.offset + operation.size_bytes,
                                      file.path, *file.size_bytes));
      return false;
    }
    const bool is_first = used_.insert(operation.file).second;
    if (operation.kind == TaskOperation::Kind::kRemove && !is_first) {
      fields_.Fault(line, fmt::format("{} removes '{}' after other operations on it: a task can "
                                      "remove a file only before it uses it",
                                      of, file.path));
      return false;
    }
    return true;
  }

  Workflow& workflow_;
  Fields fields_;
  std::map<std::string, TaskIndex, std::less<>> tasks_;
  std::map<std::string, PathIndex, std::less<>> files_;
  std::set<PathIndex> used_;  // Files used by the operations so far of the current task.
};

}  // namespace

std::vector<std::string> AddOperations(std::string_view text, Workflow& workflow) {
  const auto root = ParseDocument(text);
  if (!root.ok()) return {MessageOf(root.status())};
  std::vector<std::string> faults;
  OperationsReader(workflow, faults).Read(*root);
  return faults;
}

}  // namespace mosa::predict
