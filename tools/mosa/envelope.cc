#include "tools/mosa/envelope.h"

namespace mosa::cli {

void AddEnvelope(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "envelope", "Measure a store's many-task I/O, and find what bounds a workflow on it");
  noun->require_subcommand(1);
  AddEnvelopeRun(*noun, line);
  AddEnvelopeProfile(*noun, line);
  AddEnvelopeClassify(*noun, line);
  AddEnvelopePlot(*noun, line);
}

}  // namespace mosa::cli
