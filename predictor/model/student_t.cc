#include "predictor/model/student_t.h"

#include <cmath>
#include <iterator>

#include "common/base/check.h"

namespace mosa::predict {

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
