// How a workload is written: WfFormat 1.5, and the side file of its operations.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "predictor/trace/workload.h"

namespace mosa::predict {
namespace {

using nlohmann::ordered_json;

std::string Line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

double SecondsOf(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

// Who has to wait for whom, by files and otherwise, as ids.
struct Relations {
  std::vector<std::set<uint32_t>> parents;
  std::vector<std::set<uint32_t>> children;
};

Relations RelationsOf(const Workload& workload) {
  std::map<uint32_t, uint32_t> producers;
  for (uint32_t i = 0; i < workload.tasks.size(); ++i)
    for (const uint32_t output : workload.tasks[i].outputs) producers[output] = i;
  Relations relations;
  relations.parents.resize(workload.tasks.size());
  relations.children.resize(workload.tasks.size());
  const auto relate = [&](uint32_t parent, uint32_t child) {
    relations.parents[child].insert(parent);
    relations.children[parent].insert(child);
  };
  for (uint32_t i = 0; i < workload.tasks.size(); ++i) {
    for (const uint32_t before : workload.tasks[i].after) relate(before, i);
    for (const uint32_t input : workload.tasks[i].inputs)
      if (const auto producer = producers.find(input); producer != producers.end())
        relate(producer->second, i);
  }
  return relations;
}

ordered_json Ids(const Workload& workload, const std::set<uint32_t>& tasks) {
  ordered_json ids = ordered_json::array();
  for (const uint32_t task : tasks) ids.push_back(workload.tasks[task].id);
  return ids;
}

ordered_json Paths(const Workload& workload, const std::vector<uint32_t>& files) {
  ordered_json paths = ordered_json::array();
  for (const uint32_t file : files) paths.push_back(workload.files[file].path);
  return paths;
}

void AppendList(std::string& text, std::string_view key, const std::vector<std::string>& lines) {
  text += fmt::format("\"{}\": [\n", key);
  for (size_t i = 0; i < lines.size(); ++i)
    text += lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
  text += ']';
}

}  // namespace

std::string ToWfFormat(const Workload& workload) {
  const Relations relations = RelationsOf(workload);
  std::vector<std::string> tasks;
  std::vector<std::string> runs;
  std::set<std::string> hosts;
  for (uint32_t i = 0; i < workload.tasks.size(); ++i) {
    const WorkloadTask& task = workload.tasks[i];
    tasks.push_back(Line({{"name", task.stage},
                          {"id", task.id},
                          {"parents", Ids(workload, relations.parents[i])},
                          {"children", Ids(workload, relations.children[i])},
                          {"inputFiles", Paths(workload, task.inputs)},
                          {"outputFiles", Paths(workload, task.outputs)}}));
    ordered_json words = ordered_json::array();
    for (size_t word = 1; word < task.command.size(); ++word) words.push_back(task.command[word]);
    ordered_json run = {{"id", task.id},
                        {"runtimeInSeconds", SecondsOf(task.runtime)},
                        {"command", {{"program", task.command.front()}, {"arguments", words}}}};
    if (!task.host.empty()) {
      run["machines"] = ordered_json::array({task.host});
      hosts.insert(task.host);
    }
    runs.push_back(Line(run));
  }
  std::vector<std::string> files;
  for (const WorkloadFile& file : workload.files)
    files.push_back(Line({{"id", file.path}, {"sizeInBytes", file.size_bytes}}));
  std::vector<std::string> machines;
  for (const std::string& host : hosts) machines.push_back(Line({{"nodeName", host}}));
  std::string text =
      fmt::format("{{\n\"name\": {},\n\"description\": {},\n\"schemaVersion\": \"1.5\",\n",
                  Line(workload.name), Line(workload.description));
  text += "\"workflow\": {\n\"specification\": {\n";
  AppendList(text, "tasks", tasks);
  text += ",\n";
  AppendList(text, "files", files);
  text += "\n},\n\"execution\": {\n";
  AppendList(text, "tasks", runs);
  text += ",\n";
  AppendList(text, "machines", machines);
  return text + "\n}\n}\n}\n";
}

std::string ToOperationsText(const Workload& workload) {
  std::string text = fmt::format("{{\n\"mosa_operations\": 1,\n\"workload\": {},\n\"tasks\": [\n",
                                 Line(workload.name));
  bool is_first = true;
  for (const WorkloadTask& task : workload.tasks) {
    if (task.operations.empty()) continue;
    // Files by their number in the task's own list.
    std::map<uint32_t, size_t> numbers;
    ordered_json paths = ordered_json::array();
    std::string operations;
    for (const WorkloadOperation& operation : task.operations) {
      if (!operations.empty()) operations += ",\n";
      if (operation.kind == WorkloadOperation::Kind::kCompute) {
        fmt::format_to(std::back_inserter(operations), "\"{} c\"", operation.before.ns);
        continue;
      }
      const auto [number, fresh] = numbers.try_emplace(operation.file, numbers.size());
      if (fresh) paths.push_back(workload.files[operation.file].path);
      fmt::format_to(std::back_inserter(operations), "\"{} {} {} {} {}\"", operation.before.ns,
                     operation.kind == WorkloadOperation::Kind::kRead ? 'r' : 'w', number->second,
                     operation.offset, operation.size_bytes);
    }
    text += fmt::format("{}{{\"id\": {}, \"files\": {}, \"operations\": [\n{}\n]}}",
                        is_first ? "" : ",\n", Line(task.id), Line(paths), operations);
    is_first = false;
  }
  return text + "\n]\n}\n";
}

}  // namespace mosa::predict
