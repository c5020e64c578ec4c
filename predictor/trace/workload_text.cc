// Writes a workload as WfFormat 1.5 or 1.6, and the side file of its operations.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

// Which task waits for which, through files or explicit order; ids are indices.
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

// Counts tasks by the length of the longest path that leads to them: 0, 1, and so on.
std::vector<size_t> WidthsOf(const Relations& relations) {
  std::vector<size_t> left;
  std::vector<uint32_t> level;
  for (uint32_t i = 0; i < relations.parents.size(); ++i) {
    left.push_back(relations.parents[i].size());
    if (left.back() == 0) level.push_back(i);
  }
  std::vector<size_t> widths;
  while (!level.empty()) {
    widths.push_back(level.size());
    std::vector<uint32_t> next;
    for (const uint32_t task : level)
      for (const uint32_t child : relations.children[task])
        if (--left[child] == 0) next.push_back(child);
    level = std::move(next);
  }
  return widths;
}

// ISO 8601, UTC.
std::string DateText(Time at) {
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds{at.ns}};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss hour{std::chrono::floor<std::chrono::milliseconds>(time - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     hour.hours().count(), hour.minutes().count(), hour.seconds().count(),
                     hour.subseconds().count());
}

// Covers the tasks whose start time is known.
struct Span {
  Time start;
  double seconds = 0;
};

Span SpanOf(const Workload& workload) {
  Span span;
  for (const WorkloadTask& task : workload.tasks)
    if (task.start.ns > 0 && (span.start.ns == 0 || task.start < span.start))
      span.start = task.start;
  for (const WorkloadTask& task : workload.tasks)
    if (task.start.ns > 0)
      span.seconds =
          std::max(span.seconds, SecondsOf(task.start - span.start) + SecondsOf(task.runtime));
  return span;
}

uint64_t BytesOf(const WorkloadTask& task, WorkloadOperation::Kind kind) {
  uint64_t bytes = 0;
  for (const WorkloadOperation& operation : task.operations)
    if (operation.kind == kind) bytes += operation.size_bytes;
  return bytes;
}

// WfFormat cannot hold an empty argument, and takes one that begins with '-' and contains a blank
// for an option and its value. Such commands are passed to a shell.
ordered_json CommandOf(const WorkloadTask& task) {
  const bool is_plain =
      std::none_of(task.command.begin() + 1, task.command.end(), [](const std::string& word) {
        return word.empty() || (word.front() == '-' && word.find(' ') != word.npos);
      });
  if (is_plain)
    return {{"program", task.command.front()},
            {"arguments", std::vector(task.command.begin() + 1, task.command.end())}};
  std::string text;
  for (const std::string& word : task.command) {
    text += text.empty() ? "'" : " '";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += '\'';
  }
  return {{"program", "/bin/sh"}, {"arguments", {"-c", text}}};
}

ordered_json ExecutionOf(const WorkloadTask& task) {
  ordered_json run = {{"id", task.id}, {"runtimeInSeconds", SecondsOf(task.runtime)}};
  if (task.cores > 1) run["coreCount"] = task.cores;
  if (task.start.ns > 0) run["executedAt"] = DateText(task.start);
  run["command"] = CommandOf(task);
  if (!task.operations.empty()) {
    run["readBytes"] = BytesOf(task, WorkloadOperation::Kind::kRead);
    run["writtenBytes"] = BytesOf(task, WorkloadOperation::Kind::kWrite);
  }
  if (!task.host.empty()) run["machines"] = ordered_json::array({task.host});
  return run;
}

// Redundant counts that only 1.6 has.
ordered_json SpecificationMetrics(const Workload& workload, const Relations& relations) {
  uint64_t bytes = 0;
  for (const WorkloadFile& file : workload.files) bytes += file.size_bytes;
  ordered_json metrics = {{"numberOfTasks", workload.tasks.size()},
                          {"numberOfFiles", workload.files.size()},
                          {"sumOfFileSizesInBytes", bytes}};
  const std::vector<size_t> widths = WidthsOf(relations);
  metrics["numberOfLevels"] = widths.size();
  if (!widths.empty()) {
    metrics["minimumWidth"] = *std::min_element(widths.begin(), widths.end());
    metrics["maximumWidth"] = *std::max_element(widths.begin(), widths.end());
  }
  return metrics;
}

