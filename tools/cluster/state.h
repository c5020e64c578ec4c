// The state file of a cluster: its plan and the processes that were started for it.
//
// Written whole (under another name, then renamed) before each effect that it describes, so that
// `down` can undo whatever happened before a crash. Mode 0600, as its directory is private.
#ifndef MOSA_TOOLS_CLUSTER_STATE_H_
#define MOSA_TOOLS_CLUSTER_STATE_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/cluster/plan.h"
#include "tools/cluster/process.h"

namespace mosa::cluster {

struct Daemon {
  std::string kind;  // "manager", "storage" or "mount".
  std::string host;
  ProcessId process;
};

struct ClusterState {
  ClusterPlan plan;
  std::string boot_id;          // Processes of another boot are gone, whatever their numbers.
  bool complete = false;        // `up` has finished.
  ProcessId starter;            // The running `up`, while not complete.
  std::string manager_address;  // HOST:PORT; empty before it serves.
  std::vector<Daemon> daemons;

  std::string path() const { return plan.directory + "/state.json"; }
  bool manager_runs() const;
};

Status Save(const ClusterState& state);

// NotFound if there is no such cluster in `directory`, DataLoss if its state file cannot be parsed.
// Drops processes of an earlier boot.
Result<ClusterState> Load(const std::string& directory, const std::string& name);

// Names of all clusters in `directory`, sorted.
std::vector<std::string> ListClusters(const std::string& directory);

// Where clusters are kept by default: /run/mosa for root, /dev/shm/mosa-UID for others.
std::string DefaultDirectory();

std::string BootId();

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_STATE_H_
