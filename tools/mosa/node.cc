#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "common/base/time.h"
#include "tools/cluster/process.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr Duration kLookAgain = Milliseconds(500);

Status ListNodes(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, AskClusterStatus(choice));
  if (line.json) {
    PrintJson(ToJson(status)["nodes"]);
  } else {
    PrintNodes(status);
  }
  return OkStatus();
}

struct DrainOptions {
  ManagerChoice manager;
  std::string node;
  bool wait = false;
};

// Waits until no file has bytes on the node; prints how many files are left.
Status AwaitDrained(const DrainOptions& options) {
  std::optional<uint64_t> shown;
  while (true) {
    MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, AskClusterStatus(options.manager));
    const auto node = std::find_if(status.nodes.begin(), status.nodes.end(), [&](const auto& each) {
      return each.address.name == options.node;
    });
    if (node == status.nodes.end() || node->address.state != NodeState::kDraining)
      return UnavailableError(fmt::format("node {} is no longer draining", options.node));
    if (node->files_left == 0U) return OkStatus();
    if (node->files_left && node->files_left != shown)
      fmt::print(stderr, "{}: {} left\n", options.node, Counted(*node->files_left, "file"));
    shown = node->files_left;
    cluster::Pause(kLookAgain);
  }
}

Status Drain(const DrainOptions& options, bool drain, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_RETURN_IF_ERROR(manager->DrainNode(options.node, drain));
  if (options.wait) MOSA_RETURN_IF_ERROR(AwaitDrained(options));
  const char* state = !drain ? "live" : options.wait ? "drained" : "draining";
  if (line.json) {
    PrintJson({{"name", options.node}, {"state", state}});
  } else {
    fmt::print("{} is {}\n", options.node, state);
  }
  return OkStatus();
}

void AddDrain(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* command =
      noun.add_subcommand("drain",
                          "Move everything off a node, so that it can be stopped without loss\n\n"
                          "  mosa node drain h3 --wait && systemctl stop mosa-storage");
  command->add_option("node", options->node, "Name of the node")->required();
  command->add_flag("--wait", options->wait, "Wait until no file has bytes on the node");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Drain(*options, true, line); }; });
}

void AddUndrain(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* command = noun.add_subcommand("undrain",
                                          "Let a drained node take files again\n\n"
                                          "  mosa node undrain h3");
  command->add_option("node", options->node, "Name of the node")->required();
  AddManagerChoice(*command, options->manager);
  command->callback([options, &line] {
    line.action = [options, &line] { return Drain(*options, false, line); };
  });
}

}  // namespace

void AddNode(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("node", "List and drain storage nodes");
  noun->require_subcommand(1);
  noun->fallthrough();
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* command = noun->add_subcommand(
      "list",
      "List the storage nodes with their state and space\n\n"
      "  mosa node list\n"
      "  mosa node list --manager node1:7400 --secret /etc/mosa/admin.pem --json");
  AddManagerChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return ListNodes(*choice, line); }; });
  AddDrain(*noun, line);
  AddUndrain(*noun, line);
}

}  // namespace mosa::cli
