#include "predictor/model/student_t.h"

#include <cmath>
#include <iterator>

#include "common/base/check.h"

namespace mosa::predict {
namespace {

// The incomplete beta function's continued fraction (Abramowitz and Stegun, 26.5.8) by Lentz's
// method. It converges quickly for x < (a + 1) / (a + b + 2).
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

double StudentT95(size_t degrees) {
  MOSA_CHECK(degrees > 0);
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                      2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                      2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                      2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= std::size(kTable)) return kTable[degrees - 1];
  // The first terms of the expansion around the normal distribution's quantile: right to 0.001
  // from here on.
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(degrees);
  return kZ + (kZ * kZ * kZ + kZ) / (4 * n) +
         (5 * std::pow(kZ, 5) + 16 * std::pow(kZ, 3) + 3 * kZ) / (96 * n * n);
}

}  // namespace mosa::predict
