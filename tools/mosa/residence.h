// How long requests stayed in the daemons of a cluster, as all of them say when they are asked; the
// difference of two such answers; their JSON.
#ifndef MOSA_TOOLS_MOSA_RESIDENCE_H_
#define MOSA_TOOLS_MOSA_RESIDENCE_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "common/base/status.h"
#include "common/model/residence.h"

namespace mosa::cli {

struct DaemonResidence {
  std::string component;  // "manager", "storage" or "mount".
  std::string host;       // As its storage node is named; of the manager, and without one, "-".
  std::string id;         // Of the node or client; empty of the manager.
  std::string failure;    // Why there is no snapshot: one sentence. Empty: there is one.
  // All since the daemon's start, though a difference was asked for: it was not there before.
  bool since_start = false;
  ResidenceSnapshot snapshot;
};

struct ClusterResidence {
  std::string cluster;
  std::vector<DaemonResidence> daemons;  // The manager, then nodes, then mounts.
};

// Asks every daemon that the manager knows, several at once; who does not answer within seconds is
// there with the reason. Fails only if the manager does not answer. Peers that are addresses of one
// node alone get its name.
Result<ClusterResidence> TakeResidence(sai::AdminClient& manager);

// What came between the two. Who was there before and is not any more has that as its failure.
ClusterResidence Since(const ClusterResidence& later, const ClusterResidence& earlier);

// Leaves the `rows_max` rows of the most time in all; how many went.
size_t KeepLargest(ClusterResidence& residence, size_t rows_max);

nlohmann::json ToJson(const ClusterResidence& residence);
// InvalidArgument if it is not what ToJson makes.
Result<ClusterResidence> ResidenceFromJson(const nlohmann::json& json);

// What a run's record has of the time between the two answers: at most the 2,000 largest rows, or
// why there are none.
nlohmann::json ResidenceOfRun(const Result<ClusterResidence>& before,
                              const Result<ClusterResidence>& after);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_RESIDENCE_H_
