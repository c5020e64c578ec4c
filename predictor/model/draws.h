// Draws of what a measured figure may truly be.
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

// What a figure of this spread is off by. No draw makes one less than a tenth of what was measured.
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

// Less draws have no two between which nine of ten further ones lie.
inline constexpr uint32_t kDrawsMin = 19;

// Between the k-th least and the k-th largest of n draws a further one lies n + 1 - 2k times of
// n + 1: the k for nine times of ten. With up to 38 draws they are the extremes.
inline size_t BeyondNineOfTen(size_t draws) { return (draws + 1) / 20; }

template <typename T>
std::optional<Interval<T>> NineOfTen(std::vector<T> draws) {
  if (draws.size() < kDrawsMin) return std::nullopt;
  std::sort(draws.begin(), draws.end());
  const size_t k = BeyondNineOfTen(draws.size());
  return Interval<T>{draws[k - 1], draws[draws.size() - k]};
}

// Precondition: there are some. With an even number, the mean of the two in the middle.
inline double Median(std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  return (draws[(draws.size() - 1) / 2] + draws[draws.size() / 2]) / 2;
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_DRAWS_H_
