// `mosa run`: what is asked for, checked whole before the first effect; then the engine.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/read.h"
#include "tools/cluster/process.h"
#include "tools/mosa/cluster.h"
#include "tools/mosa/command.h"
#include "tools/mosa/predict_inputs.h"
#include "tools/mosa/residence.h"
#include "tools/mosa/run_begin.h"
#include "tools/mosa/run_engine.h"
#include "tools/mosa/run_load.h"
#include "tools/mosa/run_mount.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::PathIndex;
using predict::Task;
using predict::TaskIndex;
using predict::Workflow;

constexpr size_t kFaultsShownMax = 20;

struct Options {
  std::string workflow;
  ClusterChoice cluster;
  HostsRequest hosts;
  EngineOptions engine;
  std::string system = "wass";
  std::string rules;
  bool resume = false;
  bool dry_run = false;
};

Result<Workflow> ParseWorkflow(const std::string& path, const std::string& text,
                               const std::vector<RunHost>& hosts) {
  std::vector<std::string> directories;
  for (const RunHost& host : hosts) directories.push_back(host.directory);
  predict::BuildResult read =
      predict::ReadWorkflow(text, fs::path(path).stem().string(), std::move(directories));
  if (read.faults.empty()) return std::move(read.workflow);
  const size_t shown = std::min(read.faults.size(), kFaultsShownMax);
  std::string all = fmt::format("{}: {}", path, read.faults[0]);
  for (size_t i = 1; i < shown; ++i) all += fmt::format("\nmosa: {}: {}", path, read.faults[i]);
  if (shown < read.faults.size())
    all += fmt::format("\nmosa: {}: and {} more", path, read.faults.size() - shown);
  return InvalidArgumentError(all);
}

Status ShowPlan(const Workflow& workflow, const RunRecord& record, const CommandLine& line) {
  const predict::PatternOptions options{.hosts = static_cast<uint32_t>(record.hosts.size())};
  Table table({"FILE", "WRITTEN BY", "READERS", "HINTS", "WHY"});
  nlohmann::json files = nlohmann::json::array();
  for (const predict::FileHints& plan : predict::PlanHints(workflow, options)) {
    const predict::WorkflowFile& file = workflow.at(plan.file);
    std::string hints;
    for (const auto& [name, value] : plan.hints)
      hints += fmt::format("{}{}={}", hints.empty() ? "" : " ", name, value);
    table.Add({file.path, workflow.at(*file.producer).id, fmt::format("{}", file.consumers.size()),
               hints.empty() ? "-" : hints, plan.reason});
    files.push_back({{"producer", workflow.at(*file.producer).id},
                     {"readers", file.consumers.size()},
                     {"hints", plan.hints},
                     {"reason", plan.reason}});
    PutBytes(files.back(), "path", file.path);
  }
  if (line.json) {
    PrintJson({{"workflow", workflow.name}, {"tasks", workflow.tasks.size()}, {"files", files}});
  } else {
    table.Print();
  }
  fmt::print(stderr, "{} tasks in {} levels on {} hosts. Nothing was run (--dry-run).\n",
             workflow.tasks.size(),
             workflow.tasks.empty() ? 0 : workflow.at(workflow.order.back()).level + 1,
             record.hosts.size());
  return OkStatus();
}

// One line per stage, in the order of their first task.
void ShowStages(const Workflow& workflow, const RunRecord& record) {
  struct Sum {
    size_t tasks = 0, attempts = 0;
    Time begin, end;
    uint64_t local = 0, remote = 0;
  };
  std::map<std::string, Sum> sums;
  std::vector<std::string> order;
  for (const TaskIndex index : workflow.order) {
    const TaskRecord& task = record.tasks[index.value];
    if (task.attempts.empty()) continue;
    const std::string& stage = workflow.at(index).stage;
    if (!sums.contains(stage)) order.push_back(stage);
    Sum& sum = sums[stage];
    const Attempt& last = task.attempts.back();
    if (sum.tasks++ == 0 || last.start < sum.begin) sum.begin = last.start;
    sum.end = std::max(sum.end, last.end);
    sum.attempts += task.attempts.size();
    sum.local += last.local_bytes;
    sum.remote += last.remote_bytes;
  }
  Table table({"STAGE", "TASKS", "ATTEMPTS", "SECONDS", "READ LOCALLY", "READ REMOTELY"});
  for (const std::string& stage : order) {
    const Sum& sum = sums.at(stage);
    table.Add({stage, fmt::format("{}", sum.tasks), fmt::format("{}", sum.attempts),
               fmt::format("{:.2f}", static_cast<double>((sum.end - sum.begin).ns) / 1e9),
               HumanBytes(static_cast<int64_t>(sum.local)),
               HumanBytes(static_cast<int64_t>(sum.remote))});
  }
  table.Print();
}

