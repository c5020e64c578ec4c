#include <fmt/format.h>

#include <memory>

#include "tools/mosa/command.h"
#include "tools/mosa/manager.h"

namespace mosa::cli {
namespace {

Status Run(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, AskClusterStatus(choice));
  if (line.json) {
    PrintJson(ToJson(status));
    return OkStatus();
  }
  fmt::print("Cluster '{}': {} files, {} directories, {} nodes, {} mounts{}\n", status.cluster_name,
             status.files, status.directories, status.nodes.size(), status.sessions.size(),
             status.in_grace ? ", waiting for mounts to come back" : "");
  PrintNodes(status);
  Table mounts({"MOUNT OF", "STATE", "OPEN", "AT"});
  for (const SessionStatus& session : status.sessions) {
    mounts.Add({session.start.node_name.empty() ? "-" : session.start.node_name,
                session.connected ? "connected" : "away", fmt::format("{}", session.open_files),
                session.start.mount_point});
  }
  mounts.Print();
  return OkStatus();
}

}  // namespace

void AddStatus(CLI::App& app, CommandLine& line) {
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* command =
      app.add_subcommand("status",
                         "What the manager knows: nodes, mounts, files\n\n"
                         "  mosa status --manager node1:7400 --secret /etc/mosa/admin.pem\n"
                         "  mosa status --json | jq '.nodes[].used_bytes'");
  AddManagerChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return Run(*choice, line); }; });
}

}  // namespace mosa::cli
