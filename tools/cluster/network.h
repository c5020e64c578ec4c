// The emulated network of a cluster: one bridge, a namespace and a veth pair for every host, a
// token bucket at both ends of each pair (bursts of 256 KB: below 64 KB they burn the CPU).
//
// The plan is a list of lines for ip(8) and tc(8), so that --dry-run can print it.
#ifndef MOSA_TOOLS_CLUSTER_NETWORK_H_
#define MOSA_TOOLS_CLUSTER_NETWORK_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/cluster/plan.h"

namespace mosa::cluster {

struct NetworkStep {
  std::string tool;           // "ip" or "tc".
  std::string net_namespace;  // Where it acts; empty: in the caller's.
  std::string line;
};

// As a person would type it.
std::string ToText(const NetworkStep& step);

std::vector<NetworkStep> PlanNetwork(const ClusterPlan& plan);

// Carries out the steps in order, and combines neighbours with the same tool and namespace into one
// call. On failure some steps are done: RemoveNetwork() undoes any part.
Status ApplyNetwork(const std::vector<NetworkStep>& steps);

// Removes the cluster's links and namespaces, as far as they exist.
Status RemoveNetwork(const ClusterPlan& plan);

// IPv4 networks that this machine has routes to, and the names of its links.
std::vector<Subnet> SubnetsTaken();
std::vector<std::string> LinksTaken();

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_NETWORK_H_