// Where record and logs are, which exist from here on. An earlier record is kept beside it.
Status PrepareFiles(Options& options) {
  EngineOptions& engine = options.engine;
  engine.keep_logs = options.resume;
  std::error_code error;
  fs::create_directories(engine.logs, error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot make {}: {}", engine.logs, error.message()));
  if (options.resume || !fs::exists(engine.record_path, error)) return OkStatus();
  fs::rename(engine.record_path, engine.record_path + ".old", error);
  if (!error) return OkStatus();
  return FailedPreconditionError(
      fmt::format("cannot rename the earlier record {}: {}", engine.record_path, error.message()));
}

Status RunWorkflow(Options options, const CommandLine& line) {
  if (!options.rules.empty() && options.system == "dss")
    return InvalidArgumentError(fmt::format(
        "--rules {}: --system dss takes no hints; leave one of them out", options.rules));
  RunRecord record;
  record.system = options.system == "dss" ? predict::System::kDss : predict::System::kWass;
  record.workflow_path = fs::absolute(options.workflow).lexically_normal();
  if (!options.rules.empty()) record.rules_path = fs::absolute(options.rules).lexically_normal();
  options.hosts.cluster = options.cluster.name;
  options.hosts.cluster_directory = options.cluster.directory;
  MOSA_ASSIGN_OR_RETURN(const std::string text,
                        ReadText(options.workflow, predict::kDocumentBytesMax));
  auto found = FindHosts(options.hosts);
  if (!found.ok()) {  // What is wrong wherever it runs is said first.
    MOSA_RETURN_IF_ERROR(ParseWorkflow(options.workflow, text, {}).status());
    return found.status();
  }
  record.hosts = std::move(found->hosts);
  MOSA_ASSIGN_OR_RETURN(Workflow workflow, ParseWorkflow(options.workflow, text, record.hosts));
  if (!options.rules.empty()) MOSA_RETURN_IF_ERROR(ReadRules(options.rules, workflow));
  for (const std::string& name : found->silent)
    fmt::print(stderr, "mosa run: host {} is left out: it does not answer\n", name);
  record.tasks.resize(workflow.tasks.size());
  if (options.dry_run) return ShowPlan(workflow, record, line);

  EngineOptions& engine = options.engine;
  if (engine.record_path.empty())
    engine.record_path = fs::path(options.workflow).stem().string() + ".run.json";
  if (engine.logs.empty()) engine.logs = fs::path(engine.record_path).replace_extension(".logs");
  const cluster::InterruptGuard guard;
  MOSA_ASSIGN_OR_RETURN(const UniqueFd lock, LockRecord(engine.record_path));
  engine.held = lock.get();
  {
    HostMount mount(record.hosts.front());
    MOSA_RETURN_IF_ERROR(BeginRun(workflow, mount, record));
    if (options.resume)
      MOSA_RETURN_IF_ERROR(ResumeRun(workflow, engine.record_path, mount, record));
    MOSA_RETURN_IF_ERROR(SettleDirectories(workflow, mount, record));
  }
  MOSA_RETURN_IF_ERROR(PrepareFiles(options));
  MOSA_RETURN_IF_ERROR(WriteRecord(engine.record_path, ToJson(record, workflow)));
  HostMount first(record.hosts.front());
  const bool measures = record.hosts.front().mosa;
  Result<ClusterResidence> residence = ClusterResidence();
  if (measures) residence = first.TakeResidence();
  const RunnerLoad load = TakeRunnerLoad();
  const Status ended = Engine(workflow, record, engine).Run();
  const RunnerLoad load_after = TakeRunnerLoad();
  if (measures) {
    const Result<ClusterResidence> after = residence.ok() ? first.TakeResidence() : residence;
    record.residence = ResidenceOfRun(residence, after);
    if (after.ok()) {
      const ClusterResidence during = Since(*after, *residence);
      record.machines = MachinesOfRun(record, load, load_after, &during);
    }
  } else {
    record.machines = MachinesOfRun(record, load, load_after, nullptr);
  }
  const Status written = WriteRecord(engine.record_path, ToJson(record, workflow));
  if (!written.ok()) fmt::print(stderr, "mosa run: {}\n", MessageOf(written));
  if (line.json) {
    PrintJson(ToJson(record, workflow));
  } else {
    ShowStages(workflow, record);
    if (const std::string places = DescribePlaces(record); !places.empty())
      fmt::print("Tasks ran on {}\n", places);
    if (written.ok()) fmt::print("Record: {0}; see it: mosa report {0}\n", engine.record_path);
  }
  return ended;
}

}  // namespace

void AddRun(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "run",
      "Run a workflow on the hosts of a cluster\n\n"
      "  mosa run words.yaml\n"
      "  mosa run montage.json --cluster second --system dss --record dss.json\n"
      "  mosa run words.yaml --mount /mnt/mosa --hosts a,b --exec 'ssh {host}'\n\n"
      "WORKFLOW is WfFormat 1.3 to 1.6 with commands, or Mosa's own form in YAML or JSON: see\n"
      "docs/reference/formats.md.");
  command->add_option("workflow", options->workflow, "Workflow file")->required();
  AddHostChoice(*command, options->cluster, options->hosts);
  command->add_option(
      "--workdir", options->hosts.directory,
      "Directory below the mount to run tasks in; created if absent; default: the mount");
  command->add_option("--slots", options->hosts.slots,
                      "Tasks at a time on each host; default: a share of the cores, 1 with --exec");
  command->add_option(
      "--link", options->hosts.link,
      "Link rate for the scheduler, such as 1gbit; default: the cluster's, or 16gbit");
  command
      ->add_option("--system", options->system,
                   "wass: hints, and tasks run where their data is; dss: neither")
      ->check(CLI::IsMember({"wass", "dss"}))
      ->capture_default_str();
  command->add_option(
      "--rules", options->rules,
      "Rules file (see 'mosa advise'); replaces the placement hints of graph and workflow");
  command->add_option("--retries", options->engine.retries, "Number of retries of a failed task")
      ->capture_default_str();
  command->add_flag("--keep-going", options->engine.keep_going,
                    "After a failure, run all tasks that do not depend on the failed one");
  command->add_flag("--resume", options->resume,
                    "Keep results of the run in --record that are still intact");
  command->add_option(
      "--record", options->engine.record_path,
      "Record of the run to write, JSON; default: WORKFLOW.run.json, in this directory");
  command->add_option("--logs", options->engine.logs,
                      "Directory for the output of tasks; default: next to the record");
  command->add_flag("--dry-run", options->dry_run,
                    "Check the workflow and show its files with their hints, but run nothing");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunWorkflow(*options, line); }; });
}

}  // namespace mosa::cli
