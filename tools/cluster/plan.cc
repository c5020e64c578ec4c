#include "tools/cluster/plan.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

#include "common/base/units.h"
#include "tools/cluster/secret.h"

namespace mosa::cluster {
namespace {

constexpr int64_t kHostsMax = 200;
constexpr int64_t kRamMin = int64_t{16} << 20;
// What a RAM disk needs besides objects.
constexpr int64_t kTmpfsOverheadBytes = int64_t{1} << 20;
constexpr int64_t kStripeWidthMax = 1024;
constexpr int kManagerPort = 7400;
constexpr int kNodePort = 7401;
constexpr uint32_t kSubnetMask = 0xffffff00U;

uint32_t Address(uint32_t third, uint32_t fourth) {
  return (10U << 24) | (213U << 16) | (third << 8) | fourth;
}

std::string AddressText(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

Status CheckRate(const std::string& rate) {
  double number = 0;
  const auto [end, error] = std::from_chars(rate.data(), rate.data() + rate.size(), number);
  const std::string_view unit(end, static_cast<size_t>(rate.data() + rate.size() - end));
  double factor = 0;
  if (unit == "kbit") factor = 1e3;
  if (unit == "mbit") factor = 1e6;
  if (unit == "gbit") factor = 1e9;
  const double bits = number * factor;
  if (error != std::errc{} || factor == 0 || !(bits >= 1e6 && bits <= 1e11)) {
    return InvalidArgumentError(fmt::format(
        "--rate '{}' is not a rate between 1mbit and 100gbit: write it like 200mbit or 1gbit",
        rate));
  }
  return OkStatus();
}

bool Taken(const Subnet& wanted, const Machine& machine) {
  return std::any_of(machine.subnets_taken.begin(), machine.subnets_taken.end(),
                     [&](const Subnet& taken) {
                       // A default route covers everything, but takes no network.
                       if (taken.mask == 0) return false;
                       const uint32_t mask = taken.mask & wanted.mask;
                       return (taken.address & mask) == (wanted.address & mask);
                     });
}

// The first number whose bridge and subnet are both free.
Result<uint32_t> ChooseNetwork(const Machine& machine) {
  for (uint32_t number = 0; number < 256; ++number) {
    const Subnet subnet{Address(number, 0), kSubnetMask};
    const std::string bridge = fmt::format("mosa{}", number);
    const bool link_taken = std::find(machine.links_taken.begin(), machine.links_taken.end(),
                                      bridge) != machine.links_taken.end();
    if (!link_taken && !Taken(subnet, machine)) return number;
  }
  return ResourceExhaustedError(
      "none of the 256 networks 10.213.0.0/24 to 10.213.255.0/24 is free: end a cluster first");
}

Status CheckRequest(const UpRequest& request, bool namespaces) {
  MOSA_RETURN_IF_ERROR(CheckName(request.name));
  if (request.hosts < 1 || request.hosts > kHostsMax) {
    return InvalidArgumentError(
        fmt::format("--hosts {} is not between 1 and {}", request.hosts, kHostsMax));
  }
  if (!request.rate.empty()) {
    MOSA_RETURN_IF_ERROR(CheckRate(request.rate));
    if (!namespaces) {
      return InvalidArgumentError(
          "--rate needs network namespaces, and these need root: run as root without --plain, or "
          "leave --rate out");
    }
  }
  if (request.default_placement != "stripe" && request.default_placement != "local" &&
      request.default_placement != "near") {
    return InvalidArgumentError(fmt::format(
        "--default-placement '{}' is neither near, stripe nor local", request.default_placement));
  }
  if (request.stripe_width < 0 || request.stripe_width > kStripeWidthMax) {
    return InvalidArgumentError(
        fmt::format("--stripe-width {} is not between 1 and {}, or 0 for the manager's choice",
                    request.stripe_width, kStripeWidthMax));
  }
  if (!request.chunk_size.empty()) {
    MOSA_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(request.chunk_size));
    if (bytes < 4096 || bytes > (int64_t{1} << 30) || bytes % 4096 != 0) {
      return InvalidArgumentError(
          fmt::format("--chunk-size {} is not a multiple of 4K from 4K to 1G", request.chunk_size));
    }
  }
  if (request.allow_other && !namespaces) {
    return InvalidArgumentError("--allow-other needs root, since only root may serve other users");
  }
  return OkStatus();
}

Result<int64_t> CheckRam(const UpRequest& request, const Machine& machine) {
  MOSA_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(request.ram));
  if (bytes < kRamMin) {
    return InvalidArgumentError(
        fmt::format("--ram {} is less than a node needs, 16M", request.ram));
  }
  if (bytes > machine.memory_bytes / request.hosts) {
    return ResourceExhaustedError(fmt::format(
        "{} host{} with --ram {} need more than this machine's {}: lower --ram or --hosts",
        request.hosts, request.hosts == 1 ? "" : "s", request.ram,
        HumanBytes(machine.memory_bytes)));
  }
  return bytes;
}

HostPlan PlanHost(const ClusterPlan& plan, int64_t index, uint32_t network) {
  HostPlan host;
  host.name = fmt::format("h{}", index);
  host.directory = fmt::format("{}/{}", plan.directory, host.name);
  host.address = "127.0.0.1";
  if (plan.namespaces) {
    host.net_namespace = fmt::format("mosa-{}-{}", plan.name, host.name);
    host.link = fmt::format("mosa{}{}", network, host.name);
    // h0 comes after the last host's number, as .0 is the network itself.
    const auto last =
        index == 0 ? static_cast<uint32_t>(kHostsMax + 1) : static_cast<uint32_t>(index);
    host.address = AddressText(Address(network, last));
  }
  if (index > 0) {
    host.objects = host.directory + "/objects";
    host.mount_point = host.directory + "/mount";
    host.socket = host.directory + "/run/node.sock";
  }
  return host;
}

}  // namespace

