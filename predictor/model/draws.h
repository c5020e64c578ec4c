// Draws of what a measured figure may truly be.
#ifndef MOSA_PREDICTOR_MODEL_DRAWS_H_
#define MOSA_PREDICTOR_MODEL_DRAWS_H_

#include <algorithm>
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

// Where nine of ten draws lie: from the 5th to the 95th of 100. Of 20 they are the extremes, which
// 19 of 21 further draws would not pass; of less than ten they would say too little.
template <typename T>
std::optional<Interval<T>> NineOfTen(std::vector<T> draws) {
  constexpr size_t kDrawsMin = 10;
  if (draws.size() < kDrawsMin) return std::nullopt;
  std::sort(draws.begin(), draws.end());
  const size_t last = draws.size() - 1;
  return Interval<T>{draws[last / 20], draws[last - last / 20]};
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_DRAWS_H_
