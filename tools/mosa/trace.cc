// `mosa trace`: records what programs ask of a mount, and makes workloads of it.
#include "tools/mosa/trace.h"

namespace mosa::cli {

void AddTrace(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "trace",
      "Record what programs do with files, and make a workload of it for predictions\n\n"
      "  mosa trace run --name default -o run7 -- mosa run words.yaml\n"
      "  mosa trace show run7/*.trace\n"
      "  mosa trace workload run7/*.trace -o words.json\n"
      "  mosa predict --platform lab.json --workload words.json --operations "
      "words.operations.json");
  noun->require_subcommand(1);
  noun->fallthrough();
  AddTraceStart(*noun, line);
  AddTraceStop(*noun, line);
  AddTraceRun(*noun, line);
  AddTraceWrap(*noun, line);
  AddTraceShow(*noun, line);
  AddTraceWorkload(*noun, line);
}

}  // namespace mosa::cli
