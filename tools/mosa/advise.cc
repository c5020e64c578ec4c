// `mosa advise`: hints and configurations that make a workflow faster.
#include "tools/forecast/advise.h"

#include <memory>

#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uint32_t kAdviseRepeatsMax = 1000;
constexpr uint32_t kAdviseJobsMax = 1024;
constexpr double kLeastMax = 100;

}  // namespace

void AddAdvise(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<AdviseRequest>();
  CLI::App* command = app.add_subcommand(
      "advise",
      "Find the hints and the configuration that make a workflow faster, and their gains\n\n"
      "  mosa advise --platform lab.json --workload montage.json --config hosts=4 -o hints.yaml\n"
      "  mosa run montage.yaml --rules hints.yaml\n"
      "  mosa advise --platform lab.json --record words.run.json run7/*.trace\n\n"
      "Simulates each class of outputs (files of one stage with one use) with and without\n"
      "hints, on the same draws and with the hints of the other classes in place. Keeps the\n"
      "hints without which the run is slower in nearly all draws, and says why it leaves out\n"
      "the rest. Then compares configurations with these hints. Without --vary, these have at\n"
      "most as many hosts as the present one, and other chunk sizes, stripe widths and\n"
      "placements.");
  command
      ->add_option("--platform", options->work.platform, "Platform file written by 'mosa identify'")
      ->required();
  command->add_option("--workload", options->work.workload,
                      "Workflow file with sizes: WfFormat 1.3 to 1.6, or Mosa's own form");
  command
      ->add_option("--operations", options->work.operations,
                   "Operations of the workload's tasks: a file written by 'mosa trace workload'")
      ->needs("--workload");
  command->add_option("--record", options->work.record,
                      "Record of a finished 'mosa run', instead of --workload");
  command->add_option("traces", options->work.traces,
                      "Traces of all mounts of a run, instead of --workload or with --record");
  command->add_option("--config", options->configuration,
                      "Present configuration, NAME=VALUE,... (see 'mosa predict --help')");
  command
      ->add_option("--vary", options->vary,
                   "Dimension that may change, NAME=VALUES (see 'mosa explore --help'); repeatable")
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output,
                      "Rules file to write the hints to, for 'mosa run --rules'");
  command
      ->add_option("--least", options->least_percent,
                   "Smallest gain of a hint or configuration, in percent of the run")
      ->check(CLI::Range(0.0, kLeastMax))
      ->capture_default_str();
  command
      ->add_option(
          "--repeats", options->repeats,
          "Number of draws (simulations with varied figures): at least 19; 0: no intervals")
      ->check(CLI::Range(0U, kAdviseRepeatsMax))
      ->capture_default_str();
  command
      ->add_option("--jobs", options->jobs,
                   "Number of simulations to run in parallel; 0: one per core")
      ->check(CLI::Range(0U, kAdviseJobsMax))
      ->capture_default_str();
  command->callback(
      [options, &line] { line.action = [options, &line] { return Advise(*options, line.json); }; });
}

}  // namespace mosa::cli
