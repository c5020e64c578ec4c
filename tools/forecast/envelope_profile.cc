#include "tools/forecast/envelope_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/units.h"
#include "tools/console/output.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Sharing;
using predict::StageProfile;

uint64_t CountOf(const std::map<Sharing, uint64_t>& counts, Sharing sharing) {
  const auto found = counts.find(sharing);
  return found == counts.end() ? 0 : found->second;
}

json BySharing(const std::map<Sharing, uint64_t>& counts) {
  return {{"1-to-1", CountOf(counts, Sharing::kOneToOne)},
          {"N-to-1", CountOf(counts, Sharing::kAllToOne)},
          {"few-to-1", CountOf(counts, Sharing::kFewToOne)}};
}

json ToJson(const StageProfile& stage) {
  json transfers = json::array();
  for (const auto& [key, count] : stage.transfers)
    transfers.push_back(
        {{"operation", NameOf(key.first)}, {"size_bytes", key.second}, {"files", count}});
  return {{"name", stage.name},
          {"tasks", stage.tasks},
          {"calls_known", stage.calls_known},
          {"files_read", stage.files_read},
          {"files_written", stage.files_written},
          {"bytes_read", stage.bytes_read},
          {"bytes_written", stage.bytes_written},
          {"open_spikes", stage.open_spikes},
          {"open_concurrency_max", stage.open_concurrency_max},
          {"create_spikes", stage.create_spikes},
          {"create_concurrency_max", stage.create_concurrency_max},
          {"read_spikes", BySharing(stage.read_spikes)},
          {"files_read_by_sharing", BySharing(stage.files_by_sharing)},
          {"trace_length", stage.trace_length},
          {"read_concurrency_max", stage.read_concurrency_max},
          {"write_concurrency_max", stage.write_concurrency_max},
          {"bytes_read_per_call_max", stage.bytes_read_per_call_max},
          {"bytes_written_per_call_max", stage.bytes_written_per_call_max},
          {"transfers", std::move(transfers)}};
}

std::string Bytes(uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }
std::string Number(uint64_t number) { return fmt::format("{}", number); }

// Table 1.
void PrintFiles(const std::vector<StageProfile>& stages) {
  Table table({"STAGE", "TASKS", "FILES READ", "1-TO-1", "N-TO-1", "FEW-TO-1", "FILES WRITTEN",
               "READ", "WRITTEN"});
  for (const StageProfile& stage : stages)
    table.Add({stage.name, Number(stage.tasks), Number(stage.files_read),
               Number(CountOf(stage.files_by_sharing, Sharing::kOneToOne)),
               Number(CountOf(stage.files_by_sharing, Sharing::kAllToOne)),
               Number(CountOf(stage.files_by_sharing, Sharing::kFewToOne)),
               Number(stage.files_written), Bytes(stage.bytes_read), Bytes(stage.bytes_written)});
  table.Print();
}

// Table 2.
void PrintMetadata(const std::vector<StageProfile>& stages) {
  Table table({"STAGE", "OPEN SPIKES", "MOST OPENS", "CREATE SPIKES", "MOST CREATES",
               "1-TO-1 SPIKES", "N-TO-1", "FEW-TO-1"});
  for (const StageProfile& stage : stages)
    table.Add({stage.name, Number(stage.open_spikes), Number(stage.open_concurrency_max),
               Number(stage.create_spikes), Number(stage.create_concurrency_max),
               Number(CountOf(stage.read_spikes, Sharing::kOneToOne)),
               Number(CountOf(stage.read_spikes, Sharing::kAllToOne)),
               Number(CountOf(stage.read_spikes, Sharing::kFewToOne))});
  table.Print();
}

// Table 3.
void PrintCalls(const std::vector<StageProfile>& stages) {
  Table table(
      {"STAGE", "TRACE LENGTH", "MOST READS", "MOST WRITES", "READ PER CALL", "WRITTEN PER CALL"});
  for (const StageProfile& stage : stages)
    table.Add({stage.name, Number(stage.trace_length), Number(stage.read_concurrency_max),
               Number(stage.write_concurrency_max), Bytes(stage.bytes_read_per_call_max),
               Bytes(stage.bytes_written_per_call_max)});
  table.Print();
}

// Keeps only the requested stages.
Status KeepStages(const ApplicationFiles& files, std::vector<StageProfile>& stages) {
  if (files.stages.empty()) return OkStatus();
  const auto is_named = [](const std::string& name) {
    return [&name](const StageProfile& stage) { return stage.name == name; };
  };
  std::string names;
  for (const StageProfile& stage : stages) names += (names.empty() ? "" : ", ") + stage.name;
  std::vector<StageProfile> kept;
  for (const std::string& name : files.stages) {
    const auto found = std::find_if(stages.begin(), stages.end(), is_named(name));
    if (found == stages.end())
      return NotFoundError(
          fmt::format("{} has no stage '{}': it has {}", files.workload, name, names));
    if (std::none_of(kept.begin(), kept.end(), is_named(name))) kept.push_back(*found);
  }
  stages = std::move(kept);
  return OkStatus();
}

}  // namespace

Result<Application> ReadApplication(const ApplicationFiles& files) {
  Application application;
  MOSA_ASSIGN_OR_RETURN(application.workflow, ReadWorkload(files.workload));
  if (!files.operations.empty())
    MOSA_RETURN_IF_ERROR(ReadOperations(files.operations, application.workflow));
  auto stages = predict::ProfileOf(application.workflow);
  if (!stages.ok())
    return Status(stages.status().code(),
                  fmt::format("{}: {}", files.workload, MessageOf(stages.status())));
  application.stages = *std::move(stages);
  MOSA_RETURN_IF_ERROR(KeepStages(files, application.stages));
  return application;
}

Status ShowProfile(const ApplicationFiles& files, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const Application application, ReadApplication(files));
  bool known = true;
  for (const StageProfile& stage : application.stages) known = known && stage.calls_known;
  if (as_json) {
    json stages = json::array();
    for (const StageProfile& stage : application.stages) stages.push_back(ToJson(stage));
    PrintJson({{"workflow", application.workflow.name}, {"stages", std::move(stages)}});
  } else {
    PrintFiles(application.stages);
    fmt::print("\n");
    PrintMetadata(application.stages);
    fmt::print("\n");
    PrintCalls(application.stages);
  }
  if (!known)
    fmt::print(stderr,
               "mosa envelope profile: some tasks have no operations, so each of their files "
               "counts as one call: give --operations with a file from 'mosa trace workload'\n");
  return OkStatus();
}

}  // namespace mosa::cli
