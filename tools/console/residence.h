// How long requests stayed in the daemons of a cluster, as all of them say when they are asked; the
// difference of two such answers; their JSON.
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
  std::string host;       // Named as its storage node; "-" for the manager, and without one.
  std::string id;         // The node's or client's; empty for the manager.
  std::string failure;    // Why there is no snapshot: one sentence. Empty: there is one.
  // All since the daemon's start, though a difference was asked for: it, or the process that it is
  // now, was not there before.
  bool since_start = false;
  Duration between;  // For a difference: the time between its answers, by its clock. Else 0.
  ResidenceSnapshot snapshot;
};

// "the storage of h2".
std::string Describe(const DaemonResidence& daemon);

struct ClusterResidence {
  std::string cluster;
  // By address without the port: the name of the node that alone has it.
  std::map<std::string, std::string> names;
  std::vector<DaemonResidence> daemons;  // The manager, then nodes, then mounts.
};

// Asks every daemon that the manager knows, several at once; one that is silent for seconds
// is there with the reason. Fails only if the manager does not answer. Peers are as daemons know
// them: addresses of storage nodes' callers, which NamePeers replaces where people read them. An
// order in `query` to their logs of requests goes to all.
Result<ClusterResidence> TakeResidence(sai::AdminClient& manager, const ResidenceQuery& query = {});

// What came between the two, where that is known: rows that the earlier one may lack by truncation
// are left out. A daemon that was there before and is gone, or did not answer before, has that as
// its failure. With the names of the later one.
ClusterResidence Since(const ClusterResidence& later, const ClusterResidence& earlier);

// Peers that have a name by it.
void NamePeers(ClusterResidence& residence);

// Leaves the `rows_max` rows of the most time in all; how many went.
size_t KeepLargest(ClusterResidence& residence, size_t rows_max);

nlohmann::json ToJson(const ClusterResidence& residence);
// InvalidArgument if it is not what ToJson makes.
Result<ClusterResidence> ResidenceFromJson(const nlohmann::json& json);

// Reads one row of a daemon's requests. InvalidArgument if it is not as ToJson makes it.
Result<DurationCounts> TimesFromJson(const nlohmann::json& row);

// What a run's record has of the time between the two answers: at most the 2,000 largest rows, with
// peers by name, or why there are none.
nlohmann::json ResidenceOfRun(const Result<ClusterResidence>& before,
                              const Result<ClusterResidence>& after);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_RESIDENCE_H_
