// What `mosa where` does: the nodes that hold files, or what reading them would cost each host.
#ifndef MOSA_TOOLS_OBSERVE_WHERE_H_
#define MOSA_TOOLS_OBSERVE_WHERE_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tools/console/manager.h"

namespace mosa::cli {

// Lines that are not empty; of "-", of standard input. InvalidArgument if there are more than
// `lines_max`.
Status ReadLines(const std::string& from, size_t lines_max, std::vector<std::string>& lines);

// By mount point, which of `paths` are on it: their indices, and their paths in the store. Those on
// no mount are missing. One look at each directory.
std::map<std::string, std::vector<std::pair<size_t, std::string>>> ByMount(
    const std::vector<std::string>& paths);

struct LocationsRequest {
  std::vector<std::string> paths;
  std::string from;
  bool chunks = false;
  bool in_store = false;
  bool cost = false;
  std::vector<std::string> hosts;
  ManagerChoice manager;
};

// Prints where each file is. Answers for every path that has an answer; the failure is the first
// one's.
Status ShowLocations(const LocationsRequest& options, bool as_json);

// What reading sets of files would cost each host.
struct CostOptions {
  std::vector<std::string> paths;  // One set.
  std::string from;                // Sets, a line each.
  std::vector<std::string> hosts;  // None: all.
  bool in_store = false;
  ManagerChoice manager;
};
// Answers for every set that has an answer; the failure is the first one's.
Status ShowReadCosts(const CostOptions& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_WHERE_H_
