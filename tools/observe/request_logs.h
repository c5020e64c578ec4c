// The request logs of a cluster's daemons: ordered by `mosa log`, and read by `mosa follow`, which
// shows one request's path.
#ifndef MOSA_TOOLS_OBSERVE_REQUEST_LOGS_H_
#define MOSA_TOOLS_OBSERVE_REQUEST_LOGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/residence.h"
#include "tools/console/manager.h"

namespace mosa::cli {

struct FollowRequest {
  std::vector<std::string> files;
  std::string trace;
  std::string name = "fuse.read";
  std::string host;
  size_t list = 0;
};

// Gives the order to all daemons and prints the state of their logs.
Status OrderLogs(const ManagerChoice& choice, const ResidenceQuery& query, bool as_json);
// Prints one request's path, or a list of the longest ones.
Status Follow(const FollowRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REQUEST_LOGS_H_
