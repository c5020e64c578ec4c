// Random draws of what a measured figure may truly be, and statistics over draws.
#ifndef MOSA_PREDICTOR_MODEL_DRAWS_H_
#define MOSA_PREDICTOR_MODEL_DRAWS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/rng.h"

namespace mosa::predict {

// Sum of twelve uniform draws, less six: the standard normal distribution, near enough.
inline double NormalDraw(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(rng.Below(1 << 20)) / (1 << 20);
  return sum;
}

// A random factor for a figure of this spread. It is never below a tenth.
inline double FactorOf(double spread, Rng& rng) {
  constexpr double kFactorMin = 0.1;
  return std::max(kFactorMin, 1 + spread * NormalDraw(rng));
}

template <typename T>
struct Interval {
  T low{};
  T high{};
  bool operator==(const Interval&) const = default;
};

// With fewer draws, no two of them enclose nine tenths of further ones.
inline constexpr uint32_t kDrawsMin = 19;

// A further draw lies between the k-th smallest and the k-th largest of n with probability (n + 1 -
// 2k) / (n + 1). Returns the k for nine tenths. Up to 38 draws, these are the extremes.
inline size_t BeyondNineOfTen(size_t draws) { return (draws + 1) / 20; }

template <typename T>
std::optional<Interval<T>> NineOfTen(std::vector<T> draws) {
  if (draws.size() < kDrawsMin) return std::nullopt;
  std::sort(draws.begin(), draws.end());
  const size_t k = BeyondNineOfTen(draws.size());
  return Interval<T>{draws[k - 1], draws[draws.size() - k]};
}

// Precondition: not empty. With an even number, the mean of the middle two.
inline double Median(std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  return (draws[(draws.size() - 1) / 2] + draws[draws.size() / 2]) / 2;
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_DRAWS_H_
