#include "tools/measure/bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "predictor/model/student_t.h"

namespace mosa::cli {

Summary Summarize(std::vector<double> samples) {
  Summary summary;
  summary.count = samples.size();
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  const auto count = static_cast<double>(samples.size());
  const size_t middle = samples.size() / 2;
  summary.median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  if (samples.size() < 2) return summary;
  double squares = 0;
  for (const double sample : samples) squares += (sample - summary.mean) * (sample - summary.mean);
  const double deviation = std::sqrt(squares / (count - 1));
  summary.half_width = predict::StudentT95(count - 1) * deviation / std::sqrt(count);
  return summary;
}

bool IsWithin(const Summary& summary, double share) {
  return summary.half_width && *summary.half_width <= share * std::abs(summary.mean);
}

}  // namespace mosa::cli
