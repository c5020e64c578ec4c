#include "tools/mosa/envelope.h"

namespace mosa::cli {

void AddEnvelope(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "envelope", "What a store carries of many-task I/O, and what bounds an application on it");
  noun->require_subcommand(1);
  AddEnvelopeRun(*noun, line);
  AddEnvelopeProfile(*noun, line);
  AddEnvelopeClassify(*noun, line);
  AddEnvelopePlot(*noun, line);
}

}  // namespace mosa::cli
