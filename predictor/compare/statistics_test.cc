#include "predictor/compare/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/rng.h"

namespace mosa::predict {
namespace {

// The example of Benjamini and Hochberg (1995), section 4: at 0.05 the first four stand, whereas
// Bonferroni would accept only three.
TEST(Standing, IsThatOfThePaper) {
  const std::vector<double> p_values = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201,
                                        0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
                                        0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  std::vector<bool> expected(p_values.size(), false);
  std::fill_n(expected.begin(), 4, true);
  EXPECT_EQ(Standing(p_values, 0.05), expected);
  EXPECT_EQ(Standing({0.5, 0.0001, 0.03}, 0.05), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(Standing({0.5, 0.06}, 0.05), (std::vector<bool>{false, false}));
  EXPECT_TRUE(Standing({}, 0.05).empty());
}

TEST(ResidualOf, IsWiderTheLessIsKnown) {
  const std::vector<double> predicted = {0.9, 1.0, 1.1, 0.95, 1.05};
  const Residual once = ResidualOf(predicted, {1.3}, 0.03, {});
  EXPECT_NEAR(once.size, 0.3, 1e-12);
  EXPECT_LT(once.p, 0.05);
  // Runs that differ from each other as much as from the prediction say less.
  EXPECT_GT(ResidualOf(predicted, {1.0, 1.3, 1.9}, 0.03, {0.2, 2}).p, 0.2);
  // Runs that agree say no more than the prediction does.
  const Residual thrice = ResidualOf(predicted, {1.3, 1.3, 1.3}, 0.03, {0, 2});
  EXPECT_NEAR(thrice.error, once.error, 1e-12);
  EXPECT_GT(ResidualOf(predicted, {1.3}, 0.3, {}).p, once.p);
  const Interval<double> interval = IntervalOf(once);
  EXPECT_LT(0, interval.low);
  EXPECT_NEAR(interval.high - 0.3, 0.3 - interval.low, 1e-12);
  // Without any spread, only the floor remains.
  const Residual sure = ResidualOf({1, 1, 1}, {1.02}, 0.03, {});
  EXPECT_NEAR(sure.error, 0.03, 1e-12);
  EXPECT_GT(sure.p, 0.05);
}

TEST(IntervalOf, HoldsZeroWhenItsPValueIsAbove5Percent) {
  const struct {
    double degrees, half;
  } rows[] = {{1, 12.7062},   {1.5, 6.01666},  {1.9, 4.52712}, {2.5, 3.57465},
              {2.9, 3.24544}, {30.3, 2.04142}, {1000, 1.96234}};
  for (const auto& [degrees, half] : rows) {
    const Interval<double> interval = IntervalOf({.size = 1, .error = 0.5, .degrees = degrees});
    EXPECT_NEAR(interval.low, 1 - half * 0.5, 1e-4) << degrees;
    EXPECT_NEAR(interval.high, 1 + half * 0.5, 1e-4) << degrees;
  }
  // Few runs that differ much more than draws do: 1.8 degrees.
  const std::vector<double> predicted = {0.95, 1.0, 1.05};
  for (const double measured : {1.1, 1.3, 1.5, 1.7, 2.0, 3.0}) {
    const Residual residual = ResidualOf(predicted, {measured}, 0.03, {0.05, 1.5});
    EXPECT_EQ(IntervalOf(residual).low > 0, residual.p < 0.05) << measured;
  }
}

TEST(ResidualOf, RejectsASoundOneAsOftenAsItSays) {
  Rng rng(7);
  int rejected = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> predicted;
    for (int i = 0; i < 20; ++i) predicted.push_back(NormalDraw(rng));
    if (ResidualOf(predicted, {NormalDraw(rng)}, 1e-6, {}).p <= 0.05) ++rejected;
  }
  EXPECT_NEAR(rejected, kTrials * 0.05, 3.3 * std::sqrt(kTrials * 0.05));
}

}  // namespace
}  // namespace mosa::predict
