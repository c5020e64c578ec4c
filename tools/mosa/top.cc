// `mosa top`: shows what a cluster is doing.
#include "tools/mosa/top.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/observe/top.h"

namespace mosa::cli {

void AddTop(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<TopRequest>();
  CLI::App* command = app.add_subcommand(
      "top",
      "Show live activity of a cluster: bytes by path, requests and their times\n\n"
      "  mosa top\n"
      "  mosa top --once --interval 10s --json\n"
      "  mosa top --platform lab.json --workload nightly.json --config manager=apart\n\n"
      "With --platform and --workload, shows the predicted mean next to each class of requests,\n"
      "adjusted to what the class took in earlier intervals, and names classes that have\n"
      "drifted.");
  AddPredictionWords(*command, options->words);
  command->add_option("--interval", options->interval, "Length of an interval, from 100ms to 60m")
      ->capture_default_str();
  command->add_flag("--once", options->once, "Stop after the first interval");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunTop(*options, line.json); }; });
}

}  // namespace mosa::cli
