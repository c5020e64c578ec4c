// `mosa top`: shows what a cluster is doing.
#ifndef MOSA_TOOLS_MOSA_TOP_H_
#define MOSA_TOOLS_MOSA_TOP_H_

#include "tools/mosa/command.h"

namespace mosa::cli {

void AddTop(CLI::App& app, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_TOP_H_
