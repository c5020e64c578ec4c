// How commands find the manager, and how they show its answers.
#ifndef MOSA_TOOLS_CONSOLE_MANAGER_H_
#define MOSA_TOOLS_CONSOLE_MANAGER_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "client-sai/api/admin_client.h"
#include "common/base/status.h"
#include "common/model/status.h"
#include "tools/console/cluster_choice.h"

namespace mosa::cli {

struct ManagerChoice {
  std::string address;  // Empty: the manager of the cluster that `cluster` names.
  std::string secret;
  ClusterChoice cluster;
};

// Connects to it. Errors as for Load() of a cluster and LoadSecret().
Result<std::unique_ptr<sai::AdminClient>> ConnectManager(const ManagerChoice& choice);

// The same for the manager of the mount at `mount_point`: by default, that of the cluster on this
// machine to which the mount belongs. FailedPrecondition if the manager has no such mount.
Result<std::unique_ptr<sai::AdminClient>> ConnectManagerOf(ManagerChoice choice,
                                                           const std::string& mount_point);

// The cluster as its manager sees it, nodes and mounts by name.
Result<ClusterStatus> AskClusterStatus(const ManagerChoice& choice);

// "live", "silent", "lost", "draining".
std::string ToText(NodeState state);

nlohmann::json ToJson(const NodeStatus& node, Time now);
nlohmann::json ToJson(const ClusterStatus& status);
nlohmann::json ToJson(const FileStatus& file);

// Prints one row per node: name, state, address, used, granted, limit, objects.
void PrintNodes(const ClusterStatus& status);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_MANAGER_H_
