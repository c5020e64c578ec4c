// Controls the request logs of a cluster's daemons for `mosa log`, and reads them for `mosa
// follow`, which shows the path of one request.
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

// Sends the order to all daemons and prints the state of their logs.
Status OrderLogs(const ManagerChoice& choice, const ResidenceQuery& query, bool as_json);
// Prints the path of one request, or a list of the slowest ones.
Status Follow(const FollowRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REQUEST_LOGS_H_
