// Repeated measurements of one thing: what they say, and when they are enough. Pure.
#ifndef MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_
#define MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace mosa::predict {

// A measurement goes on until half its interval is at most this part of the mean.
inline constexpr double kIntervalWanted = 0.05;
// Fewer samples are never enough, however alike they are.
inline constexpr size_t kSamplesMin = 4;

struct Measured {
  double mean = 0;        // Over what was kept.
  double half_width = 0;  // Half of the mean's 95 % interval, by Student's t.
  double deviation = 0;   // Standard deviation of single samples.
  size_t count = 0;       // Samples that were kept;
  size_t dropped = 0;     // the others were too far off to be of the same kind.
  bool cold = false;      // Only the first there is, which also takes what is done only once.
  // Relative to the mean; 1 if there is nothing to tell it by.
  double RelativeHalf() const { return count < 2 || !(mean > 0) ? 1 : half_width / mean; }
  bool IsSettled() const { return count >= kSamplesMin && RelativeHalf() <= kIntervalWanted; }
};

// Samples further from the median than four standard deviations, as the median distance from it
// tells them, are dropped: at most a quarter of all, and none of less than five.
Measured Summarize(std::vector<double> samples);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SAMPLE_H_
