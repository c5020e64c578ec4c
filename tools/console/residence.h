// How long requests stayed in the daemons of a cluster, as the daemons report it; the difference of
// two such reports; their JSON.
#ifndef MOSA_TOOLS_CONSOLE_RESIDENCE_H_
#define MOSA_TOOLS_CONSOLE_RESIDENCE_H_

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "common/base/status.h"
#include "common/model/residence.h"

namespace mosa::cli {

struct DaemonResidence {
  std::string component;  // "manager", "storage" or "mount".
  std::string host;       // The name of its storage node; "-" for the manager, and without a node.
  std::string id;         // Id of the node or client; empty for the manager.
  std::string failure;    // Why there is no snapshot: one sentence. Empty: there is one.
  // Everything since the daemon's start, although a difference was requested: the daemon, or its
  // present process, did not exist before.
  bool since_start = false;
  Duration between;  // For a difference: the time between its answers, by its clock. Else 0.
  ResidenceSnapshot snapshot;
};

// "the storage of h2".
std::string Describe(const DaemonResidence& daemon);

struct ClusterResidence {
  std::string cluster;
  // By address without the port: the name of the only node that has it.
  std::map<std::string, std::string> names;
  std::vector<DaemonResidence> daemons;  // The manager, then nodes, then mounts.
};

// Asks every daemon that the manager knows, several at once; a daemon that is silent for seconds is
// included with the reason. Fails only if the manager does not answer. Peers are as daemons know
// them: for callers of storage nodes, addresses, which NamePeers replaces for display. An order in
// `query` to request logs goes to all daemons.
Result<ClusterResidence> TakeResidence(sai::AdminClient& manager, const ResidenceQuery& query = {});

// What came between the two, where that is known: leaves out rows that the earlier one may have
// dropped. A daemon that was there before and is gone, or that did not answer before, has that as
// its failure. Uses the names of the later one.
ClusterResidence Since(const ClusterResidence& later, const ClusterResidence& earlier);

// Replaces peers by their names, where known.
void NamePeers(ClusterResidence& residence);

// Keeps the `rows_max` rows with the largest total time. Returns how many it dropped.
size_t KeepLargest(ClusterResidence& residence, size_t rows_max);

nlohmann::json ToJson(const ClusterResidence& residence);
// InvalidArgument if it does not have the form that ToJson writes.
Result<ClusterResidence> ResidenceFromJson(const nlohmann::json& json);

// Reads one row of a daemon's requests. InvalidArgument if it does not have the form that ToJson
// writes.
Result<DurationCounts> TimesFromJson(const nlohmann::json& row);

// The part of a run's record about the time between the two answers: at most the 2,000 largest
// rows, with peers by name, or the reason why there are none.
nlohmann::json ResidenceOfRun(const Result<ClusterResidence>& before,
                              const Result<ClusterResidence>& after);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_RESIDENCE_H_
