// `mosa run`: checks the whole request before its first effect.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/plan/plan.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/read.h"
#include "tools/forecast/compare_runs.h"
#include "tools/forecast/plan.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/runner/begin.h"
#include "tools/runner/carry_out.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::Workflow;

constexpr size_t kFaultsShownMax = 20;
constexpr char kPlanNow[] = "auto";
// For a plan that is made before a run: few, since they take time.
constexpr uint32_t kDrawsBeforeRun = 5;

struct RunOptions {
  std::string workflow;
  ClusterChoice cluster;
  HostsRequest hosts;
  EngineOptions engine;
  std::string system = "wass";
  std::string rules;
  std::string plan;
  std::string platform;
  bool resume = false;
  bool reuse = false;
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

// Makes the workflow follow a plan that is made now, if there is one, and says so. Sizes and times
// are the workflow's, or else those of an earlier run.
Status PlanNow(const RunOptions& options, Workflow& workflow, RunRecord& record,
               EngineOptions& engine) {
  MOSA_RETURN_IF_ERROR(ReadPlatformFile(options.platform).status());
  PlanningRequest request;
  request.command = "run";
  request.work.platform = options.platform;
  MOSA_ASSIGN_OR_RETURN(const predict::Configuration deployment,
                        DeploymentOf(record.hosts, predict::System::kWass, ""));
  request.configuration = predict::ToText(deployment);
  request.repeats = kDrawsBeforeRun;
  const auto without = [](std::string_view why) {
    fmt::print(stderr, "mosa run: no plan: {}\n", why);
    return OkStatus();
  };
  const Status sizes = predict::CheckSizes(workflow);
  if (sizes.ok())
    request.work.parsed = &workflow;
  else if (fs::exists(engine.record_path))
    request.work.record = engine.record_path;
  else
    return without(
        fmt::format("{}; the next run takes sizes from the record of this one", MessageOf(sizes)));
  const Result<RunPlan> planned = PlanRun(request);
  if (!planned.ok()) return without(MessageOf(planned.status()));
  if (planned->plan.tasks.empty()) return without(planned->said);
  std::vector<std::string> hosts;
  for (const RunHost& host : record.hosts) hosts.push_back(host.name);
  const auto applied = predict::ApplyPlan(planned->plan, hosts, workflow);
  if (!applied.ok())
    return without(fmt::format("{} {}", request.work.record, MessageOf(applied.status())));
  fmt::print(stderr, "mosa run: plan: {}\n", planned->said);
  record.plan_path = fs::absolute(engine.record_path).replace_extension(".plan.json");
  engine.plan = predict::ToJsonText(planned->plan);
  return OkStatus();
}

Status RunWorkflow(RunOptions options, const CommandLine& line) {
  if (!options.rules.empty() && options.system == "dss")
    return InvalidArgumentError(fmt::format(
        "--rules {}: --system dss takes no hints; leave one of them out", options.rules));
  if (!options.plan.empty() && options.system == "dss")
    return InvalidArgumentError(fmt::format(
        "--plan {}: --system dss places no tasks; leave one of them out", options.plan));
  if ((options.plan == kPlanNow) != !options.platform.empty())
    return InvalidArgumentError(
        "--plan auto and --platform go together: the plan is made for that platform");
  RunRecord record;
  record.system = options.system == "dss" ? predict::System::kDss : predict::System::kWass;
  record.workflow_path = fs::absolute(options.workflow).lexically_normal();
  if (!options.rules.empty()) record.rules_path = fs::absolute(options.rules).lexically_normal();
  options.hosts.cluster = options.cluster.name;
  options.hosts.cluster_directory = options.cluster.directory;
  MOSA_ASSIGN_OR_RETURN(const std::string text,
                        ReadText(options.workflow, predict::kDocumentBytesMax));
  auto found = FindHosts(options.hosts);
  if (!found.ok()) {  // Errors that do not depend on hosts come first.
    MOSA_RETURN_IF_ERROR(ParseWorkflow(options.workflow, text, {}).status());
    return found.status();
  }
  record.hosts = std::move(found->hosts);
  MOSA_ASSIGN_OR_RETURN(Workflow workflow, ParseWorkflow(options.workflow, text, record.hosts));
  std::vector<uint64_t> memory;
  for (const RunHost& host : record.hosts) memory.push_back(host.memory_bytes);
  MOSA_RETURN_IF_ERROR(predict::CheckMemory(workflow, memory));
  if (!options.rules.empty()) MOSA_RETURN_IF_ERROR(ReadRules(options.rules, workflow));
  EngineOptions& engine = options.engine;
  if (engine.record_path.empty())
    engine.record_path = fs::path(options.workflow).stem().string() + ".run.json";
  if (engine.logs.empty()) engine.logs = fs::path(engine.record_path).replace_extension(".logs");
  if (options.plan == kPlanNow) {
    MOSA_RETURN_IF_ERROR(PlanNow(options, workflow, record, engine));
  } else if (!options.plan.empty()) {
    record.plan_path = fs::absolute(options.plan).lexically_normal();
    std::vector<std::string> hosts;
    for (const RunHost& host : record.hosts) hosts.push_back(host.name);
    MOSA_RETURN_IF_ERROR(FollowPlan(options.plan, hosts, workflow));
  }
  for (const std::string& name : found->silent)
    fmt::print(stderr, "mosa run: host {} is left out: it does not answer\n", name);
  record.tasks.resize(workflow.tasks.size());
  if (options.dry_run) {
    HostMount mount(record.hosts.front());
    MOSA_RETURN_IF_ERROR(PlanRecordHints(workflow, mount, record));
    ShowPlan(workflow, record, line.json);
    return OkStatus();
  }
  record.reuses = options.reuse;
  return CarryOut(workflow, record, std::move(options.engine), options.resume || options.reuse,
                  line.json);
}

}  // namespace

void AddRun(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
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
                      "Concurrent tasks per host; default: a share of the cores, 1 with --exec");
  command->add_option("--memory", options->hosts.memory,
                      "Memory for tasks on each host, such as 64G, for tasks that say what they "
                      "take; default: no limit");
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
  command
      ->add_option("--plan", options->plan,
                   "Plan to follow (see 'mosa plan'): a host for each task, hints for its files; "
                   "auto: make one now")
      ->excludes("--rules");
  command->add_option("--platform", options->platform,
                      "With --plan auto: platform file written by 'mosa identify'");
  command->add_option("--retries", options->engine.retries, "Number of retries of a failed task")
      ->capture_default_str();
  command->add_flag("--keep-going", options->engine.keep_going,
                    "After a failure, run all tasks that do not depend on the failed one");
  command->add_flag("--resume", options->resume,
                    "Keep results of the run in --record that are still intact");
  command
      ->add_flag("--reuse", options->reuse,
                 "Run only tasks whose command, environment or content of inputs is not that of "
                 "the run in --record, if there is one; give it in each run")
      ->excludes("--resume");
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
