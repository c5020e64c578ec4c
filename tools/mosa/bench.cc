// `mosa bench`, and its verb `patterns`.
#include "tools/mosa/bench.h"

#include <memory>

#include "tools/measure/bench_patterns.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

void AddPlanOptions(CLI::App& command, PlanRequest& plan) {
  command
      .add_option("--patterns", plan.patterns,
                  "Patterns to run; default: pipeline,reduce,broadcast,scatter,gather")
      ->delimiter(',');
  command
      .add_option("--sizes", plan.sizes,
                  "File sizes of the Opportunity Study, Table 2; default: small,medium,large")
      ->delimiter(',');
  command
      .add_option("--scale", plan.scales,
                  "Factor on file sizes: 0.1 for all, large=0.02 for one of them; default: 1")
      ->delimiter(',');
  command
      .add_option("--systems", plan.systems,
                  "Comma-separated systems, as listed above; default: dss,wass,local")
      ->delimiter(',');
  command
      .add_option("--replicas", plan.replicas,
                  "Numbers of copies of the broadcast file with wass; default: 1,2,4,8,12,16,N")
      ->delimiter(',');
  command
      .add_option("--repeats", plan.repeats,
                  "Runs, MIN..MAX: until the 95 % interval of the mean is within 5 %, or MAX")
      ->capture_default_str();
}

}  // namespace

void AddBenchPatterns(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<PatternsRequest>();
  CLI::App* command = noun.add_subcommand(
      "patterns",
      "Run synthetic workflow patterns on several stores and verify every byte\n\n"
      "  mosa bench patterns --scale 0.1 --output patterns.json\n"
      "  mosa bench patterns --patterns pipeline --systems dss,wass,path=nfs:/mnt/nfs\n"
      "  mosa bench patterns --mount /mnt/mosa --hosts a,b --exec 'ssh {host}'\n\n"
      "A system is one of the following.\n"
      "  dss            Mosa without hints and data locality\n"
      "  wass           Mosa with hints and data locality\n"
      "  local[=DIR]    a directory on each host's own file system, for pipelines only\n"
      "  path=NAME:DIR  any other mounted directory; {host} stands for the host's name\n\n"
      "Runs that --output already has are not repeated. All hosts need this program at the same\n"
      "path.");
  AddHostChoice(*command, options->cluster, options->hosts);
  command->add_option("--slots", options->hosts.slots,
                      "Concurrent tasks per host; default: a share of the cores, 1 with --exec");
  command->add_option(
      "--link", options->hosts.link,
      "Link rate for the scheduler, such as 1gbit; default: the cluster's, or 16gbit");
  AddPlanOptions(*command, options->plan);
  command->add_option("--width", options->width,
                      "Number of pipelines, readers or writers; default: the number of hosts");
  command->add_option("--stage-in", options->stage_in,
                      "Backend directory that pipelines read their input from, timed separately");
  command->add_option("--stage-out", options->stage_out,
                      "Backend directory that results are written to, timed separately");
  command->add_option("--seed", options->seed, "Seed of the generated file contents")
      ->capture_default_str();
  command
      ->add_option("--workdir", options->workdir,
                   "Directory to create and remove below each system's directory")
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->out,
                   "Results file, JSON; if it exists, the measurement continues with it")
      ->capture_default_str();
  command->add_flag("--map", options->map,
                    "Also show where each stage ran and where its files are stored");
  command->callback([options, &line] {
    line.action = [options, &line] { return RunPatterns(*options, line.json); };
  });
}

void AddBench(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "bench", "Benchmark stores with synthetic workflows, and check them against predictions");
  noun->require_subcommand(1);
  AddBenchPatterns(*noun, line);
  AddBenchGate(*noun, line);
  AddBenchWork(*noun, line);
}

}  // namespace mosa::cli
