// `mosa capacity run`: measures each I/O size with fio, reads only and writes only.
#include "tools/measure/capacity_run.h"

#include <memory>

#include "tools/mosa/capacity.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

void AddClientOptions(CLI::App& command, CapacityRequest& options) {
  command.add_option("--jobs", options.jobs, "Number of clients on each host")
      ->capture_default_str();
  command.add_option("--file-size", options.file_bytes, "Size of each client's file")
      ->capture_default_str();
  command
      .add_option("--seconds", options.sample_seconds, "Measured length of each sample, in seconds")
      ->capture_default_str();
  command
      .add_option(
          "--pages", options.pages,
          "Page cache of the client's host: direct (bypassed with O_DIRECT) or cached (used)")
      ->check(CLI::IsMember({"direct", "cached"}))
      ->capture_default_str();
  command
      .add_option("--writes", options.writes,
                  "When a write is done: stored (in the store, O_DSYNC) or taken (write returned)")
      ->check(CLI::IsMember({"stored", "taken"}))
      ->capture_default_str();
  command.add_option("--repeats", options.repeats, "Number of samples of each load")
      ->capture_default_str();
  command
      .add_option("--budget", options.budget_seconds, "Seconds after which no new sample begins")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of the random file offsets")
      ->capture_default_str();
}

}  // namespace

void AddCapacityRun(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<CapacityRequest>();
  CLI::App* command = noun.add_subcommand(
      "run",
      "Measure each I/O size with fio, only reads and only writes (the seeds)\n\n"
      "  mosa capacity run --cluster default\n"
      "  mosa capacity run --check                          # continues with capacity.json\n"
      "  mosa capacity run /mnt/nfs --hosts a,b,c --exec 'ssh {host}' -o nfs.json\n\n"
      "PATH must be mounted on all hosts. Samples that --output already has are not repeated. All\n"
      "hosts need this program at the same path, and fio in PATH.");
  command->add_option("path", options->path,
                      "Directory to measure; may contain {host}; default: the cluster's mounts");
  AddHostChoice(*command, options->cluster, options->hosts);
  command
      ->add_option("--sizes", options->sizes,
                   "Comma-separated I/O sizes; default: 4K,16K,32K,128K,1M")
      ->delimiter(',');
  command->add_flag("--check", options->check,
                    "Also measure mixed reads and writes of each size, and mixes of sizes");
  command
      ->add_option("--ratios", options->ratios,
                   "Percentages of reads to measure with --check; default: 10,30,50,70,90")
      ->delimiter(',');
  command->add_option("--mix", options->mixes, "Mix to measure, SIZE:READ%r:SHARE,...; repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddClientOptions(*command, *options);
  command
      ->add_option("-o,--output", options->out,
                   "Results file, JSON; if it exists, the measurement continues with it")
      ->capture_default_str();
  command->callback([options, &line] {
    line.action = [options, &line] { return RunCapacity(*options, line.json); };
  });
}

}  // namespace mosa::cli
