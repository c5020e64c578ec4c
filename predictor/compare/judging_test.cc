#include "predictor/compare/judging.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mosa::predict {
namespace {

// Draws of a twentieth, and runs that are so many times as long as predicted.
JudgedValue Value(const std::vector<double>& times, bool can_stand_alone = false) {
  JudgedValue value;
  for (int i = 0; i < 40; ++i) value.drawn.push_back(0.05 * std::sin(i));
  value.surest = 0.03;
  value.can_stand_alone = can_stand_alone;
  for (const double each : times) {
    JudgedRun& run = value.runs.emplace_back().emplace();
    run.place = std::log(each);
    run.effect_share = each - 1;
  }
  return value;
}

std::vector<size_t> ShownIn(JudgedValue value) {
  const size_t runs = value.runs.size();
  std::vector<JudgedValue> values = {std::move(value)};
  Judge({}, runs, values);
  return values[0].shown;
}

TEST(Judge, WantsTwoOfThreeRuns) {
  using Runs = std::vector<size_t>;
  EXPECT_EQ(ShownIn(Value({1, 1, 1})), Runs());
  EXPECT_EQ(ShownIn(Value({1, 1.6, 1})), Runs());
  EXPECT_EQ(ShownIn(Value({1.6})), Runs());
  EXPECT_EQ(ShownIn(Value({1.6, 1.6})), (Runs{0, 1}));
  EXPECT_EQ(ShownIn(Value({1.6, 1.6, 1.6})), (Runs{0, 1, 2}));
  EXPECT_EQ(ShownIn(Value({1, 1, 1, 1.6, 1.6, 1.6})), (Runs{3, 4, 5}));
  // What is past is past.
  EXPECT_EQ(ShownIn(Value({1.6, 1.6, 1.6, 1, 1, 1})), Runs());
  // Two directions are not one.
  EXPECT_EQ(ShownIn(Value({1.6, 0.5})), Runs());
}

TEST(Judge, TakesOneRunWhereThatSaysEnough) {
  EXPECT_EQ(ShownIn(Value({1.6}, true)), std::vector<size_t>{0});
  EXPECT_TRUE(ShownIn(Value({1.2}, true)).empty());
}

TEST(Judge, BelievesLessWhereRunsDiffer) {
  const std::vector<double> times = {1.3, 1.35, 1.3};
  EXPECT_EQ(ShownIn(Value(times)).size(), 3U);
  // Others of its group go up and down by half from run to run.
  std::vector<JudgedValue> values = {Value(times)};
  for (int i = 0; i < 4; ++i) values.push_back(Value({1.5, 1, 1.5}));
  for (JudgedValue& value : values) value.group = "host";
  Judge({}, 3, values);
  EXPECT_TRUE(values[0].shown.empty());
  EXPECT_GT(values[0].spread.variance, 0.03);
}

}  // namespace
}  // namespace mosa::predict
