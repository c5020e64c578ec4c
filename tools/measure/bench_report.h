// Prints the results of `mosa bench patterns`.
#ifndef MOSA_TOOLS_MEASURE_BENCH_REPORT_H_
#define MOSA_TOOLS_MEASURE_BENCH_REPORT_H_

#include "tools/measure/bench_plan.h"
#include "tools/measure/bench_results.h"

namespace mosa::cli {

// One row per measured cell: seconds with their interval, staging, the speedup over DSS, bytes over
// the network and by path in the last run.
void PrintTable(const BenchPlan& plan, const BenchResults& results);

// For each cell one row per host: the number of tasks of each stage that ran there, and the share
// of the stage's output that lies there.
void PrintMaps(const BenchPlan& plan, const BenchResults& results);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_REPORT_H_
