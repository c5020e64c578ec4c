// `mosa cluster`: the noun; each verb has a file of its own.
#include "tools/mosa/command.h"

namespace mosa::cli {

void AddCluster(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand("cluster",
                                      "Start, inspect and stop clusters on this machine\n\n"
                                      "  mosa cluster up --hosts 4 --rate 200mbit\n"
                                      "  mosa cluster exec h2 -- sh -c 'ls $MOSA_MOUNT'");
  noun->require_subcommand(1);
  noun->fallthrough();
  AddClusterUp(*noun, line);
  AddClusterDown(*noun, line);
  AddClusterRestart(*noun, line);
  AddClusterStatus(*noun, line);
  AddClusterExec(*noun, line);
}

}  // namespace mosa::cli
