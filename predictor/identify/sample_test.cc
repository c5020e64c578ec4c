#include "predictor/identify/sample.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "predictor/identify/schedule.h"
#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

TEST(Summarize, GivesMeanAndStudentsInterval) {
  const Measured measured = Summarize({9, 10, 11, 10});
  EXPECT_DOUBLE_EQ(measured.mean, 10);
  EXPECT_NEAR(measured.half_width, 3.182 * 0.81650 / 2, 1e-3);
  EXPECT_FALSE(measured.IsSettled());
  EXPECT_TRUE(Summarize({10, 10.1, 9.9, 10}).IsSettled());
  EXPECT_FALSE(Summarize({10, 10, 10}).IsSettled()) << "three alike are no measurement";
  EXPECT_EQ(Summarize({}).RelativeHalf(), 1);
}

TEST(Summarize, DropsOutliersAndCountsThem) {
  const Measured measured = Summarize({10, 10.2, 9.8, 10.1, 9.9, 10, 10.1, 500});
  EXPECT_NEAR(measured.mean, 10, 0.1);
  EXPECT_EQ(measured.dropped, 1U);
  EXPECT_EQ(measured.count, 7U);
}

TEST(Summarize, KeepsWhatTwoKindsOfSamplesSay) {
  const Measured measured = Summarize({1, 1, 1, 2, 2, 2});
  EXPECT_EQ(measured.dropped, 0U);
  EXPECT_DOUBLE_EQ(measured.mean, 1.5);
}

TEST(Summarize, HasTheTruthInNineteenOfTwentyIntervals) {
  Rng rng(7);
  int inside = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> samples;
    for (int i = 0; i < 8; ++i) samples.push_back(10 + NormalDraw(rng));
    const Measured measured = Summarize(samples);
    inside += std::abs(measured.mean - 10) <= measured.half_width ? 1 : 0;
  }
  EXPECT_GT(inside, 0.92 * kRuns);
  EXPECT_LT(inside, 0.97 * kRuns);
}

TEST(Schedule, MeasuresAllInRoundsThenWhatIsWidest) {
  Schedule schedule(3);
  Rng rng(3);
  std::vector<size_t> order;
  const double noise[] = {0, 0.3, 0.02};
  while (const auto next = schedule.Next(Seconds(1))) {
    order.push_back(*next);
    schedule.Add(*next, 10 * (1 + noise[*next] * NormalDraw(rng)), Milliseconds(10));
  }
  const std::vector<size_t> begin = {0, 1, 2, 0, 1, 2};
  EXPECT_EQ(std::vector<size_t>(order.begin(), order.begin() + 6), begin);
  EXPECT_EQ(std::count(order.begin(), order.end(), 0U), static_cast<int>(kSamplesMin) + 1);
  EXPECT_GT(std::count(order.begin(), order.end(), 1U), 20);
  EXPECT_LE(order.size(), 200U) << "what does not settle is given up some time";
}

TEST(Schedule, StopsWhereNothingFitsAnyMore) {
  Schedule schedule(2);
  EXPECT_EQ(schedule.Next(Seconds(1)), 0U);
  schedule.Add(0, 1, Seconds(2));
  schedule.GiveUp(1);
  EXPECT_EQ(schedule.Next(Seconds(1)), std::nullopt);
  EXPECT_EQ(schedule.Next(Seconds(3)), 0U);
}

TEST(Schedule, DoesNotCountTheFirstSample) {
  Schedule schedule(1);
  EXPECT_FALSE(schedule.At(0).cold) << "there is none";
  schedule.Add(0, 1000, Seconds(1));
  EXPECT_TRUE(schedule.At(0).cold);
  for (int i = 0; i < 5; ++i) schedule.Add(0, 10, Seconds(1));
  EXPECT_DOUBLE_EQ(schedule.At(0).mean, 10);
  EXPECT_FALSE(schedule.At(0).cold);
}

}  // namespace
}  // namespace mosa::predict
