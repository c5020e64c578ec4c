// What a cluster on one machine consists of, decided before anything is touched.
//
// PlanCluster() is a pure function of what was asked for and of facts about the machine; the plan
// names every namespace, link, address, directory and mount that `up` will make, so that it can be
// shown (--dry-run), kept in the state file, and undone by `down` however far `up` came.
//
// With namespaces (root), every host hN is a network namespace on one bridge, with an address of
// its own, a token bucket in both directions and a tmpfs for its objects. The manager has a host of
// its own, h0, so that its traffic shares nobody's link. Without, hosts are plain processes on
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
  std::string rate;               // As tc writes it ("200mbit"); empty: not shaped.
  std::string ram;                // Per host, what its node may hold.
  std::string chunk_size;         // Empty: the manager's default.
  std::string platform;           // A file for the manager's predictions; empty: none.
  int64_t stripe_width = 0;       // 0: the manager's default.
  std::string default_placement;  // "stripe" or "local".
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
  std::string link;           // The bridge's end of its veth pair; its own end is eth0.
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
  int64_t tmpfs_bytes = 0;  // ram_bytes, and a little for what is no object.
  std::string chunk_size;
  std::string platform;
  int64_t stripe_width = 0;
  std::string default_placement;
  bool passthrough = true;
  bool allow_other = false;
  HostPlan manager;
  std::vector<HostPlan> hosts;

  std::string secrets() const { return directory + "/secrets"; }
  // For whoever asks the manager: admin's.
  std::string secret() const;
  // Where a daemon is told to listen; port 0 in plain clusters, the ready file has the real one.
  std::string ManagerListen() const;
  std::string NodeListen(const HostPlan& host) const;
  // Null if there is no such host.
  const HostPlan* Find(const std::string& host) const;
};

// InvalidArgument with one sentence for whatever cannot be: counts, names, rates, sizes,
// placements; ResourceExhausted if all hosts together want more RAM than there is, or no subnet is
// free.
Result<ClusterPlan> PlanCluster(const UpRequest& request, const Machine& machine);

// InvalidArgument unless it can be part of a namespace's and a directory's name.
Status CheckName(const std::string& name);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_PLAN_H_
