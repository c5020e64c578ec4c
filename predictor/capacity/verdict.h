// Checks whether the claim of the paper Fighting with Unknowns holds for a store: compares measured
// mixed loads with the estimates, and gives a plain verdict for each I/O size, with the re-sampling
// that helps (section 4). Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_VERDICT_H_
#define MOSA_PREDICTOR_CAPACITY_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/capacity/capacity.h"

namespace mosa::predict {

// The errors that the paper reports: up to 32 KiB, above that, and for mixed sizes.
inline constexpr uint64_t kSmallSizeMax = 32 << 10;
inline constexpr double kSmallErrorPercentMax = 10;
inline constexpr double kLargeErrorPercentMax = 20;
inline constexpr double kMixErrorPercentMax = 9;
double ErrorPercentMax(const CapacityLoad& load);

struct LoadCheck {
  CapacityLoad load;
  Estimate measured;  // Operations per second, like `estimated`.
  Estimate estimated;
  double error_percent = 0;   // Equation 8, of the medians.
  double constant = 0;        // Median of the samples' C; 0 for mixed sizes.
  double equation_seven = 0;  // As printed, for mixed sizes; 0 for one size.
};
// Checks every measured load except seeds, for sizes that have seeds. Ordered by size and ratio,
// mixes last.
std::vector<LoadCheck> ChecksOf(const Capacity& capacity);

enum class Constancy : uint8_t {
  kUnchecked = 1,  // Nothing between the seeds was measured.
  kConstant,       // All errors are within the paper's.
  kUnsteady,       // Some are not, but there the intervals of estimate and samples overlap.
  kNotConstant,    // C depends on the ratio.
};
std::string_view NameOf(Constancy constancy);

struct SizeVerdict {
  uint64_t size_bytes = 0;
  double read_write_factor = 0;  // f_rw.
  Constancy constancy = Constancy::kUnchecked;
  // At the ratio with the greatest error.
  uint32_t worst_read_percent = 0;
  double worst_error_percent = 0;
  double worst_constant_percent = 0;  // C at that ratio, in per cent of C for pure reads.
  Estimate worst_measured, worst_estimated;
  // The one ratio that, sampled in addition to the seeds, leaves the smallest error at the others;
  // 0 if fewer than two ratios were measured.
  uint32_t resample_read_percent = 0;
  double resampled_error_percent = 0;
};
// Ordered by size.
std::vector<SizeVerdict> VerdictsOf(const Capacity& capacity);
// The verdict and what to do about it, with the numbers.
std::string SentenceOf(const SizeVerdict& verdict);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_VERDICT_H_
