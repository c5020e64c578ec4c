#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tools/cluster/lifecycle.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/stage/stage.h"

namespace mosa::cli {
namespace {

struct DownOptions {
  ClusterChoice choice;
  bool dry_run = false;
  bool discard = false;
  bool yes = false;
  std::string stage_out;
};

Status RunDown(const DownOptions& options, const CommandLine& line) {
  const std::string directory =
      std::filesystem::absolute(options.choice.directory).lexically_normal();
  MOSA_ASSIGN_OR_RETURN(const auto state, cluster::Load(directory, options.choice.name));
  const std::string what =
      fmt::format("cluster '{}': {}, {} and everything stored in {}", options.choice.name,
                  Counted(state.plan.hosts.size(), "host"), Counted(state.daemons.size(), "daemon"),
                  state.plan.directory);
  const cluster::InterruptGuard guard;
  uint64_t ends = 0;  // Files that nobody asked to be kept.
  if (!options.discard) {
    const ManagerChoice choice{.address = "", .secret = "", .cluster = options.choice};
    MOSA_ASSIGN_OR_RETURN(ends, StageBeforeDown(state, choice, options.stage_out, options.dry_run));
  }
  const auto interrupted = [] { return cluster::InterruptGuard::Interrupted() != 0; };
  if (ends > 0 && !options.yes && !options.dry_run && !line.json && !interrupted() &&
      !Confirm(fmt::format("End cluster '{}' and these files?", options.choice.name),
               interrupted) &&
      !interrupted())
    return AbortedError(
        fmt::format("the answer was not y: cluster '{}' is unchanged", options.choice.name));
  if (interrupted())
    return AbortedError(fmt::format("interrupted: cluster '{}' is unchanged", options.choice.name));
  if (!options.dry_run) {
    // Interrupting the teardown would leave half a cluster behind.
    MOSA_RETURN_IF_ERROR(cluster::DownByName(directory, options.choice.name));
  }
  if (line.json) {
    PrintJson({{"name", options.choice.name},
               {"directory", state.plan.directory},
               {"dry_run", options.dry_run}});
  }
  fmt::print(stderr, "{} {}\n", options.dry_run ? "Would end" : "Ended", what);
  return OkStatus();
}

}  // namespace

void AddClusterDown(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<DownOptions>();
  CLI::App* command = noun.add_subcommand(
      "down",
      "Stop a cluster and remove everything that it stores\n\n"
      "  mosa cluster down\n"
      "  mosa cluster down --name second --stage-out /archive/run7\n\n"
      "Refuses while the store has files with lifetime=keep whose current version is not staged\n"
      "out. On a terminal, asks before other files end with the store.");
  AddClusterChoice(*command, options->choice);
  CLI::Option* discard =
      command->add_flag("--discard", options->discard,
                        "Discard files with lifetime=keep that are not staged out, and do not ask");
  command
      ->add_option(
          "--stage-out", options->stage_out,
          "Directory to copy files with lifetime=keep to first, by their paths in the store")
      ->excludes(discard);
  command->add_flag("-y,--yes", options->yes, "Do not ask, also on a terminal");
  command->add_flag("--dry-run", options->dry_run, "Print what would be stopped, but stop nothing");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunDown(*options, line); }; });
}

}  // namespace mosa::cli
