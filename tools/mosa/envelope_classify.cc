// `mosa envelope classify`: finds what bounds each stage of a workflow on a store.
#include "tools/forecast/envelope_classify.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/mosa/envelope.h"

namespace mosa::cli {

void AddEnvelopeClassify(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<ClassifyRequest>();
  CLI::App* command = noun.add_subcommand(
      "classify",
      "Find what bounds each stage of a workflow on a store (MTC Envelope, Tables 4 and 5)\n\n"
      "  mosa envelope classify --envelope nfs.json --workload montage.json --clients 8\n"
      "  mosa envelope classify --envelope mosa.json --workload run7.json \\\n"
      "    --operations run7.operations.json --trace run7/*.trace --platform lab.json \\\n"
      "    --config hosts=4\n\n"
      "Coarse times use the highest rates of any file size, fine times the rates of each file's\n"
      "size. A stage with fewer tasks than the smallest measured number of clients gets the\n"
      "rates of that number. Simulated and measured times are what all tasks spent on their\n"
      "files, divided by the number of clients. Measured from a record, this is the duration of\n"
      "the tasks less the computing time given by --operations; measured from traces, which\n"
      "tell input from output, it is the time that the mounts spent.");
  command->add_option("--envelope", options->envelope, "Results file of 'mosa envelope run'")
      ->required();
  command->add_option("--system", options->system,
                      "Store to use from an envelope file that has several");
  AddApplicationFiles(*command, options->files);
  command
      ->add_option("--clients", options->clients,
                   "Number of concurrent tasks; default: the most clients in the envelope")
      ->check(CLI::Range(1U, 1'000'000U));
  CLI::Option* record =
      command->add_option("--record", options->record, "Record of the measured 'mosa run'");
  command
      ->add_option("--trace", options->traces,
                   "Traces of the measured run, which tell its input from its output")
      ->excludes(record);
  command->add_option("--platform", options->platform,
                      "Platform file written by 'mosa identify'; adds simulated times");
  command->add_option("--config", options->configuration,
                      "Configuration, NAME=VALUE,... (see 'mosa predict --help')");
  command->callback([options, &line] {
    line.action = [options, &line] { return ClassifyApplication(*options, line.json); };
  });
}

}  // namespace mosa::cli
