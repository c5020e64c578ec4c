// Whether the claim of the paper Fighting with Unknowns holds for a store: what was measured for
// mixed reads and writes beside the estimates, and for each I/O size a plain verdict with the
// re-sampling that helps (section 4). Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_VERDICT_H_
#define MOSA_PREDICTOR_CAPACITY_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/capacity/capacity.h"

namespace mosa::predict {

// The errors that the paper reaches: up to 32 KiB, above, and of mixed sizes.
inline constexpr uint64_t kSmallSizeMax = 32 << 10;
inline constexpr double kSmallErrorPercentMax = 10;
inline constexpr double kLargeErrorPercentMax = 20;
inline constexpr double kMixErrorPercentMax = 9;
double ErrorPercentMax(const CapacityLoad& load);

struct LoadCheck {
  CapacityLoad load;
  Estimate measured;  // Operations per second, as `estimated`.
  Estimate estimated;
  double error_percent = 0;   // Equation 8, for the medians.
  double constant = 0;        // Median of the samples' C; 0 for mixed sizes.
  double equation_seven = 0;  // As printed, of mixed sizes; 0 of one.
};
// Checks everything that was measured besides seeds, for sizes that have seeds; by size and ratio,
// then mixes.
std::vector<LoadCheck> ChecksOf(const Capacity& capacity);

enum class Constancy : uint8_t {
  kUnchecked = 1,  // Nothing between the seeds was measured.
  kConstant,       // All errors are within the paper's.
  kUnsteady,       // They are not, but there intervals of estimates and of samples overlap.
  kNotConstant,    // C depends on the ratio.
};
std::string_view NameOf(Constancy constancy);

struct SizeVerdict {
  uint64_t size_bytes = 0;
  double read_write_factor = 0;  // f_rw.
  Constancy constancy = Constancy::kUnchecked;
  // The ratio with the greatest error.
  uint32_t worst_read_percent = 0;
  double worst_error_percent = 0;
  double worst_constant_percent = 0;  // C there, of that of only reads.
  Estimate worst_measured, worst_estimated;
  // The one ratio which, sampled besides the seeds, leaves the least error at the others; 0 if
  // fewer than two ratios were measured.
  uint32_t resample_read_percent = 0;
  double resampled_error_percent = 0;
};
// By size.
std::vector<SizeVerdict> VerdictsOf(const Capacity& capacity);
// What it says and what helps, with the numbers.
std::string SentenceOf(const SizeVerdict& verdict);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_VERDICT_H_
