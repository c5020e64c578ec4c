// The results of `mosa bench patterns` for people.
#ifndef MOSA_TOOLS_MEASURE_BENCH_REPORT_H_
#define MOSA_TOOLS_MEASURE_BENCH_REPORT_H_

#include "tools/measure/bench_plan.h"
#include "tools/measure/bench_results.h"

namespace mosa::cli {

// A row per cell that was measured: seconds with their interval, staging, how often it fits into
// DSS's time, bytes over the network and by path in the last run.
void PrintTable(const BenchPlan& plan, const BenchResults& results);

// For each cell a row per host: how many tasks of each stage ran there, and which share of what the
// stage wrote lies there.
void PrintMaps(const BenchPlan& plan, const BenchResults& results);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_REPORT_H_
