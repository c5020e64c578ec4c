#include "predictor/compare/judging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace mosa::predict {
namespace {

// Draws that vary by a twentieth, and runs with `times` the predicted time.
JudgedValue Value(const std::vector<double>& times) {
  JudgedValue value;
  for (int i = 0; i < 40; ++i) value.drawn.push_back(0.05 * std::sin(i));
  value.surest = 0.03;
  for (const double each : times) {
    JudgedRun& run = value.runs.emplace_back().emplace();
    run.place = std::log(each);
    run.effect_share = each - 1;
  }
  return value;
}

std::vector<size_t> ShownIn(JudgedValue value) {
  std::vector<JudgedValue> values = {std::move(value)};
  Judge(values);
  return values[0].shown;
}

TEST(Judge, WantsTwoOfThreeRuns) {
  using Runs = std::vector<size_t>;
  EXPECT_EQ(ShownIn(Value({1, 1, 1})), Runs());
  EXPECT_EQ(ShownIn(Value({1, 1.6, 1})), Runs());
  EXPECT_EQ(ShownIn(Value({1.6, 1.6})), (Runs{0, 1}));
  EXPECT_EQ(ShownIn(Value({1.6, 1.6, 1.6})), (Runs{0, 1, 2}));
  EXPECT_EQ(ShownIn(Value({1, 1, 1, 1.6, 1.6, 1.6})), (Runs{3, 4, 5}));
  // Old runs do not count.
  EXPECT_EQ(ShownIn(Value({1.6, 1.6, 1.6, 1, 1, 1})), Runs());
  // A faster run shows nothing.
  EXPECT_EQ(ShownIn(Value({1.6, 0.5})), Runs());
  EXPECT_EQ(ShownIn(Value({0.5, 0.5, 0.5})), Runs());
}

TEST(Judge, TakesOneRunWhereThatSaysEnough) {
  EXPECT_EQ(ShownIn(Value({1.6})), std::vector<size_t>{0});
  EXPECT_TRUE(ShownIn(Value({1.2})).empty());
}

// However slow, one run makes two steps as large as itself.
TEST(Judge, OneRunAmongSoundOnesIsNoAnomaly) {
  for (const double times : {2.0, 20.0, 2000.0}) {
    EXPECT_TRUE(ShownIn(Value({1, times, 1})).empty()) << times;
    EXPECT_TRUE(ShownIn(Value({1, 1, times})).empty()) << times;
  }
  EXPECT_EQ(ShownIn(Value({1, 2, 2})), (std::vector<size_t>{1, 2}));
}

// Values of a group are one step from run to run, however many they are.
TEST(Judge, TakesValuesThatGoTogetherForOneStep) {
  std::vector<JudgedValue> values(50, Value({1, 1.2, 1}));
  Judge(values);
  EXPECT_NEAR(values[0].spread.degrees, 8, 1e-9);
  const double step = std::log(1.2);
  const double drawn = VarianceOf(values[0].drawn);
  EXPECT_NEAR(values[0].spread.variance, (6 * drawn + step * step) / 8, 1e-9);
  // A single run makes no step: only the draws count.
  values = {Value({1.2})};
  Judge(values);
  EXPECT_NEAR(values[0].spread.variance, drawn, 1e-12);
  EXPECT_NEAR(values[0].spread.degrees, 6, 1e-9);
}

// Faster values are not anomalies, and do not help a slower one of their family to stand.
TEST(Judge, FasterValuesMakeNoSlowerOneStand) {
  const auto judged = [](double slower) {
    std::vector<JudgedValue> values(60, Value({0.5, 0.5, 0.5}));
    values.push_back(Value({slower, slower, slower}));
    for (size_t i = 0; i < values.size(); ++i) values[i].group = std::to_string(i);
    Judge(values);
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      EXPECT_TRUE(values[i].is_faster && !values[i].stands && values[i].shown.empty()) << i;
    }
    return values.back();
  };
  const JudgedValue little = judged(1.16);
  EXPECT_LT(little.p, 0.01);
  EXPECT_GT(little.p * 61, 0.01);
  EXPECT_TRUE(little.shown.empty()) << little.p;
  EXPECT_EQ(judged(1.6).shown.size(), 3U);
}

TEST(Judge, BelievesLessWhereRunsDiffer) {
  const std::vector<double> times = {1.3, 1.35, 1.3};
  EXPECT_EQ(ShownIn(Value(times)).size(), 3U);
  // Other values of its group vary by half from run to run.
  std::vector<JudgedValue> values = {Value(times)};
  for (int i = 0; i < 4; ++i) values.push_back(Value({1.5, 1, 1.5}));
  for (JudgedValue& value : values) value.group = "host";
  Judge(values);
  EXPECT_TRUE(values[0].shown.empty());
  EXPECT_GT(values[0].spread.variance, 0.01);
}

}  // namespace
}  // namespace mosa::predict
