#include "predictor/compare/modes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"

namespace mosa::predict {
namespace {

// Durations around `middle_s`, as wide as `spread` in logarithms.
void AddAround(double middle_s, double spread, int count, DurationCounts& times) {
  for (int i = 0; i < count; ++i) {
    const double place = (i + 0.5) / count;  // Quantiles of a logistic distribution.
    times.Add(Nanoseconds(
        std::llround(middle_s * 1e9 * std::exp(spread * std::log(place / (1 - place))))));
  }
}

TEST(ModesOf, FindsTwoKinds) {
  struct Row {
    double slow_s;
    int quick, slow;
    bool are_two;
  };
  const Row rows[] = {{1, 94, 6, true},       {1, 2000, 40, true},
                      {0.03, 50, 50, true},   {1, 97, 3, false},  // Too few slow ones,
                      {1, 2000, 10, false},                       // also next to many more.
                      {0.006, 50, 50, false},  // Twice as long: no gap between them.
                      {0.003, 50, 50, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.slow_s);
    DurationCounts times;
    AddAround(0.003, 0.1, row.quick, times);
    AddAround(row.slow_s, 0.1, row.slow, times);
    const auto modes = ModesOf(times);
    ASSERT_EQ(modes.has_value(), row.are_two);
    if (!modes) continue;
    EXPECT_NEAR(modes->slow_share, static_cast<double>(row.slow) / (row.quick + row.slow), 0.01);
    EXPECT_NEAR(modes->quick_s, 0.003, 0.0005);
    EXPECT_NEAR(modes->slow_s, row.slow_s, 0.15 * row.slow_s);
  }
}

TEST(ModesOf, FindsNoneInOneHoweverWide) {
  for (const double spread : {0.1, 0.5, 1.0, 1.5})
    for (const int count : {0, 1, 9, 20, 100, 1000}) {
      DurationCounts times;
      AddAround(0.003, spread, count, times);
      EXPECT_FALSE(ModesOf(times)) << spread << ", " << count;
    }
}

// Small samples have gaps by chance.
TEST(ModesOf, FindsFewInSamplesOfOne) {
  Rng rng(20261125);
  int found = 0;
  constexpr int kSamples = 300;
  for (const int count : {10, 20, 50, 300})
    for (int sample = 0; sample < kSamples; ++sample) {
      DurationCounts times;
      for (int i = 0; i < count; ++i) {
        const double place = (static_cast<double>(rng.Below(1'000'000)) + 0.5) / 1e6;
        times.Add(Nanoseconds(std::llround(3e6 * std::exp(0.7 * std::log(place / (1 - place))))));
      }
      found += ModesOf(times) ? 1 : 0;
    }
  EXPECT_LE(found, kSamples * 4 / 50);
}

TEST(ModesOf, SaysThem) {
  EXPECT_EQ(Say({0.06, 0.0031, 1.01}), "6 % took about 1.01 s, the others about 3.1 ms");
}

}  // namespace
}  // namespace mosa::predict
