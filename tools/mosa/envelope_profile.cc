// `mosa envelope profile`: shows the I/O of each stage of a workflow.
#include "tools/forecast/envelope_profile.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/envelope.h"

namespace mosa::cli {

void AddEnvelopeProfile(CLI::App& noun, CommandLine& line) {
  auto files = std::make_shared<ApplicationFiles>();
  CLI::App* command = noun.add_subcommand(
      "profile",
      "Show the I/O of each stage of a workflow (MTC Envelope, Tables 1 to 3)\n\n"
      "  mosa envelope profile --workload montage.json\n"
      "  mosa envelope profile --workload run7.json --operations run7.operations.json\n\n"
      "Without --operations, each file counts as one call. The calls of a stage's tasks are\n"
      "aligned by their order; a spike is a point at which at least half of the tasks make the\n"
      "same call.");
  AddApplicationFiles(*command, *files);
  command->callback(
      [files, &line] { line.action = [files, &line] { return ShowProfile(*files, line.json); }; });
}

}  // namespace mosa::cli
