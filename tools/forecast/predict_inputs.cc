#include "tools/forecast/predict_inputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "common/base/text_file.h"
#include "common/base/unique_fd.h"
#include "predictor/advise/rules.h"
#include "predictor/model/draws.h"
#include "predictor/model/platform_json.h"
#include "predictor/plan/plan.h"
#include "predictor/workflow/operations.h"
#include "predictor/workflow/read.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kFiguresBytesMax = 1 << 20;
constexpr size_t kFaultsShownMax = 20;
constexpr std::string_view kSynthetic = "synthetic:";

// Adds the file's path to the error.
template <typename T>
Result<T> Of(const std::string& path, Result<T> read) {
  if (read.ok()) return read;
  return InvalidArgumentError(fmt::format("{}: {}", path, MessageOf(read.status())));
}

// Joins the faults into one error. OK if there are none.
Status FaultsOf(const std::string& path, const std::vector<std::string>& faults) {
  if (faults.empty()) return OkStatus();
  std::string all;
  for (size_t i = 0; i < std::min(faults.size(), kFaultsShownMax); ++i)
    all += fmt::format("{}{}: {}", i == 0 ? "" : "\nmosa: ", path, faults[i]);
  if (faults.size() > kFaultsShownMax)
    all += fmt::format("\nmosa: {}: and {} more", path, faults.size() - kFaultsShownMax);
  return InvalidArgumentError(all);
}

}  // namespace

Result<predict::Platform> ReadPlatformFile(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kFiguresBytesMax));
  return Of(path, predict::ReadPlatform(text));
}

Result<predict::Workflow> ReadWorkload(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  predict::BuildResult read = predict::ReadWorkflow(text, fs::path(path).stem().string());
  MOSA_RETURN_IF_ERROR(FaultsOf(path, read.faults));
  return std::move(read.workflow);
}

Status ReadOperations(const std::string& path, predict::Workflow& workflow) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  return FaultsOf(path, predict::AddOperations(text, workflow));
}

Status ReadRules(const std::string& path, predict::Workflow& workflow) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  MOSA_ASSIGN_OR_RETURN(const auto rules, Of(path, predict::ReadRules(text)));
  MOSA_ASSIGN_OR_RETURN(const auto idle, Of(path, predict::ApplyRules(rules, workflow)));
  for (size_t i = 0; i < std::min(idle.size(), kFaultsShownMax); ++i)
    fmt::print(stderr, "mosa: {}: rule '{}' matches no output of '{}'\n", path, idle[i],
               workflow.name);
  return OkStatus();
}

void NoteTasksWithoutRuntime(std::string_view command, const predict::Workflow& workflow) {
  const auto count = std::ranges::count_if(workflow.tasks, [](const predict::Task& task) {
    return !task.expected && task.operations.empty();
  });
  if (count == 0) return;
  fmt::print(stderr,
             "mosa {}: {} of {} tasks have no runtime: only their data transfers are predicted\n",
             command, count, workflow.tasks.size());
}

std::vector<std::string> HostNames(uint32_t hosts) {
  std::vector<std::string> names;
  for (uint32_t i = 1; i <= hosts; ++i) names.push_back(fmt::format("h{}", i));
  return names;
}

Status FollowPlan(const std::string& path, const std::vector<std::string>& hosts,
                  predict::Workflow& workflow) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  MOSA_ASSIGN_OR_RETURN(const predict::Plan plan, Of(path, predict::ReadPlan(text)));
  const auto unused = predict::ApplyPlan(plan, hosts, workflow);
  if (!unused.ok())
    return Status(unused.status().code(),
                  fmt::format("{}: the plan {}", path, MessageOf(unused.status())));
  for (size_t i = 0; i < std::min(unused->size(), kFaultsShownMax); ++i)
    fmt::print(stderr, "mosa: {}: the plan has hints for '{}', which no task of '{}' writes\n",
               path, (*unused)[i], workflow.name);
  if (plan.tasks.empty())
    fmt::print(stderr, "mosa: {}: the plan is empty: tasks go where their data is\n", path);
  return OkStatus();
}

Result<predict::PowerProfile> ReadPowerFile(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kFiguresBytesMax));
  return Of(path, predict::ReadPower(text));
}

Result<Inputs> ReadInputs(const std::string& platform, const std::string& workload,
                          const std::string& power, uint32_t frequency_mhz) {
  Inputs inputs;
  MOSA_ASSIGN_OR_RETURN(inputs.platform, ReadPlatformFile(platform));
  if (!power.empty()) {
    MOSA_ASSIGN_OR_RETURN(const predict::PowerProfile profile, ReadPowerFile(power));
    MOSA_ASSIGN_OR_RETURN(inputs.power, Of(power, predict::LevelAt(profile, frequency_mhz)));
    inputs.platform = predict::AtLevel(inputs.platform, *inputs.power);
  }
  if (workload.starts_with(kSynthetic)) {
    MOSA_ASSIGN_OR_RETURN(inputs.synthetic,
                          predict::ParseSynthetic(workload.substr(kSynthetic.size())));
  } else {
    MOSA_ASSIGN_OR_RETURN(inputs.workflow, ReadWorkload(workload));
  }
  return inputs;
}

Result<Inputs> ReadFiles(const std::string& platform, const std::string& workload) {
  MOSA_ASSIGN_OR_RETURN(Inputs inputs, ReadInputs(platform, workload, "", 0));
  if (inputs.synthetic)
    return InvalidArgumentError(fmt::format(
        "--workload {}: only 'mosa predict' takes a synthetic workflow: give a workflow file",
        workload));
  return inputs;
}

void ForHosts(uint32_t hosts, Inputs& inputs) {
  if (!inputs.synthetic) return;
  if (inputs.synthetic->width == 0)
    inputs.synthetic->width = std::min(hosts, predict::kSyntheticWidthMax);
  inputs.parts = predict::MakeSynthetic(*inputs.synthetic);
  for (const predict::SyntheticPart& part : inputs.parts)
    if (part.phase == predict::Phase::kStages) inputs.workflow = part.workflow;
}

Result<predict::Prediction> PredictInputs(const Inputs& inputs, const predict::Platform& platform,
                                          const predict::Configuration& configuration,
                                          const predict::PredictOptions& options) {
  if (!inputs.synthetic) return predict::Predict(inputs.workflow, platform, configuration, options);
  return predict::PredictStages(inputs.parts, platform, configuration, options);
}

Status CheckRepeats(uint32_t repeats) {
  if (repeats == 0 || repeats >= predict::kDrawsMin) return OkStatus();
  return InvalidArgumentError(fmt::format(
      "--repeats {}: 0, or {} and more, which a 90 % interval needs", repeats, predict::kDrawsMin));
}

double JoulesOf(const predict::Prediction& prediction, const predict::PowerLevel& level) {
  // A power level describes all cores of a host together, so hosts are grouped by their number of
  // cores.
  struct Hosts {
    uint32_t count = 0;
    predict::HostUse use;
  };
  std::map<uint32_t, Hosts> by_cores;
  for (const predict::PredictedMachine& machine : prediction.machines) {
    Hosts& hosts = by_cores[machine.cores];
    ++hosts.count;
    hosts.use += machine.use;
  }
  double joules = 0;
  for (const auto& [cores, hosts] : by_cores)
    joules += predict::EnergyOf(level, cores, hosts.count, prediction.turnaround, hosts.use);
  return joules;
}

}  // namespace mosa::cli
