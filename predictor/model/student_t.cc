#include "predictor/model/student_t.h"

#include <cmath>

#include "common/base/check.h"

namespace mosa::predict {
namespace {

// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by
// Lentz's method. It converges quickly for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-12;
  constexpr int kTermsMax = 1000;
  const auto off_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / off_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kTermsMax; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / off_zero(1 + even * d);
    c = off_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / off_zero(1 + odd * d);
    c = off_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return fraction;
}

// The regularized incomplete beta function.
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

}  // namespace

double StudentTail(double t, double degrees) {
  MOSA_CHECK(degrees > 0);
  return IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double StudentT95(double degrees) {
  constexpr double kOutside = 0.05;
  constexpr double kPrecision = 1e-9;
  double high = 2;
  while (StudentTail(high, degrees) > kOutside) high *= 2;
  double low = high / 2;
  while (high - low > kPrecision * high) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, degrees) > kOutside ? low : high) = middle;
  }
  return high;
}

}  // namespace mosa::predict
