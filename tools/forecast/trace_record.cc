#include "tools/forecast/trace_record.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/text_file.h"
#include "predictor/workflow/document.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr int kRecordVersion = 1;

// The files of one list, made known to the workload.
std::vector<uint32_t> FilesOf(const json& list, std::map<std::string, uint32_t>& known,
                              predict::Workload& workload) {
  std::vector<uint32_t> files;
  for (const json& object : list) {
    const std::string path = object.at("path");
    const auto [place, fresh] =
        known.try_emplace(path, static_cast<uint32_t>(workload.files.size()));
    if (fresh) workload.files.push_back({path, 0});
    workload.files[place->second].size_bytes =
        object.value("size_bytes", workload.files[place->second].size_bytes);
    files.push_back(place->second);
  }
  return files;
}

}  // namespace

Result<RecordedRun> ReadRecordedRun(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  RecordedRun run;
  try {
    const json root = json::parse(text);
    if (root.at("version") != kRecordVersion)
      return InvalidArgumentError(fmt::format("{} is a record of version {}, only {} is read", path,
                                              root.at("version").dump(), kRecordVersion));
    run.workload.name = root.at("workflow").value("name", "");
    std::map<std::string, uint32_t> files;
    for (const json& object : root.at("tasks")) {
      predict::WorkloadTask task;
      task.id = object.at("id");
      if (object.at("state") != "done" || object.at("attempts").empty())
        return InvalidArgumentError(
            fmt::format("{}: task '{}' is '{}': only a run that is done is a workload", path,
                        task.id, object.value("state", "")));
      task.stage = object.at("stage");
      task.command = object.at("command");
      if (task.command.empty())
        return InvalidArgumentError(
            fmt::format("{}: task '{}' has no command, not even a program", path, task.id));
      task.host = object.value("host", "");
      const double start = std::clamp(object.value("start", 0.0), 0.0, 9e9);
      task.start = Time{std::llround(start * 1e9)};
      const double seconds = object.value("end", 0.0) - object.value("start", 0.0);
      task.runtime = Duration{std::llround(std::clamp(seconds, 0.0, 1e9) * 1e9)};
      task.inputs = FilesOf(object.at("inputs"), files, run.workload);
      task.outputs = FilesOf(object.at("outputs"), files, run.workload);
      run.tasks.push_back({task.id, task.runtime, task.stage, task.command});
      run.workload.tasks.push_back(std::move(task));
    }
  } catch (const json::exception& error) {
    return InvalidArgumentError(fmt::format("{} is no record of a run: {}", path, error.what()));
  }
  return run;
}

}  // namespace mosa::cli
