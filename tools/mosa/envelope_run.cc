// `mosa envelope run`: measures creates, opens, reads and writes over file sizes and numbers of
// clients.
#include "tools/measure/envelope_run.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/mosa/envelope.h"

namespace mosa::cli {

void AddEnvelopeRun(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<EnvelopeRequest>();
  CLI::App* command = noun.add_subcommand(
      "run",
      "Measure creates, opens, reads and writes over file sizes and numbers of clients\n\n"
      "  mosa envelope run --cluster default\n"
      "  mosa envelope run tmpfs=/dev/shm disk=/var/tmp --output here.json\n"
      "  mosa envelope run nfs=/mnt/nfs gluster=/mnt/gluster --hosts a,b,c --exec 'ssh {host}'\n\n"
      "Each PATH is a store, mounted on all hosts. The cells of several stores are measured in\n"
      "turn. Cells that --output already has are not repeated. All hosts need this program at the\n"
      "same path.");
  command->add_option(
      "paths", options->paths,
      "Stores, as PATH or NAME=PATH; may contain {host}; default: the cluster's mounts");
  AddHostChoice(*command, options->cluster, options->hosts);
  command
      ->add_option("--clients", options->clients,
                   "Comma-separated numbers of clients; default: 1,2,4,8,... up to the hosts")
      ->delimiter(',');
  command
      ->add_option("--sizes", options->sizes, "Comma-separated file sizes; default: 1K,128K,1M,16M")
      ->delimiter(',');
  command
      ->add_option("--scale", options->scale,
                   "Number of files in a cell, as a share of the 8,192 of the MTC Envelope paper")
      ->capture_default_str();
  command
      ->add_option("--bytes-max", options->bytes_max,
                   "Most bytes that a cell moves, except one file per client; 0: no limit")
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Number of samples of each cell")
      ->capture_default_str();
  command
      ->add_option("--budget", options->budget_seconds, "Seconds after which no new sample begins")
      ->capture_default_str();
  command
      ->add_option("--pages", options->pages,
                   "Page cache of the reader: cold (files not yet read) or warm (already read)")
      ->check(CLI::IsMember({"cold", "warm"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the generated file contents")
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->out,
                   "Results file, JSON; if it exists, the measurement continues with it")
      ->capture_default_str();
  command->callback([options, &line] {
    line.action = [options, &line] { return RunEnvelope(*options, line.json); };
  });
}

}  // namespace mosa::cli
