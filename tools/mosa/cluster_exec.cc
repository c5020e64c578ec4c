#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "tools/cluster/process.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

struct ExecOptions {
  ClusterChoice choice;
  std::string host;
  std::vector<std::string> command;
};

Status RunExec(const ExecOptions& options) {
  const std::string directory =
      std::filesystem::absolute(options.choice.directory).lexically_normal();
  MOSA_ASSIGN_OR_RETURN(const auto state, cluster::Load(directory, options.choice.name));
  const cluster::HostPlan* host = state.plan.Find(options.host);
  if (host == nullptr) {
    return NotFoundError(fmt::format("cluster '{}' has no host '{}': its hosts are h1 to h{}",
                                     options.choice.name, options.host, state.plan.hosts.size()));
  }
  setenv("MOSA_CLUSTER", options.choice.name.c_str(), 1);
  setenv("MOSA_CLUSTER_DIR", directory.c_str(), 1);
  setenv("MOSA_HOST", host->name.c_str(), 1);
  setenv("MOSA_MOUNT", host->mount_point.c_str(), 1);
  setenv("MOSA_MANAGER", state.manager_address.c_str(), 1);
  setenv("MOSA_SECRET", state.plan.secret().c_str(), 1);
  if (!host->net_namespace.empty()) {
    MOSA_RETURN_IF_ERROR(cluster::EnterNetNamespace(host->net_namespace));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return NotFoundError(fmt::format("cannot run '{}': {}", options.command[0], strerror(errno)));
}

}  // namespace

void AddClusterExec(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<ExecOptions>();
  CLI::App* command =
      noun.add_subcommand("exec",
                          "Run a program on a host, with MOSA_MOUNT set to the host's mount\n\n"
                          "  mosa cluster exec h2 -- sh -c 'ls -l $MOSA_MOUNT'\n"
                          "  mosa cluster exec --name second h1 -- ping -c 1 10.213.1.2\n\n"
                          "The exit code is that of the program.");
  AddClusterChoice(*command, options->choice);
  command->add_option("host", options->host, "Name of the host: h1, h2, ...; h0 is the manager's")
      ->required();
  command->add_option("command", options->command, "Program and its arguments, after --")
      ->required();
  command->callback([options, &line] { line.action = [options] { return RunExec(*options); }; });
}

}  // namespace mosa::cli
