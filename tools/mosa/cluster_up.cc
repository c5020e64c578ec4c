#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>

#include "common/base/units.h"
#include "tools/cluster/lifecycle.h"
#include "tools/cluster/network.h"
#include "tools/console/output.h"
#include "tools/forecast/manager_forecasts.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

struct UpOptions {
  ClusterChoice choice;
  cluster::UpRequest request;
  bool no_passthrough = false;
  bool dry_run = false;
};

nlohmann::json ToJson(const cluster::ClusterPlan& plan, const std::string& manager_address) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const cluster::HostPlan& host : plan.hosts) {
    hosts.push_back({{"name", host.name},
                     {"address", host.address},
                     {"namespace", host.net_namespace},
                     {"mount", host.mount_point}});
  }
  return {
      {"name", plan.name},          {"directory", plan.directory}, {"namespaces", plan.namespaces},
      {"manager", manager_address}, {"secret", plan.secret()},     {"ram_bytes", plan.ram_bytes},
      {"rate", plan.rate},          {"hosts", std::move(hosts)}};
}

void PrintHosts(const cluster::ClusterPlan& plan) {
  Table table({"HOST", "ADDRESS", "MOUNT"});
  for (const cluster::HostPlan& host : plan.hosts) {
    table.Add({host.name, host.address, host.mount_point});
  }
  table.Print();
}

Status ShowPlan(const cluster::ClusterPlan& plan, const CommandLine& line) {
  const auto steps = cluster::PlanNetwork(plan);
  if (line.json) {
    nlohmann::json json = ToJson(plan, plan.ManagerListen());
    json["dry_run"] = true;
    json["network"] = nlohmann::json::array();
    for (const auto& step : steps) json["network"].push_back(cluster::ToText(step));
    PrintJson(json);
    return OkStatus();
  }
  for (const auto& step : steps) fmt::print("{}\n", cluster::ToText(step));
  PrintHosts(plan);
  fmt::print(stderr, "Nothing was started (--dry-run).\n");
  return OkStatus();
}

void Explain(const cluster::ClusterPlan& plan, const UpOptions& options) {
  std::string choice;
  if (options.choice.name != ClusterChoice().name) choice += " --name " + options.choice.name;
  if (options.choice.directory != ClusterChoice().directory) {
    choice += " --dir " + options.choice.directory;
  }
  fmt::print(stderr,
             "Cluster '{}' is up: {} host{} with {} each{}.\n"
             "Run a program on a host:  mosa cluster exec{} h1 -- sh -c 'ls -l $MOSA_MOUNT'\n"
             "Inspect it, stop it:      mosa cluster status{} ; mosa cluster down{}\n",
             plan.name, plan.hosts.size(), plan.hosts.size() == 1 ? "" : "s",
             HumanBytes(plan.ram_bytes), plan.rate.empty() ? "" : " and " + plan.rate, choice,
             choice, choice);
  std::string names;
  if (options.choice.name != ClusterChoice().name) names += " MOSA_CLUSTER=" + options.choice.name;
  if (options.choice.directory != ClusterChoice().directory)
    names += " MOSA_CLUSTER_DIR=" +
             std::filesystem::absolute(options.choice.directory).lexically_normal().string();
  if (!names.empty()) fmt::print(stderr, "Make it the default:       export{}\n", names);
}

Status RunUp(const UpOptions& options, const CommandLine& line) {
  cluster::UpRequest request = options.request;
  request.name = options.choice.name;
  request.directory = std::filesystem::absolute(options.choice.directory).lexically_normal();
  request.passthrough = !options.no_passthrough;
  if (!request.forecasts.empty()) {
    request.forecasts = std::filesystem::absolute(request.forecasts).lexically_normal();
    MOSA_RETURN_IF_ERROR(CheckForecastFile(request.forecasts));
  }
  if (options.dry_run) {
    MOSA_ASSIGN_OR_RETURN(const auto plan,
                          cluster::PlanCluster(request, cluster::InspectMachine()));
    return ShowPlan(plan, line);
  }
  // Planned twice: bad input is refused before anything is touched, and only under the lock is it
  // certain what is free on this machine.
  MOSA_RETURN_IF_ERROR(cluster::PlanCluster(request, cluster::InspectMachine()).status());
  // Lives until the process ends: a command that died of a late signal would suggest that no
  // cluster is running.
  alignas(cluster::InterruptGuard) static std::byte place[sizeof(cluster::InterruptGuard)];
  new (place) cluster::InterruptGuard;
  MOSA_ASSIGN_OR_RETURN(auto lock, cluster::DirectoryLock::Take(request.directory));
  MOSA_ASSIGN_OR_RETURN(const auto plan, cluster::PlanCluster(request, cluster::InspectMachine()));
  const std::string binaries = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto state = cluster::Up(plan, binaries, std::move(lock));
  if (!state.ok() && cluster::InterruptGuard::Interrupted() != 0) {
    return AbortedError("interrupted: everything that had been started was stopped again");
  }
  MOSA_RETURN_IF_ERROR(state.status());
  if (line.json) {
    PrintJson(ToJson(plan, state->manager_address));
  } else {
    PrintHosts(plan);
    Explain(plan, options);
  }
  return OkStatus();
}

}  // namespace

void AddClusterUp(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<UpOptions>();
  cluster::UpRequest& request = options->request;
  request.hosts = 4;
  request.ram = "1G";
  request.default_placement = "stripe";
  CLI::App* command = noun.add_subcommand(
      "up",
      "Start a cluster: a manager, and a storage node and a mount on each host\n\n"
      "  mosa cluster up --hosts 4 --rate 200mbit\n"
      "  mosa cluster up --name second --hosts 2 --ram 256M --default-placement local\n\n"
      "As root, each host is a network namespace. Otherwise, hosts are plain processes on\n"
      "loopback.");
  AddClusterChoice(*command, options->choice);
  command->add_option("--hosts", request.hosts, "Number of hosts, 1 to 200")->capture_default_str();
  command->add_option(
      "--rate", request.rate,
      "Link rate of each host in each direction, such as 200mbit; default: unlimited");
  command->add_option("--ram", request.ram, "Memory limit of each storage node")
      ->capture_default_str();
  command->add_option("--chunk-size", request.chunk_size,
                      "Chunk size of files without a hint, a multiple of 4K up to 1G; default: 1M");
  command->add_option("--stripe-width", request.stripe_width,
                      "Nodes per striped file without a hint; default: 0, all nodes");
  command
      ->add_option("--default-placement", request.default_placement,
                   "Placement of files without a hint: near, stripe or local")
      ->capture_default_str();
  command->add_option("--forecasts", request.forecasts,
                      "File written by 'mosa forecast', for costs of reading and replicas=auto");
  command->add_flag("--no-passthrough", options->no_passthrough,
                    "Never let the kernel access local objects directly (FUSE passthrough)");
  command->add_flag("--allow-other", request.allow_other,
                    "Let other users access the mounts; needs root");
  command->add_flag("--plain", request.plain,
                    "Run hosts as plain processes on loopback, even as root");
  command->add_flag("--dry-run", options->dry_run,
                    "Print what would be created, but create nothing");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunUp(*options, line); }; });
}

}  // namespace mosa::cli
