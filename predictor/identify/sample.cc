#include "predictor/identify/sample.h"

#include <algorithm>
#include <cmath>

#include "predictor/model/student_t.h"

namespace mosa::predict {
namespace {

constexpr double kTooFar = 4;
// Converts the median absolute deviation of a normal distribution to its sigma.
constexpr double kSigmaOfMedianDistance = 1.4826;
constexpr size_t kDropsFrom = 5;

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

Measured Summarize(std::vector<double> samples) {
  Measured measured;
  if (samples.empty()) return measured;
  const size_t all = samples.size();
  if (all >= kDropsFrom) {
    const double median = MedianOf(samples);
    std::vector<double> distances;
    for (const double sample : samples) distances.push_back(std::abs(sample - median));
    const double limit = kTooFar * kSigmaOfMedianDistance * MedianOf(distances);
    std::stable_sort(samples.begin(), samples.end(), [median](double a, double b) {
      return std::abs(a - median) < std::abs(b - median);
    });
    while (samples.size() > all - all / 4 && std::abs(samples.back() - median) > limit)
      samples.pop_back();
  }
  measured.count = samples.size();
  measured.dropped = all - samples.size();
  double sum = 0;
  for (const double sample : samples) sum += sample;
  const auto count = static_cast<double>(samples.size());
  measured.mean = sum / count;
  if (samples.size() < 2) return measured;
  double squares = 0;
  for (const double sample : samples)
    squares += (sample - measured.mean) * (sample - measured.mean);
  measured.deviation = std::sqrt(squares / (count - 1));
  measured.half_width = StudentT95(count - 1) * measured.deviation / std::sqrt(count);
  return measured;
}

}  // namespace mosa::predict
