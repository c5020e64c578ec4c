// `mosa forecast`: computes what a manager answers from.
#include <memory>

#include "tools/forecast/manager_forecasts.h"
#include "tools/mosa/command.h"

namespace mosa::cli {

void AddForecast(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<ForecastRequest>();
  CLI::App* command = app.add_subcommand(
      "forecast",
      "Compute the forecasts from which a manager answers what reads cost\n\n"
      "  mosa forecast --platform lab.json -o lab.forecasts.json\n"
      "  mosa cluster up --forecasts lab.forecasts.json\n\n"
      "Simulates reads of files of all sizes and layouts, and broadcasts to up to 32 nodes, which\n"
      "takes some ten seconds. The manager uses them for 'mosa where --cost' and replicas=auto.\n"
      "Make them again when the platform file has changed.");
  command->add_option("--platform", options->platform, "Platform file written by 'mosa identify'")
      ->required();
  command->add_option("-o,--output", options->output, "File to write")->capture_default_str();
  command->callback([options, &line] {
    line.action = [options, &line] { return MakeForecastFile(*options, line.json); };
  });
}

}  // namespace mosa::cli
