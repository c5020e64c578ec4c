#include <memory>

#include "tools/mosa/command.h"
#include "tools/mosa/manager.h"

namespace mosa::cli {
namespace {

Status List(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, AskClusterStatus(choice));
  if (line.json) {
    PrintJson(ToJson(status)["nodes"]);
  } else {
    PrintNodes(status);
  }
  return OkStatus();
}

}  // namespace

void AddNode(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("node", "Storage nodes");
  noun->require_subcommand(1);
  noun->fallthrough();
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* command = noun->add_subcommand(
      "list",
      "Every storage node with its state and what it holds\n\n"
      "  mosa node list\n"
      "  mosa node list --manager node1:7400 --secret /etc/mosa/secret.pem --json");
  AddManagerChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return List(*choice, line); }; });
}

}  // namespace mosa::cli
