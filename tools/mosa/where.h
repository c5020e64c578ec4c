// How `mosa where` finds out which files it is asked about.
#ifndef MOSA_TOOLS_MOSA_WHERE_H_
#define MOSA_TOOLS_MOSA_WHERE_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tools/mosa/command.h"
#include "tools/mosa/manager.h"

namespace mosa::cli {

// Lines that are not empty; of "-", of standard input. InvalidArgument if there are more than
// `lines_max`.
Status ReadLines(const std::string& from, size_t lines_max, std::vector<std::string>& lines);

// By mount point, which of `paths` are on it: their indices, and their paths in the store. Those on
// no mount are missing. One look at each directory.
std::map<std::string, std::vector<std::pair<size_t, std::string>>> ByMount(
    const std::vector<std::string>& paths);

// What reading sets of files would cost each host.
struct CostOptions {
  std::vector<std::string> paths;  // One set.
  std::string from;                // Sets, a line each.
  std::vector<std::string> hosts;  // None: all.
  bool in_store = false;
  ManagerChoice manager;
};
// Answers for every set that has an answer; the failure is the first one's.
Status ShowReadCosts(const CostOptions& options, const CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_WHERE_H_
