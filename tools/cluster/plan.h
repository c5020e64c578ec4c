// Decides what a cluster on one machine consists of, before anything is touched.
//
// PlanCluster() is a pure function of the request and of facts about the machine. The plan names
// every namespace, link, address, directory and mount that `up` will make, so that it can be shown
// (--dry-run), kept in the state file, and undone by `down` however far `up` came.
//
// With namespaces (root), every host hN is a network namespace on one bridge, with its own address,
// a token bucket in both directions and a tmpfs for its objects. The manager has a host of its own,
// h0, so that its traffic shares nobody's link. Without namespaces, hosts are plain processes on
// loopback.
#ifndef MOSA_TOOLS_CLUSTER_PLAN_H_
#define MOSA_TOOLS_CLUSTER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cluster {

struct UpRequest {
  int64_t hosts = 0;
  std::string name;
  std::string rate;               // In the form of tc ("200mbit"); empty: not shaped.
  std::string ram;                // Memory limit of each host's node.
  std::string chunk_size;         // Empty: the manager's default.
  std::string forecasts;          // File of `mosa forecast` for the manager; empty: none.
  int64_t stripe_width = 0;       // 0: the manager's default.
  std::string default_placement;  // "near", "stripe" or "local".
  std::string directory;          // Where clusters keep their directories.
  bool passthrough = true;
  bool allow_other = false;  // Other users may use the mounts (root only).
  bool plain = false;        // Plain processes even as root.
};

// An IPv4 network in host byte order.
struct Subnet {
  uint32_t address = 0;
  uint32_t mask = 0;
};

struct Machine {
  bool root = false;
  int64_t memory_bytes = 0;
  std::vector<Subnet> subnets_taken;
  std::vector<std::string> links_taken;
};

struct HostPlan {
  std::string name;
  std::string net_namespace;  // Empty: the caller's.
  std::string link;           // The bridge's end of its veth pair; the host's end is eth0.
  std::string address;
  std::string directory;
  std::string objects;      // Empty for h0.
  std::string mount_point;  // Empty for h0.
  std::string socket;       // Empty for h0.
};

struct ClusterPlan {
  std::string name;
  std::string directory;
  bool namespaces = false;
  std::string bridge;
  std::string gateway;  // The bridge's address: how this machine reaches the hosts.
  std::string rate;
  int64_t ram_bytes = 0;
  int64_t tmpfs_bytes = 0;  // ram_bytes, and a little for overhead.
  std::string chunk_size;
  std::string forecasts;
  int64_t stripe_width = 0;
  std::string default_placement;
  bool passthrough = true;
  bool allow_other = false;
  HostPlan manager;
  std::vector<HostPlan> hosts;

  std::string secrets() const { return directory + "/secrets"; }
  // The admin's secret, for requests to the manager.
  std::string secret() const;
  // Where a daemon listens; port 0 in plain clusters, whose ready files have the real one.
  std::string ManagerListen() const;
  std::string NodeListen(const HostPlan& host) const;
  // Null if there is no such host.
  const HostPlan* Find(const std::string& host) const;
};

// InvalidArgument, with one sentence, for impossible counts, names, rates, sizes or placements;
// ResourceExhausted if all hosts together need more RAM than there is, or if no subnet is free.
Result<ClusterPlan> PlanCluster(const UpRequest& request, const Machine& machine);

// InvalidArgument unless it can be part of a namespace's and a directory's name.
Status CheckName(const std::string& name);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_PLAN_H_
