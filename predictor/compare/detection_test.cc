#include "predictor/compare/detection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/rng.h"
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

double ShareFound(const Deployment& deployment, int sound, int slow, double times) {
  constexpr int kTrials = 1000;
  Rng rng(7);
  int found = 0;
  for (int i = 0; i < kTrials; ++i)
    found += Detect(deployment.Draws(rng), deployment.Runs(rng, sound, slow, times)).is_slower();
  return static_cast<double>(found) / kTrials;
}

TEST(DetectTest, SoundRunsAreSeldomSlower) {
  for (const double error : {0.02, 0.06, 0.1})
    for (const int sound : {1, 2, 3, 5, 8})
      EXPECT_LE(ShareFound({error, 0.03}, sound, 0, 1), 0.01) << error << " " << sound;
}

TEST(DetectTest, FindsAThirdMoreAfterTwoRuns) {
  for (const int sound : {0, 2, 5})
    EXPECT_GE(ShareFound({0.03, 0.03}, sound, 2, 1.3), 0.95) << sound;
  for (const int sound : {2, 5}) EXPECT_GE(ShareFound({0.06, 0.03}, sound, 2, 1.3), 0.95) << sound;
  EXPECT_GE(ShareFound({0.06, 0.03}, 0, 2, 1.3), 0.7) << "a prediction that is often off by 12 %";
}

TEST(DetectTest, SoundRunsOfBeforeMakeItEasier) {
  EXPECT_GE(ShareFound({0.06, 0.03}, 3, 3, 1.15), 0.75);
  EXPECT_GE(ShareFound({0.06, 0.03}, 5, 3, 1.15), 0.9);
  EXPECT_GT(ShareFound({0.1, 0.03}, 5, 2, 1.25), ShareFound({0.1, 0.03}, 0, 2, 1.25));
}

TEST(DetectTest, SaysSinceWhen) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  const Detection found = Detect(draws, {1.6, 1.61, 1.59, 1.9, 1.92});
  EXPECT_EQ(found.before, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(found.shown, (std::vector<size_t>{3, 4}));
  EXPECT_NEAR(found.excess_share, std::expm1(0.31), 0.02);
  const Detection always = Detect(draws, {1.9, 1.92, 1.91, 1.9, 1.92});
  EXPECT_EQ(always.shown.size(), 5U);
  EXPECT_GT(always.evidence, 3);
}

TEST(DetectTest, FasterRunsAreNotSlower) {
  const std::vector<double> draws = {1.6, 1.58, 1.62, 1.61, 1.59};
  EXPECT_FALSE(Detect(draws, {1.2, 1.21, 1.2}).is_slower());
}

}  // namespace
}  // namespace mosa::predict
