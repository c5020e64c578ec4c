// Statistics of repeated measurements: mean, its 95 % confidence interval by Student's t, median.
// Pure.
#ifndef MOSA_TOOLS_MEASURE_BENCH_STATISTICS_H_
#define MOSA_TOOLS_MEASURE_BENCH_STATISTICS_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace mosa::cli {

struct Summary {
  size_t count = 0;
  double mean = 0;
  double median = 0;
  // Half of the interval's width; nothing with fewer than two samples.
  std::optional<double> half_width;
};

Summary Summarize(std::vector<double> samples);

// Whether the interval is within `share` of the mean to either side.
bool IsWithin(const Summary& summary, double share);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_STATISTICS_H_
