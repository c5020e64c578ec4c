#include "tools/cluster/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cluster/process.h"

namespace mosa::cluster {
namespace {

bool LinkExists(const std::string& name) {
  return std::filesystem::exists("/sys/class/net/" + name);
}

constexpr const char* kNamespaceDirectory = "/run/netns";

// The name of the source that is mounted on /run/netns, or nothing.
std::string NamespaceDirectorySource() {
  std::ifstream file("/proc/self/mounts");
  std::string source;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string from;
    std::string point;
    fields >> from >> point;
    if (point == kNamespaceDirectory) source = from;
  }
  return source;
}

// ip(8) mounts /run/netns on itself before the first namespace, and never unmounts it. A tmpfs of
// our own serves as well, and RemoveNetwork() recognizes it by its source.
Status PrepareNamespaceDirectory() {
  if (!NamespaceDirectorySource().empty()) return OkStatus();
  std::error_code error;
  std::filesystem::create_directories(kNamespaceDirectory, error);
  if (!std::filesystem::is_empty(kNamespaceDirectory, error)) return OkStatus();
  if (mount("mosa", kNamespaceDirectory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
            "size=1M,mode=0755") != 0) {
    return FailedPreconditionError(
        fmt::format("cannot mount {}: {}", kNamespaceDirectory, strerror(errno)));
  }
  return OkStatus();
}

void RestoreNamespaceDirectory() {
  std::error_code error;
  if (NamespaceDirectorySource() == "mosa" &&
      std::filesystem::is_empty(kNamespaceDirectory, error) &&
      umount2(kNamespaceDirectory, UMOUNT_NOFOLLOW) == 0) {
    rmdir(kNamespaceDirectory);
  }
}

std::vector<const HostPlan*> AllHosts(const ClusterPlan& plan) {
  std::vector<const HostPlan*> all = {&plan.manager};
  for (const HostPlan& host : plan.hosts) all.push_back(&host);
  return all;
}

}  // namespace

std::string ToText(const NetworkStep& step) {
  if (step.net_namespace.empty()) return fmt::format("{} {}", step.tool, step.line);
  return fmt::format("{} -n {} {}", step.tool, step.net_namespace, step.line);
}

std::vector<NetworkStep> PlanNetwork(const ClusterPlan& plan) {
  std::vector<NetworkStep> steps;
  if (!plan.namespaces) return steps;
  steps.push_back({"ip", "", fmt::format("link add {} type bridge", plan.bridge)});
  steps.push_back({"ip", "", fmt::format("addr add {}/24 dev {}", plan.gateway, plan.bridge)});
  steps.push_back({"ip", "", fmt::format("link set {} up", plan.bridge)});
  const auto hosts = AllHosts(plan);
  for (const HostPlan* host : hosts) {
    steps.push_back({"ip", "", fmt::format("netns add {}", host->net_namespace)});
    steps.push_back({"ip", "",
                     fmt::format("link add {} type veth peer name eth0 netns {}", host->link,
                                 host->net_namespace)});
    steps.push_back({"ip", "", fmt::format("link set {} master {} up", host->link, plan.bridge)});
  }
  for (const HostPlan* host : hosts) {
    steps.push_back({"ip", host->net_namespace, "link set lo up"});
    steps.push_back(
        {"ip", host->net_namespace, fmt::format("addr add {}/24 dev eth0", host->address)});
    steps.push_back({"ip", host->net_namespace, "link set eth0 up"});
  }
  if (plan.rate.empty()) return steps;
  const auto bucket = [&](const std::string& device) {
    return fmt::format("qdisc add dev {} root tbf rate {} burst 256kb latency 50ms", device,
                       plan.rate);
  };
  for (const HostPlan* host : hosts) steps.push_back({"tc", "", bucket(host->link)});
  for (const HostPlan* host : hosts) steps.push_back({"tc", host->net_namespace, bucket("eth0")});
  return steps;
}

Status ApplyNetwork(const std::vector<NetworkStep>& steps) {
  if (!steps.empty()) MOSA_RETURN_IF_ERROR(PrepareNamespaceDirectory());
  for (size_t i = 0; i < steps.size();) {
    const NetworkStep& first = steps[i];
    std::string lines;
    for (; i < steps.size() && steps[i].tool == first.tool &&
           steps[i].net_namespace == first.net_namespace;
         ++i) {
      lines += steps[i].line + "\n";
    }
    std::vector<std::string> argv = {first.tool};
    if (!first.net_namespace.empty()) argv.insert(argv.end(), {"-n", first.net_namespace});
    argv.insert(argv.end(), {"-batch", "-"});
    MOSA_ASSIGN_OR_RETURN(const std::string output, RunCommand(argv, lines));
    if (InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  }
  return OkStatus();
}

Status RemoveNetwork(const ClusterPlan& plan) {
  if (!plan.namespaces) return OkStatus();
  std::vector<NetworkStep> steps;
  // Removes links first: a namespace's own links are destroyed only some time after its name is
  // gone.
  for (const HostPlan* host : AllHosts(plan)) {
    if (LinkExists(host->link)) steps.push_back({"ip", "", "link del " + host->link});
  }
  if (LinkExists(plan.bridge)) steps.push_back({"ip", "", "link del " + plan.bridge});
  for (const HostPlan* host : AllHosts(plan)) {
    if (std::filesystem::exists("/run/netns/" + host->net_namespace)) {
      steps.push_back({"ip", "", "netns del " + host->net_namespace});
    }
  }
  Status result;
  for (const NetworkStep& step : steps) {
    const auto done = RunCommand({step.tool, "-batch", "-"}, step.line + "\n");
    if (!done.ok()) result = done.status();
  }
  RestoreNamespaceDirectory();
  return result;
}

std::vector<Subnet> SubnetsTaken() {
  std::vector<Subnet> subnets;
  std::ifstream file("/proc/net/route");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string device;
    std::string skipped;
    uint32_t address = 0;
    uint32_t mask = 0;
    fields >> device >> std::hex >> address;
    // Gateway, Flags, RefCnt, Use, Metric.
    for (int i = 0; i < 5; ++i) fields >> skipped;
    fields >> mask;
    if (fields) subnets.push_back({ntohl(address), ntohl(mask)});
  }
  return subnets;
}

std::vector<std::string> LinksTaken() {
  std::vector<std::string> links;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", error)) {
    links.push_back(entry.path().filename());
  }
  return links;
}

}  // namespace mosa::cluster
