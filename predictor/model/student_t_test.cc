#include "predictor/model/student_t.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

TEST(StudentTail, IsThatOfTheTables) {
  const struct {
    double t, degrees, p;
  } rows[] = {
      {0, 5, 1},         {12.706, 1, 0.05}, {2.571, 5, 0.05},   {2.042, 30, 0.05},
      {4.032, 5, 0.01},  {2.750, 30, 0.01}, {3.646, 30, 0.001}, {1.962, 1000, 0.05},
      {-2.571, 5, 0.05}, {63.657, 1, 0.01},
  };
  for (const auto& row : rows)
    EXPECT_NEAR(StudentTail(row.t, row.degrees), row.p, 2e-4 + row.p * 2e-3)
        << row.t << " of " << row.degrees;
  EXPECT_LT(StudentTail(50, 39), 1e-30);
  EXPECT_GT(StudentTail(50, 39), 0);
}

// From mpmath's incomplete beta function with 30 digits.
TEST(StudentT95, IsExactBetweenWholeDegrees) {
  const struct {
    double degrees, t;
  } rows[] = {
      {0.5, 164.55767},  {1, 12.706205},   {1.5, 6.0166631}, {1.9, 4.5271181},  {2, 4.3026527},
      {2.5, 3.5746548},  {2.9, 3.2454381}, {3, 3.1824463},   {7, 2.3646243},    {30, 2.0422725},
      {30.3, 2.0414249}, {31, 2.0395134},  {120, 1.9799304}, {1000, 1.9623391},
  };
  for (const auto& row : rows)
    EXPECT_NEAR(StudentT95(row.degrees), row.t, 1e-7 * row.t) << row.degrees;
  EXPECT_NEAR(StudentT95(1e8), 1.959964, 1e-6);  // The normal distribution's value.
}

}  // namespace
}  // namespace mosa::predict
