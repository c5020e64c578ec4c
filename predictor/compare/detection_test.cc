#include "predictor/compare/detection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "predictor/compare/finding.h"
#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

// Logarithms of the times of a deployment's runs: the prediction is off by `error`, runs differ by
// `spread`, and the last `slow` of them take `times` as long.
struct Deployment {
  double error_scale = 0.06, spread = 0.03;

  std::vector<double> Draws(Rng& rng) const {
    std::vector<double> draws;
    for (int i = 0; i < 40; ++i) draws.push_back(std::log(5.0) + error_scale * NormalDraw(rng));
    return draws;
  }
  std::vector<double> Runs(Rng& rng, int sound, int slow, double times) const {
    const double error = error_scale * NormalDraw(rng);
    std::vector<double> runs;
    for (int i = 0; i < sound + slow; ++i)
      runs.push_back(std::log(5.0) + error + spread * NormalDraw(rng) +
                     (i < sound ? 0 : std::log(times)));
    return runs;
  }
};

std::vector<TimeOfRun> TimesOf(const std::vector<double>& measured) {
  std::vector<TimeOfRun> times;
  for (const double each : measured) times.push_back({each, 0, std::nullopt});
  return times;
}

// What replays say of it.
enum class Explanation { kNothing, kNoPartExplainsIt, kAPartExplainsIt };

bool IsSlower(const Detection& detection, Explanation replayed = Explanation::kNothing) {
  const std::vector<std::string> names(detection.before.size() + detection.shown.size());
  std::vector<Diagnosis> diagnoses;
  if (replayed == Explanation::kAPartExplainsIt)
    diagnoses.push_back({{{SlowBy::kLink, "h2", 1}},
                         25,
                         detection.expected_s,
                         detection.expected_s,
                         detection.measured_s,
                         detection.measured_s,
                         {}});
  return FindingOf(detection, diagnoses, replayed != Explanation::kNothing, names).is_slower;
}

// Where files lie makes runs differ, too, by so much; replays know it.
std::vector<TimeOfRun> ReplayedTimes(const Deployment& deployment, Rng& rng, int sound, int slow,
                                     double times) {
  constexpr double kByPlaces = 0.08;
  std::vector<TimeOfRun> all = TimesOf(deployment.Runs(rng, sound, slow, times));
  for (TimeOfRun& each : all) {
    const double place = kByPlaces * NormalDraw(rng);
    each.measured += place;
    each.replayed = std::log(5.0) + place;
  }
  return all;
}

double ShareFound(const Deployment& deployment, int sound, int slow, double times,
                  Explanation replayed = Explanation::kNothing) {
  constexpr int kTrials = 1000;
  Rng rng(7);
  int found = 0;
  for (int i = 0; i < kTrials; ++i) {
    const std::vector<double> draws = deployment.Draws(rng);
    const auto runs = replayed != Explanation::kNothing
                          ? ReplayedTimes(deployment, rng, sound, slow, times)
                          : TimesOf(deployment.Runs(rng, sound, slow, times));
    found += IsSlower(Detect(draws, runs), replayed) ? 1 : 0;
  }
  return static_cast<double>(found) / kTrials;
}

TEST(DetectTest, SoundRunsAreSeldomSlower) {
  for (const double error : {0.02, 0.06, 0.1})
    for (const int sound : {1, 2, 3, 5, 8})
      for (const Explanation replayed : {Explanation::kNothing, Explanation::kNoPartExplainsIt})
        EXPECT_LE(ShareFound({error, 0.03}, sound, 0, 1, replayed), 0.01)
            << error << " " << sound << " " << static_cast<int>(replayed);
}

TEST(DetectTest, FindsAThirdMoreAfterTwoRuns) {
  for (const int sound : {0, 2, 5}) {
    EXPECT_GE(ShareFound({0.03, 0.03}, sound, 2, 1.3), 0.95) << sound;
    EXPECT_GE(ShareFound({0.06, 0.03}, sound, 2, 1.3, Explanation::kAPartExplainsIt), 0.95)
        << sound;
  }
  EXPECT_GE(ShareFound({0.06, 0.03}, 2, 2, 1.3), 0.9);
  EXPECT_GE(ShareFound({0.06, 0.03}, 0, 2, 1.3), 0.6) << "a prediction that is often off by 12 %";
}

