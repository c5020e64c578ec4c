#include "tools/forecast/compare_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/model/draws.h"
#include "predictor/workflow/document.h"
#include "tools/forecast/replays.h"

namespace mosa::cli {
namespace {

using predict::Configuration;

// Unless it is said how many; each takes as long as its tasks.
constexpr size_t kDrawsUsual = 40, kDrawsLeast = 24, kTasksDrawn = 240'000;
// Links that were measured carry less than their shape says, but not that much less.
constexpr double kLinkShare = 0.25;
// What mounts without a shape are said to carry: that says nothing.
constexpr uint64_t kLinkKnownMax = 1'900'000'000;

std::string PlanOf(const RunFile& file) {
  return file.plan_path.empty() ? "no plan" : "the plan " + file.plan_path;
}

// The file of rules or the plan that the run was made with, if it is still there; empty: none.
std::string UsedBy(const RunFile& file, const std::string& what, const std::string& path,
                   std::vector<std::string>& notes) {
  if (path.empty() || access(path.c_str(), R_OK) == 0) return path;
  notes.push_back(fmt::format(
      "{0}: the file of the run's {1}, {2}, cannot be read, so the prediction leaves it "
      "out; give its path with --{1}",
      file.path, what, path));
  return "";
}

}  // namespace

Result<Configuration> DeploymentOf(const std::vector<RunHost>& hosts, predict::System system,
                                   const std::string& text) {
  Configuration base;
  base.hosts = static_cast<uint32_t>(hosts.size());
  base.slots = hosts.front().slots;
  base.memory_bytes = hosts.front().memory_bytes;
  base.system = system;
  MOSA_ASSIGN_OR_RETURN(Configuration all, predict::ParseConfiguration(text, base));
  for (uint32_t i = 1; i < std::min<size_t>(all.hosts, hosts.size()); ++i) {
    const RunHost& host = hosts[i];
    if (host.slots != base.slots && all.slots == base.slots && !all.unequal_hosts[i].slots)
      all.unequal_hosts[i].slots = host.slots;
    if (host.memory_bytes != base.memory_bytes && all.memory_bytes == base.memory_bytes &&
        !all.unequal_hosts[i].memory_bytes)
      all.unequal_hosts[i].memory_bytes = host.memory_bytes;
  }
  std::erase_if(all.unequal_hosts,
                [](const auto& host) { return host.second == predict::HostChange(); });
  return all;
}

Status CheckDraws(const PredictionWords& words) {
  if (words.draws == 0 || words.draws >= predict::kDrawsMin) return OkStatus();
  return InvalidArgumentError(fmt::format("--draws {}: {} and more, which a 90 % interval needs",
                                          words.draws, predict::kDrawsMin));
}

uint32_t DrawsOf(const PredictionWords& words, const predict::Workflow& workflow) {
  if (words.draws > 0) return words.draws;
  const size_t tasks = std::max<size_t>(1, workflow.tasks.size());
  return static_cast<uint32_t>(std::clamp(kTasksDrawn / tasks, kDrawsLeast, kDrawsUsual));
}

Status CheckWords(const PredictionWords& words) {
  MOSA_RETURN_IF_ERROR(CheckDraws(words));
  Configuration any;
  MOSA_RETURN_IF_ERROR(predict::SetFields(words.configuration, any));
  if (!words.platform.empty()) MOSA_RETURN_IF_ERROR(ReadPlatformFile(words.platform).status());
  if (!words.workload.empty()) MOSA_RETURN_IF_ERROR(ReadWorkload(words.workload).status());
  for (const std::string& path : {words.operations, words.rules, words.plan})
    if (!path.empty()) MOSA_RETURN_IF_ERROR(ReadText(path, predict::kDocumentBytesMax).status());
  return OkStatus();
}

Result<Asked> ReadAsked(const PredictionWords& words, const std::string& workload,
                        const Configuration& base) {
  Asked asked;
  MOSA_ASSIGN_OR_RETURN(asked.inputs, ReadFiles(words.platform, workload));
  if (!words.operations.empty())
    MOSA_RETURN_IF_ERROR(ReadOperations(words.operations, asked.inputs.workflow));
  if (!words.rules.empty()) MOSA_RETURN_IF_ERROR(ReadRules(words.rules, asked.inputs.workflow));
  MOSA_ASSIGN_OR_RETURN(asked.configuration,
                        predict::ParseConfiguration(words.configuration, base));
  if (!words.plan.empty() && asked.configuration.system == predict::System::kDss)
    return InvalidArgumentError(
        fmt::format("--plan {}: system=dss places no tasks; leave one of them out", words.plan));
  if (!words.plan.empty())
    MOSA_RETURN_IF_ERROR(
        FollowPlan(words.plan, HostNames(asked.configuration.hosts), asked.inputs.workflow));
  return asked;
}

uint32_t SlotsOf(const Asked& asked) {
  return predict::SlotsOf(asked.inputs.platform, asked.configuration);
}

std::vector<std::string> NamesOf(const std::vector<RunHost>& hosts) {
  std::vector<std::string> names;
  for (const RunHost& host : hosts) names.push_back(host.name);
  return names;
}

Result<std::vector<RunFile>> ReadRunFiles(const std::vector<std::string>& paths, CutFiles cut,
                                          std::vector<std::string>& notes) {
  std::vector<RunFile> files;
  Status first;
  for (const std::string& path : paths) {
    auto file = ReadRunFile(path, cut);
    if (!file.ok()) {
      if (first.ok()) first = file.status();
      notes.push_back(fmt::format("{}; left out", MessageOf(file.status())));
      continue;
    }
    const auto same = std::find_if(files.begin(), files.end(), [&](const RunFile& other) {
      return other.start == file->start;
    });
    if (same != files.end()) {
      notes.push_back(fmt::format("{} is the same run as {}; left out", path, same->path));
    } else if (!files.empty() && NamesOf(file->hosts) != NamesOf(files.front().hosts)) {
      notes.push_back(fmt::format("{} is of other hosts ({}) than {} ({}); left out", path,
                                  fmt::join(NamesOf(file->hosts), ", "), files.front().path,
                                  fmt::join(NamesOf(files.front().hosts), ", ")));
    } else {
      files.push_back(*std::move(file));
    }
  }
  if (files.empty()) return first;
  std::stable_sort(files.begin(), files.end(),
                   [](const RunFile& a, const RunFile& b) { return a.start < b.start; });
  return files;
}

Status CheckDeployment(const RunFile& file, const Asked& asked, std::vector<std::string>& notes) {
  const Configuration& configuration = asked.configuration;
  if (configuration.hosts != file.hosts.size())
    return InvalidArgumentError(
        fmt::format("the prediction is of {} hosts, {} was on {} ({}): say --config hosts={}",
                    configuration.hosts, file.path, file.hosts.size(),
                    fmt::join(NamesOf(file.hosts), ", "), file.hosts.size()));
  for (uint32_t i = 0; i < file.hosts.size(); ++i) {
    const RunHost& host = file.hosts[i];
    const uint32_t slots = predict::SlotsOf(asked.inputs.platform, configuration, i);
    if (host.slots == slots) continue;
    notes.push_back(
        fmt::format("{}: {} ran {} tasks at a time, but the prediction assumes {}: give "
                    "--config {}={}",
                    file.path, host.name, host.slots, slots,
                    i == 0 ? "slots" : fmt::format("h{}.slots", i + 1), host.slots));
    break;
  }
  if (file.system != configuration.system)
    notes.push_back(fmt::format("{}: the run's --system is not the prediction's", file.path));
  const auto known = static_cast<double>(asked.inputs.platform.host.out_bytes_per_second);
  for (const RunHost& host : file.hosts) {
    const auto link = static_cast<double>(host.link_bytes_per_second);
    if (link <= 0 || host.link_bytes_per_second > kLinkKnownMax ||
        std::abs(link - known) <= kLinkShare * std::max(link, known))
      continue;
    notes.push_back(fmt::format(
        "{}: the link of {} is said to carry {}/s, the platform's {}/s: was it measured on another "
        "deployment?",
        file.path, host.name, HumanBytes(static_cast<int64_t>(link)),
        HumanBytes(static_cast<int64_t>(known))));
    break;
  }
  return OkStatus();
}

Result<Compared> CompareRuns(const PredictionWords& words, const Asked& asked,
                             const DrawnRuns& drawn, const std::vector<RunFile>& files,
                             std::vector<std::string> notes) {
  std::vector<predict::SeenRun> runs;
  Status first;
  for (const RunFile& file : files) {
    auto measured = ReadMeasured(file, asked.inputs.workflow);
    if (!measured.ok()) {
      if (first.ok()) first = measured.status();
      notes.push_back(fmt::format("{}; left out", MessageOf(measured.status())));
      continue;
    }
    notes.insert(notes.end(), measured->notes.begin(), measured->notes.end());
    const auto& tasks = measured->seen.tasks;
    if (std::any_of(tasks.begin(), tasks.end(), [](const auto& task) { return task.ran; })) {
      runs.push_back(std::move(measured->seen));
      continue;
    }
    if (first.ok())
      first = FailedPreconditionError(fmt::format("nothing of {} can be compared: {}", file.path,
                                                  fmt::join(measured->notes, "; ")));
    notes.push_back(fmt::format("nothing of {} can be compared; left out", file.path));
  }
  if (runs.empty()) return first;
  const auto silent = std::count_if(
      runs.begin(), runs.end(), [](const predict::SeenRun& run) { return run.requests.empty(); });
  if (silent > 0)
    notes.push_back(fmt::format("{} of {} records do not say how long requests stayed in daemons",
                                silent, runs.size()));
  if (silent < static_cast<int64_t>(runs.size()))
    notes.push_back(
        "mounts' waits for the manager and for other nodes, and what nodes write and copy, are "
        "judged; others are shown alone: 'fuse.*', because the kernel merges and avoids requests "
        "unlike the model, times at the manager, because it answers many requests together, and "
        "nodes' 'read', because each side sees another end; classes that are not simulated are "
        "'not "
        "predicted'");
  if (drawn.failed > 0)
    notes.push_back(
        fmt::format("in {} draws the run would fail, for example: {}; they are left out",
                    drawn.failed, drawn.failure));
  Compared compared;
  compared.comparison = predict::Compare(asked.inputs.workflow, drawn.draws, runs, SlotsOf(asked));
  Findings findings = FindingsOf(asked, drawn.draws, runs);
  compared.comparison.detection = std::move(findings.detection);
  compared.comparison.diagnoses = std::move(findings.diagnoses);
  compared.comparison.finding = std::move(findings.finding);
  if (!findings.note.empty()) notes.push_back(std::move(findings.note));
  if (!compared.comparison.machine_busy.empty()) notes.push_back(compared.comparison.machine_busy);
  if (!compared.comparison.other_chunks.empty()) notes.push_back(compared.comparison.other_chunks);
  compared.report = {asked.inputs.workflow.name, words.platform,
                     predict::ToText(asked.configuration), drawn.failed, std::move(notes)};
  return compared;
}

Result<FinishedRuns> CompareFinished(const PredictionWords& words,
                                     const std::vector<RunFile>& files,
                                     std::vector<std::string> notes) {
  const RunFile& latest = files.back();
  if (words.workload.empty() && latest.workflow.path.empty())
    return InvalidArgumentError(
        fmt::format("{} does not say which workflow was run: give it as --workload", latest.path));
  FinishedRuns finished;
  PredictionWords as_run = words;
  if (words.rules.empty() && words.plan.empty()) {
    as_run.rules = UsedBy(latest, "rules", latest.rules_path, notes);
    as_run.plan = UsedBy(latest, "plan", latest.plan_path, notes);
  }
  if (!as_run.plan.empty()) notes.push_back(fmt::format("predicted with the plan {}", as_run.plan));
  for (const RunFile& file : files)
    if (file.plan_path != latest.plan_path)
      notes.push_back(fmt::format("{} followed {}, {} followed {}: compare them apart", file.path,
                                  PlanOf(file), latest.path, PlanOf(latest)));
  MOSA_ASSIGN_OR_RETURN(const Configuration deployment,
                        DeploymentOf(latest.hosts, latest.system, words.configuration));
  as_run.configuration.clear();
  MOSA_ASSIGN_OR_RETURN(
      finished.asked,
      ReadAsked(as_run, words.workload.empty() ? latest.workflow.path : words.workload,
                deployment));
  Asked& asked = finished.asked;
  MOSA_RETURN_IF_ERROR(CheckDeployment(latest, asked, notes));
  size_t filled = 0;
  for (auto file = files.rbegin(); file != files.rend(); ++file)
    filled += FillSizes(*file, asked.inputs.workflow);
  if (filled > 0)
    notes.push_back(fmt::format(
        "{} files have no size in the workload: they get their size in the last run that has one",
        filled));
  MOSA_ASSIGN_OR_RETURN(finished.drawn,
                        DrawRuns(asked.inputs, asked.configuration,
                                 DrawsOf(words, asked.inputs.workflow), NamesOf(latest.hosts)));
  MOSA_ASSIGN_OR_RETURN(finished.compared,
                        CompareRuns(words, asked, finished.drawn, files, std::move(notes)));
  return finished;
}

}  // namespace mosa::cli