ordered_json ExecutionMetrics(const Workload& workload) {
  double seconds = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  for (const WorkloadTask& task : workload.tasks) {
    seconds += SecondsOf(task.runtime);
    read_bytes += BytesOf(task, WorkloadOperation::Kind::kRead);
    written_bytes += BytesOf(task, WorkloadOperation::Kind::kWrite);
  }
  return {{"sumTaskRuntimesInSeconds", seconds},
          {"totalNumBytesRead", read_bytes},
          {"totalNumBytesWritten", written_bytes}};
}

bool HasForeign(const std::string& id, std::string_view allowed) {
  return std::any_of(id.begin(), id.end(), [allowed](char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             allowed.find(c) != allowed.npos);
  });
}

}  // namespace

std::string ToWfFormat(const Workload& workload, WfFormat version) {
  const bool has_metrics = version == WfFormat::k1_6;
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
    runs.push_back(Line(ExecutionOf(task)));
    if (!task.host.empty()) hosts.insert(task.host);
  }
  std::vector<std::string> files;
  for (const WorkloadFile& file : workload.files)
    files.push_back(Line({{"id", file.path}, {"sizeInBytes", file.size_bytes}}));
  std::vector<std::string> machines;
  for (const std::string& host : hosts) machines.push_back(Line({{"nodeName", host}}));
  std::string text = fmt::format("{{\n\"name\": {},\n", Line(workload.name));
  if (!workload.description.empty())
    text += fmt::format("\"description\": {},\n", Line(workload.description));
  text += fmt::format("\"schemaVersion\": \"{}\",\n", NameOf(version));
  text += "\"workflow\": {\n\"specification\": {\n";
  AppendList(text, "tasks", tasks);
  text += ",\n";
  AppendList(text, "files", files);
  if (has_metrics)
    text += fmt::format(",\n\"metrics\": {}", Line(SpecificationMetrics(workload, relations)));
  const Span span = SpanOf(workload);
  text +=
      fmt::format("\n}},\n\"execution\": {{\n\"makespanInSeconds\": {},\n\"executedAt\": \"{}\",\n",
                  Line(span.seconds), DateText(span.start));
  AppendList(text, "tasks", runs);
  if (!machines.empty()) {
    text += ",\n";
    AppendList(text, "machines", machines);
  }
  if (has_metrics) text += fmt::format(",\n\"metrics\": {}", Line(ExecutionMetrics(workload)));
  return text + "\n}\n}\n}\n";
}

std::string WfFormatFault(const Workload& workload, WfFormat version) {
  const std::string_view in_tasks = version == WfFormat::k1_5 ? "-_.#" : "-_.#:/";
  constexpr std::string_view kInFiles = "-_.#:/";
  const auto fault = [version](std::string_view kind, const std::string& id,
                               std::string_view others) {
    return fmt::format(
        "WfFormat {} allows only letters, digits and {} in ids: {} '{}' has other characters",
        NameOf(version), others, kind, id);
  };
  for (const WorkloadTask& task : workload.tasks)
    if (HasForeign(task.id, in_tasks)) return fault("task", task.id, in_tasks);
  for (const WorkloadFile& file : workload.files)
    if (HasForeign(file.path, kInFiles)) return fault("file", file.path, kInFiles);
  return {};
}

std::string ToOperationsText(const Workload& workload) {
  std::string text = fmt::format("{{\n\"mosa_operations\": 1,\n\"workload\": {},\n\"tasks\": [\n",
                                 Line(workload.name));
  bool is_first = true;
  for (const WorkloadTask& task : workload.tasks) {
    if (task.operations.empty()) continue;
    // Files are numbered within the task's own list.
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
      if (operation.kind == WorkloadOperation::Kind::kRemove) {
        fmt::format_to(std::back_inserter(operations), "\"{} d {}\"", operation.before.ns,
                       number->second);
        continue;
      }
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
