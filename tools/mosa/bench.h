// The verbs of `mosa bench`.
#ifndef MOSA_TOOLS_MOSA_BENCH_H_
#define MOSA_TOOLS_MOSA_BENCH_H_

#include "tools/mosa/command.h"

namespace mosa::cli {

void AddBenchPatterns(CLI::App& noun, CommandLine& line);
void AddBenchGate(CLI::App& noun, CommandLine& line);
void AddBenchWork(CLI::App& noun, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_BENCH_H_
