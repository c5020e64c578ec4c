// Which cluster on this machine a command is about.
#ifndef MOSA_TOOLS_CONSOLE_CLUSTER_CHOICE_H_
#define MOSA_TOOLS_CONSOLE_CLUSTER_CHOICE_H_

#include <string>

#include "tools/cluster/state.h"

namespace mosa::cli {

struct ClusterChoice {
  std::string name = "default";
  std::string directory = cluster::DefaultDirectory();
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_CLUSTER_CHOICE_H_
