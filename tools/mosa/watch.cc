// `mosa watch`: checks whether a running cluster is as fast as predicted.
#include "tools/observe/watch.h"

#include <memory>

#include "common/base/exit_code.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

Status Watch(const WatchRequest& request, CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const bool longer, RunWatch(request, line.json));
  if (longer) line.exit_code = kExitAnomaly;
  return OkStatus();
}

}  // namespace

void AddWatch(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<WatchRequest>();
  CLI::App* command = app.add_subcommand(
      "watch",
      "Check that the requests of a working cluster take as long as predicted\n\n"
      "  mosa watch --platform lab.json --workload nightly.json --config manager=apart\n"
      "  mosa watch --platform lab.json --workload nightly.json --for 10m || mail ops\n\n"
      "Compares each interval with the predicted requests of the workload, which must be given.\n"
      "Prints one line for each class of a daemon's requests\n"
      "that took longer in two of the last three intervals, or much longer in one. Prints one\n"
      "line for each class that has drifted from the prediction, and from then on judges it by\n"
      "its new times. Exit code 7 if a class took longer; drift alone does not count.");
  AddPredictionWords(*command, options->words)->required();
  command->add_option("--interval", options->interval, "Length of an interval, from 100ms to 60m")
      ->capture_default_str();
  command->add_option("--for", options->duration,
                      "Stop after this time, such as 10m; default: at Ctrl-C");
  command->add_flag("--once", options->once, "Stop after the first interval");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Watch(*options, line); }; });
}

}  // namespace mosa::cli
