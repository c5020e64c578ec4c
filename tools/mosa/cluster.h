// What the verbs of `mosa cluster` share.
#ifndef MOSA_TOOLS_MOSA_CLUSTER_H_
#define MOSA_TOOLS_MOSA_CLUSTER_H_

#include <CLI/CLI.hpp>
#include <string>

#include "tools/cluster/state.h"

namespace mosa::cli {

struct ClusterChoice {
  std::string name = "default";
  std::string directory = cluster::DefaultDirectory();
};

// --name and --dir.
void AddClusterChoice(CLI::App& command, ClusterChoice& choice);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_CLUSTER_H_
