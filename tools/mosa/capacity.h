// `mosa capacity`: estimates a store's throughput for any share of reads and any mix of I/O sizes
// from a few measurements (the paper Fighting with Unknowns).
#ifndef MOSA_TOOLS_MOSA_CAPACITY_H_
#define MOSA_TOOLS_MOSA_CAPACITY_H_

#include "tools/mosa/command.h"

namespace mosa::cli {

void AddCapacity(CLI::App& app, CommandLine& line);
// Each adds one verb.
void AddCapacityRun(CLI::App& noun, CommandLine& line);
void AddCapacityShow(CLI::App& noun, CommandLine& line);
void AddCapacityPredict(CLI::App& noun, CommandLine& line);
void AddCapacityPlot(CLI::App& noun, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_CAPACITY_H_
