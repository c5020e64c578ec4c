// Implements `mosa where`: prints the nodes that hold files, or the cost of reading them on each
// host.
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

// Reads the non-empty lines of a file, or of standard input for "-". InvalidArgument if there are
// more than `lines_max`.
Status ReadLines(const std::string& from, size_t lines_max, std::vector<std::string>& lines);

// Maps each mount point to those of `paths` that are on it: their indices and their paths in the
// store. Paths on no mount are left out. Looks up each directory once.
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

// Prints where each file is, for every path with an answer. Returns the first failure.
Status ShowLocations(const LocationsRequest& options, bool as_json);

// The cost of reading sets of files on each host.
struct CostOptions {
  std::vector<std::string> paths;  // A single set.
  std::string from;                // File with one set per line.
  std::vector<std::string> hosts;  // Empty: all.
  bool in_store = false;
  ManagerChoice manager;
};
// Prints the cost of every set with an answer. Returns the first failure.
Status ShowReadCosts(const CostOptions& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_WHERE_H_
