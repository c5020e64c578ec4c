#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "proto/convert/grpc_process.h"
#include "tools/cluster/process.h"
#include "tools/mosa/capacity.h"
#include "tools/mosa/command.h"
#include "tools/mosa/envelope.h"
#include "tools/mosa/top.h"

namespace mosa::cli {
namespace {

// Lists a command by the first line of its description: examples are in its own help.
class OneLineFormatter final : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    return fmt::format("  {:<{}}{}\n", command->get_name(), get_column_width() - 2,
                       text.substr(0, text.find('\n')));
  }
};

struct CommandGroup {
  const char* name;
  std::vector<void (*)(CLI::App&, CommandLine&)> adders;
};

// In the order in which `mosa --help` shows them.
void AddCommands(CLI::App& app, CommandLine& line) {
  const CommandGroup groups[] = {
      {"Store",
       {AddCluster, AddStatus, AddNode, AddStat, AddWhere, AddHint, AddStage, AddLost, AddAdopt,
        AddSecret, AddVersion}},
      {"Run", {AddRun, AddWorkflow}},
      {"Predict",
       {AddIdentify, AddIdentifyWorker, AddForecast, AddPredict, AddExplore, AddAdvise, AddPlan,
        AddCompare, AddWatch, AddReport}},
      {"Observe", {AddTop, AddResidence, AddLog, AddFollow, AddTrace}},
      {"Measure", {AddBench, AddEnvelope, AddCapacity}},
  };
  const std::string none = app.get_group();
  // Worker commands have hidden themselves with an empty group.
  const auto is_new = [&none](CLI::App* command) { return command->get_group() == none; };
  for (const CommandGroup& group : groups) {
    for (const auto add : group.adders) add(app, line);
    for (CLI::App* command : app.get_subcommands(is_new)) command->group(group.name);
  }
}

// The most deeply nested command on the line, for "see '... --help'".
std::string CommandNamed(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return app.get_name();
  return fmt::format("{} {}", app.get_name(), CommandNamed(*chosen.front()));
}

// For a word that is not a command, the library complains of a missing command, not of the word.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto left = app.remaining(true);
  const bool missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (!missing || left.empty() || left.front().starts_with("-")) return error.what();
  return fmt::format("there is no command '{}'", left.front());
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Combine the RAM of the hosts that run a workflow into one POSIX file system.\n\n"
      "  mosa cluster up --hosts 4     # start a cluster on this machine\n"
      "  mosa run words.yaml           # run a workflow on its hosts",
      "mosa");
  CommandLine line;
  app.formatter(std::make_shared<OneLineFormatter>());
  app.add_flag("--json", line.json, "Print results as JSON with stable keys");
  app.set_version_flag("--version", VersionLine());
  app.require_subcommand(1);
  app.fallthrough();
  AddCommands(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "mosa: {}: see '{} --help'\n", Explain(app, error), CommandNamed(app));
    return 2;
  }
  const Status status = line.action();
  std::fflush(stdout);
  if (status.ok()) return line.exit_code;
  fmt::print(stderr, "mosa: {}\n", MessageOf(status));
  const int signal = cluster::InterruptGuard::Interrupted();
  return signal != 0 ? 128 + signal : ToExitCode(status.code());
}

}  // namespace
}  // namespace mosa::cli

int main(int argc, char** argv) {
  mosa::PrepareGrpcProcess();
  return mosa::cli::Main(argc, argv);
}
