#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tools/cluster/lifecycle.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

Status RunRestart(const ClusterChoice& choice, const CommandLine& line) {
  const std::string directory = std::filesystem::absolute(choice.directory).lexically_normal();
  const cluster::InterruptGuard guard;
  const std::string binaries = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  MOSA_ASSIGN_OR_RETURN(const auto state,
                        cluster::RestartManager(directory, choice.name, binaries));
  if (line.json) PrintJson({{"name", choice.name}, {"manager", state.manager_address}});
  fmt::print(stderr, "The manager of cluster '{}' is running again at {}\n", choice.name,
             state.manager_address);
  return OkStatus();
}

}  // namespace

void AddClusterRestart(CLI::App& noun, CommandLine& line) {
  auto choice = std::make_shared<ClusterChoice>();
  CLI::App* command = noun.add_subcommand(
      "restart",
      "Restart a manager that has died, with everything that it had stored\n\n"
      "  mosa cluster restart\n"
      "  mosa cluster restart --name second\n\n"
      "Nodes and mounts reconnect by themselves. This command does not restart them: if one has\n"
      "died, stop the cluster with 'mosa cluster down'.");
  AddClusterChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return RunRestart(*choice, line); }; });
}

}  // namespace mosa::cli