Status CheckName(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (name.empty() || name.size() > 32 || name[0] == '-' ||
      !std::all_of(name.begin(), name.end(), fits)) {
    return InvalidArgumentError(fmt::format(
        "--name '{}' is not a cluster name: use 1 to 32 lower-case letters, digits and '-'", name));
  }
  return OkStatus();
}

std::string ClusterPlan::ManagerListen() const {
  return fmt::format("{}:{}", manager.address, namespaces ? kManagerPort : 0);
}

std::string ClusterPlan::secret() const { return SecretFile(secrets(), Role::kAdmin); }

std::string ClusterPlan::NodeListen(const HostPlan& host) const {
  return fmt::format("{}:{}", host.address, namespaces ? kNodePort : 0);
}

const HostPlan* ClusterPlan::Find(const std::string& host) const {
  if (host == manager.name) return &manager;
  const auto found = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostPlan& plan) { return plan.name == host; });
  return found == hosts.end() ? nullptr : &*found;
}

Result<ClusterPlan> PlanCluster(const UpRequest& request, const Machine& machine) {
  ClusterPlan plan;
  plan.namespaces = machine.root && !request.plain;
  MOSA_RETURN_IF_ERROR(CheckRequest(request, plan.namespaces));
  MOSA_ASSIGN_OR_RETURN(plan.ram_bytes, CheckRam(request, machine));
  // The kernel itself enforces this limit on what local programs write by passthrough.
  plan.tmpfs_bytes = plan.ram_bytes + kTmpfsOverheadBytes;
  plan.name = request.name;
  plan.directory = fmt::format("{}/{}", request.directory, request.name);
  plan.rate = request.rate;
  plan.chunk_size = request.chunk_size;
  plan.forecasts = request.forecasts;
  plan.stripe_width = request.stripe_width;
  plan.default_placement = request.default_placement;
  plan.passthrough = request.passthrough;
  plan.allow_other = request.allow_other;
  uint32_t network = 0;
  if (plan.namespaces) {
    MOSA_ASSIGN_OR_RETURN(network, ChooseNetwork(machine));
    plan.bridge = fmt::format("mosa{}", network);
    plan.gateway = AddressText(Address(network, 254));
  }
  plan.manager = PlanHost(plan, 0, network);
  for (int64_t i = 1; i <= request.hosts; ++i) plan.hosts.push_back(PlanHost(plan, i, network));
  if (plan.hosts.back().socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return InvalidArgumentError(
        fmt::format("--dir {} is too long for sockets below it", request.directory));
  }
  return plan;
}

}  // namespace mosa::cluster
