// `mosa plan`: where the tasks of a workflow should run and its files should lie.
#include "tools/forecast/plan.h"

#include <memory>

#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uint32_t kPlanRepeatsMax = 1000;
constexpr uint32_t kPlanJobsMax = 1024;

}  // namespace

void AddPlan(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<PlanningRequest>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Find a host for each task of a workflow and a place for each file, and the gain\n\n"
      "  mosa plan --platform lab.json --record montage.run.json --config hosts=4 -o plan.json\n"
      "  mosa run montage.json --plan plan.json\n"
      "  mosa predict --platform lab.json --workload sized.json --config hosts=4 --plan "
      "plan.json\n\n"
      "Divides the tasks among the hosts so that few bytes move and all hosts are busy, in\n"
      "several ways, and simulates each. The plan is the fastest, if it is faster than tasks\n"
      "that go where their data is; otherwise it is empty, and a run that follows it is a run\n"
      "without a plan. Sizes and times of tasks come from the workload, or from a finished run\n"
      "of the same workflow.");
  WorkRequest& work = options->work;
  command->add_option("--platform", work.platform, "Platform file written by 'mosa identify'")
      ->required();
  command->add_option("--workload", work.workload,
                      "Workflow file with sizes: WfFormat 1.3 to 1.6, or Mosa's own form");
  command
      ->add_option("--operations", work.operations,
                   "Operations of the workload's tasks: a file written by 'mosa trace workload'")
      ->needs("--workload");
  command->add_option("--record", work.record,
                      "Record of a finished 'mosa run', instead of --workload");
  command->add_option("traces", work.traces,
                      "Traces of all mounts of a run, instead of --workload or with --record");
  command->add_option("--config", options->configuration,
                      "Configuration, NAME=VALUE,... (see 'mosa predict --help')");
  command->add_option("-o,--output", options->output,
                      "File to write the plan to, JSON, for 'mosa run --plan'");
  command
      ->add_option(
          "--repeats", options->repeats,
          "Number of draws (simulations with varied figures): at least 19; 0: no intervals")
      ->check(CLI::Range(0U, kPlanRepeatsMax))
      ->capture_default_str();
  command
      ->add_option("--jobs", options->jobs,
                   "Number of simulations to run in parallel; 0: one per core")
      ->check(CLI::Range(0U, kPlanJobsMax))
      ->capture_default_str();
  command->callback([options, &line] {
    line.action = [options, &line] { return MakePlan(*options, line.json); };
  });
}

}  // namespace mosa::cli
