// `mosa predict`: predicts how long a workflow takes on a platform.
#include "tools/forecast/predict.h"

#include <memory>

#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uint32_t kPredictRepeatsMax = 10'000;
constexpr const char* kPredictHelp =
    "Predict how long a workflow takes on a platform in a given configuration\n\n"
    "  mosa predict --platform lab.json --workload montage.json --config hosts=19\n"
    "  mosa predict --platform lab.json --workload blast.yaml \\\n"
    "    --config hosts=14,storage=5,chunk=256K,system=dss --trace run.trace.json\n"
    "  mosa predict --platform lab.json --workload synthetic:reduce,medium,scale=0.1 \\\n"
    "    --config hosts=8,manager=apart,slots=1\n\n"
    "Every file of the workload needs a size. Without --operations, a task reads all its\n"
    "inputs, computes, then writes all its outputs. Nine of ten runs, each on a cluster of\n"
    "its own, are expected in the interval, and so is the mean of several runs on one\n"
    "cluster. The interval comes from draws: simulations in which the measured figures vary\n"
    "by their spread. A run that would fail, for example because the store is full, is also\n"
    "an answer: the exit code is 0, and JSON has 'failure', 'failed_at_s' and, if there is no\n"
    "room, 'full'.\n\n"
    "The workflows of 'mosa bench patterns' are workloads, too.\n"
    "  synthetic:PATTERN,SIZE[,scale=SHARE][,width=N][,copies=N][,compute=SECONDS]\n"
    "    [,make=SECONDS_PER_GB]\n\n"
    "A configuration names what differs from these defaults.\n"
    "  hosts=4,storage=0,manager=shared,slots=0,system=wass,chunk=1M,stripe=0,replicas=1,\n"
    "  placement=stripe,store=0,seed=1\n"
    "Hosts that differ from the others: h3.speed=0.5, h5-8.link=12M. Fields are cores, speed,\n"
    "cache, store, and link (or out and in), in bytes per second.\n"
    "Placement of outputs: placement:mid/*.fits=local by glob, placement@mAdd=stripe by stage.";

}  // namespace

void AddPredict(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<PredictRequest>();
  CLI::App* command = app.add_subcommand("predict", kPredictHelp);
  command->add_option("--platform", options->platform, "Platform file written by 'mosa identify'")
      ->required();
  command
      ->add_option(
          "--workload", options->workload,
          "Workflow file with sizes: WfFormat 1.3 to 1.6, or Mosa's own form, or synthetic:...")
      ->required();
  command->add_option(
      "--operations", options->operations,
      "Operations of the workload's tasks: a file written by 'mosa trace workload'");
  command->add_option(
      "--rules", options->rules,
      "Rules file (see 'mosa advise'); replaces the placement hints of graph and workflow");
  command
      ->add_option("--plan", options->plan, "Plan for the workload's tasks, written by 'mosa plan'")
      ->excludes("--rules");
  command->add_option("--config", options->configuration,
                      "Configuration, NAME=VALUE,..., as described above");
  command->add_option(
      "--trace", options->trace,
      "Write the simulated run to this file as a Chrome trace (for ui.perfetto.dev)");
  command->add_flag("--layouts", options->layouts,
                    "With --json, add the nodes that hold each file");
  command->add_flag("--residence", options->residence,
                    "With --json, add residence times in each daemon, as in 'mosa residence'");
  command->add_option("--metrics", options->metrics,
                      "Directory for the residence times as Prometheus text, one file per daemon");
  command->add_option("--power", options->power,
                      "Power file of the hosts, YAML or JSON; adds their energy");
  command
      ->add_option("--frequency", options->frequency_mhz,
                   "Frequency in MHz, a level of the power file; default: the level of speed 1")
      ->needs("--power");
  command
      ->add_option(
          "--repeats", options->repeats,
          "Number of draws (simulations with varied figures): at least 19; 0: no intervals")
      ->check(CLI::Range(0U, kPredictRepeatsMax))
      ->capture_default_str();
  CLI::Option* bound = command->add_option(
      "--bound", options->bound,
      "Envelope or capacity file; reports stages simulated faster than measured");
  command
      ->add_option("--bound-system", options->bound_system,
                   "Store to use from an envelope file that has several")
      ->needs(bound);
  command->callback([options, &line] {
    line.action = [options, &line] { return PredictRun(*options, line.json); };
  });
}

}  // namespace mosa::cli
