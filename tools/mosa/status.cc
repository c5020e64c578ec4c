#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/base/units.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

std::string AmountText(uint64_t amount, bool is_bytes) {
  return is_bytes ? FormatBytes(static_cast<int64_t>(std::min<uint64_t>(amount, INT64_MAX)))
                  : fmt::format("{}", amount);
}

void PrintLimits(const ClusterStatus& status) {
  if (!status.growth_refused.empty()) fmt::print("FULL: {}\n", status.growth_refused);
  Table limits({"LIMIT", "USED", "MAX", "%"});
  for (const LimitStatus& limit : status.limits) {
    const bool has_limit = limit.limit > 0;
    const double percent =
        has_limit ? 100.0 * static_cast<double>(limit.used) / static_cast<double>(limit.limit) : 0;
    limits.Add({limit.name, AmountText(limit.used, limit.is_bytes),
                has_limit ? AmountText(limit.limit, limit.is_bytes) : "-",
                has_limit ? fmt::format("{:.1f}", percent) : "-"});
  }
  limits.Print();
}

Status ShowStatus(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, AskClusterStatus(choice));
  if (line.json) {
    PrintJson(ToJson(status));
    return OkStatus();
  }
  fmt::print("Cluster '{}': {}, {}, {}, {}{}\n", status.cluster_name, Counted(status.files, "file"),
             Counted(status.directories, "directory"), Counted(status.nodes.size(), "node"),
             Counted(status.sessions.size(), "mount"),
             status.in_grace ? ", waiting for mounts to reconnect" : "");
  PrintNodes(status);
  Table mounts({"MOUNT ON", "STATE", "OPEN", "AT"});
  for (const SessionStatus& session : status.sessions) {
    mounts.Add({session.start.node_name.empty() ? "-" : session.start.node_name,
                session.connected ? "connected" : "away", fmt::format("{}", session.open_files),
                session.start.mount_point});
  }
  mounts.Print();
  PrintLimits(status);
  return OkStatus();
}

}  // namespace

void AddStatus(CLI::App& app, CommandLine& line) {
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* command =
      app.add_subcommand("status",
                         "Show nodes, mounts, numbers of files, and how close the limits are\n\n"
                         "  mosa status --manager node1:7400 --secret /etc/mosa/admin.pem\n"
                         "  mosa status --json | jq '.nodes[].used_bytes'");
  AddManagerChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return ShowStatus(*choice, line); }; });
}

}  // namespace mosa::cli
