#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

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

// The deepest command that was named, for "see '... --help'".
std::string CommandNamed(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return app.get_name();
  return fmt::format("{} {}", app.get_name(), CommandNamed(*chosen.front()));
}

// A word that is no command makes the library miss the command rather than mind the word.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto left = app.remaining(true);
  const bool missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (!missing || left.empty() || left.front().starts_with("-")) return error.what();
  return fmt::format("there is no command '{}'", left.front());
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Mosa turns the RAM of the machines that run a workflow into one POSIX mount.\n\n"
      "  mosa cluster up --hosts 4     # a whole cluster on this machine\n"
      "  mosa run words.yaml           # a workflow over its hosts",
      "mosa");
  CommandLine line;
  app.add_flag("--json", line.json, "Print JSON with stable names");
  app.set_version_flag("--version", VersionLine());
  app.require_subcommand(1);
  app.fallthrough();
  AddCluster(app, line);
  AddStatus(app, line);
  AddNode(app, line);
  AddStat(app, line);
  AddResidence(app, line);
  AddTop(app, line);
  AddLog(app, line);
  AddFollow(app, line);
  AddWhere(app, line);
  AddHint(app, line);
  AddLost(app, line);
  AddAdopt(app, line);
  AddRun(app, line);
  AddWorkflow(app, line);
  AddStage(app, line);
  AddBench(app, line);
  AddEnvelope(app, line);
  AddCapacity(app, line);
  AddTrace(app, line);
  AddIdentify(app, line);
  AddIdentifyWorker(app, line);
  AddPredict(app, line);
  AddExplore(app, line);
  AddAdvise(app, line);
  AddCompare(app, line);
  AddWatch(app, line);
  AddReport(app, line);
  AddSecret(app, line);
  AddVersion(app, line);
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
