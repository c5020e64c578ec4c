#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <memory>

#include "common/base/units.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

// One host: the state of its processes, and its node as the manager sees it, if the manager
// answers.
struct HostView {
  const cluster::HostPlan* plan = nullptr;
  const cluster::Daemon* storage = nullptr;
  const cluster::Daemon* mount = nullptr;
  const NodeStatus* node = nullptr;
};

struct View {
  cluster::ClusterState state;
  const cluster::Daemon* manager = nullptr;
  Result<ClusterStatus> status = UnavailableError("not asked");
  std::vector<HostView> hosts;
};

const cluster::Daemon* FindDaemon(const cluster::ClusterState& state, const std::string& kind,
                                  const std::string& host) {
  for (const cluster::Daemon& daemon : state.daemons) {
    if (daemon.kind == kind && daemon.host == host) return &daemon;
  }
  return nullptr;
}

bool Runs(const cluster::Daemon* daemon) {
  return daemon != nullptr && cluster::IsAlive(daemon->process);
}

std::string StateOf(const cluster::Daemon* daemon) {
  if (daemon == nullptr) return "not started";
  return Runs(daemon) ? fmt::format("running ({})", daemon->process.pid) : "dead";
}

nlohmann::json ToJson(const cluster::Daemon* daemon) {
  nlohmann::json json = {{"running", Runs(daemon)}, {"pid", nullptr}};
  if (daemon != nullptr) json["pid"] = daemon->process.pid;
  return json;
}

Result<ClusterStatus> AskManager(const ClusterChoice& choice) {
  ManagerChoice manager;
  manager.cluster = choice;
  return AskClusterStatus(manager);
}

Result<std::unique_ptr<View>> Look(const ClusterChoice& choice) {
  const std::string directory = std::filesystem::absolute(choice.directory).lexically_normal();
  auto view = std::make_unique<View>();
  MOSA_ASSIGN_OR_RETURN(view->state, cluster::Load(directory, choice.name));
  const cluster::ClusterState& state = view->state;
  view->manager = FindDaemon(state, "manager", state.plan.manager.name);
  if (Runs(view->manager)) view->status = AskManager(choice);
  for (const cluster::HostPlan& plan : state.plan.hosts) {
    HostView host;
    host.plan = &plan;
    host.storage = FindDaemon(state, "storage", plan.name);
    host.mount = FindDaemon(state, "mount", plan.name);
    if (view->status.ok()) {
      for (const NodeStatus& node : view->status->nodes) {
        if (node.address.name == plan.name) host.node = &node;
      }
    }
    view->hosts.push_back(host);
  }
  return view;
}

// Bytes that the node's objects occupy: as reported to the manager, else as its own tmpfs reports.
uint64_t UsedBytes(const cluster::ClusterPlan& plan, const HostView& host) {
  if (host.node != nullptr) return host.node->used_bytes;
  struct statvfs space {};
  if (!plan.namespaces || statvfs(host.plan->objects.c_str(), &space) != 0) return 0;
  return (space.f_blocks - space.f_bfree) * space.f_frsize;
}

void PrintAsJson(const View& view) {
  const cluster::ClusterPlan& plan = view.state.plan;
  nlohmann::json hosts = nlohmann::json::array();
  for (const HostView& host : view.hosts) {
    nlohmann::json json = {{"name", host.plan->name},
                           {"address", host.plan->address},
                           {"namespace", host.plan->net_namespace},
                           {"mount_point", host.plan->mount_point},
                           {"storage", ToJson(host.storage)},
                           {"mount", ToJson(host.mount)},
                           {"used_bytes", UsedBytes(plan, host)},
                           {"limit_bytes", plan.ram_bytes},
                           {"node_state", nullptr}};
    if (host.node != nullptr) json["node_state"] = ToText(host.node->address.state);
    hosts.push_back(std::move(json));
  }
  nlohmann::json manager = ToJson(view.manager);
  manager["address"] = view.state.manager_address;
  manager["answers"] = view.status.ok();
  PrintJson({{"name", plan.name},
             {"directory", plan.directory},
             {"namespaces", plan.namespaces},
             {"complete", view.state.complete},
             {"rate", plan.rate},
             {"secret", plan.secret()},
             {"manager", std::move(manager)},
             {"hosts", std::move(hosts)}});
}

void PrintAsTable(const View& view) {
  const cluster::ClusterPlan& plan = view.state.plan;
  Table manager({"MANAGER", "ADDRESS", "STATE"});
  manager.Add({plan.manager.name, view.state.manager_address, StateOf(view.manager)});
  manager.Print();
  Table table({"HOST", "ADDRESS", "STORAGE", "NODE", "MOUNT", "USED", "LIMIT", "AT"});
  for (const HostView& host : view.hosts) {
    table.Add({host.plan->name, host.plan->address, StateOf(host.storage),
               host.node == nullptr ? "?" : ToText(host.node->address.state), StateOf(host.mount),
               HumanBytes(static_cast<int64_t>(UsedBytes(plan, host))), HumanBytes(plan.ram_bytes),
               host.plan->mount_point});
  }
  table.Print();
}

// Returns Unavailable if any daemon is not running, so that scripts can test the exit code.
Status Verdict(const View& view) {
  std::vector<std::string> missing;
  if (!Runs(view.manager)) missing.push_back("the manager");
  for (const HostView& host : view.hosts) {
    if (!Runs(host.storage)) missing.push_back("storage of " + host.plan->name);
    if (!Runs(host.mount)) missing.push_back("mount of " + host.plan->name);
  }
  const std::string name = " --name " + view.state.plan.name;
  const char* is = missing.size() == 1 ? "is" : "are";
  if (!Runs(view.manager) && view.state.complete) {
    return UnavailableError(
        fmt::format("{0} {2} not running: 'mosa cluster restart{1}' restarts the manager, 'mosa "
                    "cluster down{1} --discard' ends the cluster and deletes what it stores",
                    fmt::join(missing, ", "), name, is));
  }
  if (!missing.empty()) {
    return UnavailableError(
        fmt::format("{} {} not running: 'mosa cluster down{}' ends the cluster and deletes what it "
                    "stores",
                    fmt::join(missing, ", "), is, name));
  }
  return view.status.status();
}

Status RunStatus(const ClusterChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto view, Look(choice));
  if (line.json) {
    PrintAsJson(*view);
  } else {
    PrintAsTable(*view);
  }
  return Verdict(*view);
}

}  // namespace

void AddClusterStatus(CLI::App& noun, CommandLine& line) {
  auto choice = std::make_shared<ClusterChoice>();
  CLI::App* command = noun.add_subcommand(
      "status",
      "Show the daemons, mount and space of each host; exit code 5 if a daemon is down\n\n"
      "  mosa cluster status\n"
      "  mosa cluster status --name second --json");
  AddClusterChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return RunStatus(*choice, line); }; });
}

}  // namespace mosa::cli