TEST(DetectTest, SoundRunsOfBeforeMakeItEasier) {
  EXPECT_GE(ShareFound({0.06, 0.03}, 3, 3, 1.15), 0.55);
  EXPECT_GE(ShareFound({0.06, 0.03}, 5, 3, 1.15), 0.85);
  EXPECT_GE(ShareFound({0.06, 0.03}, 2, 3, 1.15, Explanation::kAPartExplainsIt), 0.9);
  EXPECT_GT(ShareFound({0.1, 0.03}, 5, 2, 1.25), ShareFound({0.1, 0.03}, 0, 2, 1.25));
}

TEST(DetectTest, SaysSinceWhen) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  const Detection found = Detect(draws, TimesOf({1.6, 1.61, 1.59, 1.9, 1.92}));
  EXPECT_EQ(found.before, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(found.shown, (std::vector<size_t>{3, 4}));
  EXPECT_NEAR(found.excess_share, std::expm1(0.31), 0.02);
  const Detection always = Detect(draws, TimesOf({1.9, 1.92, 1.91, 1.9, 1.92}));
  EXPECT_EQ(always.shown.size(), 5U);
  EXPECT_GT(always.evidence, 3);
}

TEST(DetectTest, FasterRunsAreNotSlower) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  EXPECT_FALSE(IsSlower(Detect(draws, TimesOf({1.2, 1.21, 1.2}))));
}

// Runs differ by where their files lie: replays know that.
TEST(DetectTest, ReplaysMakeRunsAlike) {
  const std::vector<double> draws = {1.6, 1.45, 1.75, 1.5, 1.7};
  const std::vector<double> lies = {0.15, -0.1, 0.05, -0.12, 0.0};
  std::vector<TimeOfRun> times;
  for (size_t run = 0; run < lies.size(); ++run)
    times.push_back({1.6 + lies[run] + (run < 2 ? 0 : 0.2), 0, 1.6 + lies[run]});
  const Detection found = Detect(draws, times);
  EXPECT_EQ(found.shown, (std::vector<size_t>{2, 3, 4}));
  EXPECT_NEAR(found.excess_share, std::expm1(0.2), 0.03);
  EXPECT_NEAR(found.expected_s * (1 + found.excess_share), found.measured_s, 1e-9);
  for (TimeOfRun& time : times) time.replayed.reset();
  EXPECT_LT(Detect(draws, times).evidence, found.evidence);
}

// However slow one of them was: it is over.
TEST(DetectTest, OneSlowRunAmongOthersIsNoSlowdown) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  for (const double slow : {1.9, 2.5, 4.5})
    EXPECT_FALSE(IsSlower(Detect(draws, TimesOf({1.6, slow, 1.61})))) << slow;
}

// A replay follows files to bad places, and finds nothing slow there.
TEST(DetectTest, TheWorkflowAloneShowsBadPlaces) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  std::vector<TimeOfRun> times = {{1.6, 0, 1.6}, {1.61, 0, 1.61}};
  for (const double each : {2.0, 2.01, 1.99}) times.push_back({each, 0, each});
  EXPECT_TRUE(IsSlower(Detect(draws, times)));
}

TEST(DetectTest, WorkOfOthersIsTakenOff) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  std::vector<TimeOfRun> times = TimesOf({1.6, 1.61, 1.9, 1.92, 1.9});
  for (size_t run = 2; run < times.size(); ++run) times[run].by_others = 0.3;
  EXPECT_FALSE(IsSlower(Detect(draws, times)));
  for (size_t run = 2; run < times.size(); ++run) times[run].by_others = 0.1;
  const Detection found = Detect(draws, times);
  EXPECT_NEAR(found.measured_s, std::exp((1.9 + 1.92 + 1.9) / 3), 1e-9) << "as it was";
  EXPECT_NEAR(found.excess_share, std::expm1(0.2), 0.03);
}

}  // namespace
}  // namespace mosa::predict
