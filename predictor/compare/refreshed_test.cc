#include "predictor/compare/refreshed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mosa::predict {
namespace {

const RequestClass kWrites = {"storage", "write.object", "h1", ""};
const RequestClass kOthers = {"storage", "write.object", "h2", ""};
constexpr double kMean_s = 0.02;
constexpr double kSeconds = 20;

SeenRequests RequestsOf(double mean_s, uint64_t count = 100) {
  return {count, mean_s * static_cast<double>(count), mean_s, mean_s, std::nullopt};
}

std::vector<SeenRun> SteadyDraws() {
  std::vector<SeenRun> draws(20);
  for (size_t k = 0; k < draws.size(); ++k)
    for (const RequestClass& which : {kWrites, kOthers})
      draws[k].requests[which] = RequestsOf(kMean_s * (1 + 0.01 * std::sin(k)));
  return draws;
}

SeenRun Seen(size_t number, double times, uint64_t count = 100) {
  SeenRun run;
  run.name = fmt::format("i{}", number);
  const double wave = 1 + 0.03 * std::sin(static_cast<double>(number));
  run.requests[kWrites] = RequestsOf(kMean_s * times * wave, count);
  run.requests[kOthers] = RequestsOf(kMean_s * wave, count);
  return run;
}

TEST(Refreshed, TellsADriftOnceAndJudgesByIt) {
  Refreshed refreshed(SteadyDraws());
  const auto predicted = [&refreshed](double of_h1, double of_h2) {
    RequestTimes seen;
    seen[kWrites].count = static_cast<uint64_t>(of_h1);
    seen[kOthers].count = static_cast<uint64_t>(of_h2);
    seen[{"storage", "write.object", "h9", ""}].count = 7;  // Not predicted.
    return refreshed.PredictedMean(seen, "storage", "write.object");
  };
  EXPECT_NEAR(*predicted(1, 1), kMean_s, 0.001);
  EXPECT_FALSE(predicted(0, 0));
  std::vector<std::pair<size_t, Drift>> told;
  for (size_t number = 1; number <= 60; ++number)
    for (const Drift& drift : refreshed.Add(Seen(number, number <= 20 ? 1 : 2), kSeconds))
      told.emplace_back(number, drift);
  ASSERT_EQ(told.size(), 1U);
  const auto& [number, drift] = told[0];
  EXPECT_EQ(drift.which, kWrites);
  // When most of the intervals that are not judged are slow, and certainly so.
  EXPECT_GT(number, 20 + kRefreshedBy / 2);
  EXPECT_LE(number, 20 + kRefreshedBy + 3);
  EXPECT_NEAR(drift.predicted_s, kMean_s, 0.001);
  EXPECT_NEAR(drift.now_s, 2 * kMean_s, 0.003);
  EXPECT_LT(drift.times.low, 2);
  EXPECT_GT(drift.times.high, 1.9);
  EXPECT_EQ(refreshed.drifting().size(), 1U);
  // Follows the measured times.
  EXPECT_NEAR(*predicted(100, 0), 2 * kMean_s, 0.003);
  EXPECT_NEAR(*predicted(0, 100), kMean_s, 0.001);
  EXPECT_NEAR(*predicted(50, 50), 1.5 * kMean_s, 0.002);
  const SeenRun& draw = refreshed.draws().front();
  EXPECT_NEAR(MeanOf(draw.requests.at(kWrites)), 2 * kMean_s, 0.003);
  EXPECT_NEAR(MeanOf(draw.requests.at(kOthers)), kMean_s, 0.001);
  EXPECT_NE(Say(drift).find("'write.object' of the storage of h1 now take "), std::string::npos)
      << Say(drift);
}

TEST(Refreshed, TellsItOnceMoreWhenItHasGoneAnotherQuarter) {
  Refreshed refreshed(SteadyDraws());
  std::vector<double> told;
  for (size_t number = 1; number <= 90; ++number)
    for (const Drift& drift : refreshed.Add(Seen(number, number <= 30   ? 1.5
                                                         : number <= 60 ? 1.65
                                                                        : 2.4),
                                            kSeconds))
      told.push_back(drift.now_s / drift.predicted_s);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NEAR(told[0], 1.5, 0.05);
  EXPECT_GT(told[1], 1.9);
}

TEST(Refreshed, AClassThatRestedBeginsAnew) {
  Refreshed refreshed(SteadyDraws());
  size_t number = 0;
  for (; number < 20; ++number) refreshed.Add(Seen(number, 2), kSeconds);
  EXPECT_EQ(refreshed.drifting().size(), 1U);
  for (; number < 20 + kForgottenAfter; ++number) refreshed.Add(Seen(number, 2, 0), kSeconds);
  EXPECT_TRUE(refreshed.drifting().empty());
  EXPECT_NEAR(MeanOf(refreshed.draws().front().requests.at(kWrites)), kMean_s, 0.001);
}

// A draw whose times have a factor keeps it.
TEST(Refreshed, KeepsTheFactorOfADraw) {
  std::vector<SeenRun> draws = SteadyDraws();
  for (SeenRun& draw : draws) {
    draw.factor = 1.25;
    for (auto& [which, seen] : draw.requests) seen = RequestsOf(MeanOf(seen) / draw.factor);
  }
  Refreshed refreshed(draws);
  for (size_t number = 1; number <= 20; ++number) refreshed.Add(Seen(number, 2), kSeconds);
  EXPECT_NEAR(MeanOf(refreshed.draws().front().requests.at(kWrites)) * 1.25, 2 * kMean_s, 0.003);
}

TEST(Refreshed, WhatIsJudgedDoesNotExcuseItself) {
  Refreshed refreshed(SteadyDraws());
  for (size_t number = 1; number <= 20; ++number) refreshed.Add(Seen(number, 1), kSeconds);
  for (size_t number = 21; number <= 23; ++number)
    EXPECT_TRUE(refreshed.Add(Seen(number, 3), kSeconds).empty());
  EXPECT_NEAR(MeanOf(refreshed.draws().front().requests.at(kWrites)), kMean_s, 0.001);
}

TEST(Refreshed, TellsNeitherWhatIsSmallNorWhatIsUnsure) {
  struct Row {
    const char* name;
    double times, other_times;  // In alternation.
    uint64_t count;
    size_t drifts;
  };
  const Row rows[] = {{"as predicted", 1, 1, 100, 0},   {"a fifth", 1.2, 1.2, 100, 0},
                      {"too few", 2, 2, 4, 0},          {"no time in all", 2, 2, 5, 0},
                      {"now so, now so", 1, 2, 100, 0}, {"half of it", 0.5, 0.5, 100, 1},
                      {"twice", 2, 2, 100, 1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Refreshed refreshed(SteadyDraws());
    size_t drifts = 0;
    for (size_t number = 1; number <= 40; ++number)
      drifts +=
          refreshed
              .Add(Seen(number, number % 2 == 0 ? row.times : row.other_times, row.count), kSeconds)
              .size();
    EXPECT_EQ(drifts, row.drifts);
  }
}

TEST(Refreshed, WhatComesBackAndGoesAgainIsToldAgain) {
  Refreshed refreshed(SteadyDraws());
  size_t drifts = 0;
  for (size_t number = 0; number < 160; ++number)
    drifts += refreshed.Add(Seen(number, number / 40 % 2 == 0 ? 1 : 2), kSeconds).size();
  EXPECT_EQ(drifts, 2U);
}

}  // namespace
}  // namespace mosa::predict
