// Repeated measurements of one thing: their mean and interval, and when there are enough of them.
// Pure.
#ifndef MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_
#define MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace mosa::predict {

// A measurement goes on until half its interval is at most this share of the mean.
inline constexpr double kIntervalWanted = 0.05;
// A measurement needs at least this many samples, however alike they are.
inline constexpr size_t kSamplesMin = 4;

struct Measured {
  double mean = 0;        // Over the samples kept.
  double half_width = 0;  // Half of the mean's 95 % interval, by Student's t.
  double deviation = 0;   // Standard deviation of single samples.
  size_t count = 0;       // Samples kept.
  size_t dropped = 0;     // Outliers, left out of the rest.
  bool cold = false;      // Only a first sample exists; it includes work that is done only once.
  // Half the interval relative to the mean; 1 if there are too few samples or no mean.
  double RelativeHalf() const { return count < 2 || !(mean > 0) ? 1 : half_width / mean; }
  bool IsSettled() const { return count >= kSamplesMin && RelativeHalf() <= kIntervalWanted; }
};

// Drops outliers: samples more than four standard deviations from the median, estimated from the
// median absolute deviation. At most a quarter of all samples is dropped, and none of fewer than
// five.
Measured Summarize(std::vector<double> samples);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_
