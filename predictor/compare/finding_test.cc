#include "predictor/compare/finding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mosa::predict {
namespace {

const std::vector<std::string> kRunNames = {"r1.json", "r2.json", "r3.json"};

Detection Slow(double evidence, double excess_share = 0.5) {
  return {{1, 2}, {0}, 6, 6 / (1 + excess_share), excess_share, excess_share, evidence};
}

Diagnosis Of(SlowBy how, const std::string& at, double gain, double replayed_s = 5.8) {
  return {{{how, at, 1}}, gain, 4, 4, replayed_s, 6, {}};
}

TEST(FindingTest, NothingIsFoundInNoRuns) {
  const Finding finding = FindingOf({}, {}, false, {});
  EXPECT_FALSE(finding.is_slower);
  EXPECT_EQ(finding.sentence, "");
}

TEST(FindingTest, SaysHowMuchSlowerThoughNothingWasReplayed) {
  const Finding finding = FindingOf(Slow(5), {}, false, kRunNames);
  EXPECT_TRUE(finding.is_slower);
  EXPECT_FALSE(finding.is_replayed);
  EXPECT_EQ(finding.sentence,
            "The last 2 of 3 runs took 6.000 s, expected 4.000 s (+50 %), since r2.json.");
  EXPECT_EQ(FindingOf(Slow(0), {}, false, kRunNames).sentence,
            "The last 2 of 3 runs took 6.000 s, expected 4.000 s (+50 %).");
}

TEST(FindingTest, NamesThePartAndWhatWouldHaveBeen) {
  const Finding finding = FindingOf(
      Slow(5), {Of(SlowBy::kLinkOut, "h2", 40), Of(SlowBy::kLink, "h3", 10)}, true, kRunNames);
  ASSERT_EQ(finding.causes.size(), 1U) << "the other is far less likely";
  EXPECT_EQ(finding.causes[0].suspects, (std::vector<Suspect>{{Part::kLink, "h2"}}));
  EXPECT_EQ(
      finding.causes[0].sentence,
      "the link of h2 (each byte that leaves takes 2 times as long): a replay with this takes "
      "5.800 s; without it, the runs would have taken 4.138 s.");
}

TEST(FindingTest, MentionsEachPartOnceThatIsNearlyAsLikely) {
  const Finding finding =
      FindingOf(Slow(5),
                {Of(SlowBy::kManagerWait, "", 40), Of(SlowBy::kManagerPause, "", 39),
                 Of(SlowBy::kComputing, "turn", 39), Of(SlowBy::kComputing, "sum", 38)},
                true, kRunNames);
  EXPECT_EQ(finding.causes.size(), 3U);
}

TEST(FindingTest, APartThatExplainsLittleIsNoCause) {
  const Finding finding = FindingOf(
      Slow(5), {Of(SlowBy::kLink, "h2", 60, 4.1), Of(SlowBy::kLink, "h3", 5)}, true, kRunNames);
  EXPECT_TRUE(finding.is_slower);
  EXPECT_TRUE(finding.is_replayed);
  EXPECT_TRUE(finding.causes.empty());
}

// A clear suspicion makes up for times that say little, not for times that speak against it; where
// no part explains them, times must say more.
TEST(FindingTest, ASuspicionCountsAsEvidence) {
  const std::vector<Diagnosis> clear = {Of(SlowBy::kLink, "h2", 40)};
  EXPECT_TRUE(FindingOf(Slow(-1), clear, true, kRunNames).is_slower);
  EXPECT_FALSE(FindingOf(Slow(-1), {}, false, kRunNames).is_slower);
  EXPECT_FALSE(FindingOf(Slow(-2), clear, true, kRunNames).is_slower);
  EXPECT_FALSE(FindingOf(Slow(-1, 0.04), clear, true, kRunNames).is_slower) << "too little";
  EXPECT_TRUE(FindingOf(Slow(2), {}, false, kRunNames).is_slower);
  EXPECT_FALSE(FindingOf(Slow(2), {}, true, kRunNames).is_slower);
  EXPECT_FALSE(FindingOf(Slow(2), {Of(SlowBy::kLink, "h2", 40, 4.1)}, true, kRunNames).is_slower);
}

// As it ran, the workflow would have taken as long without it: what is slow was avoided.
TEST(FindingTest, APartThatWasAvoidedIsACause) {
  Diagnosis avoided = Of(SlowBy::kTasks, "h2", 40, 6);
  avoided.predicted_s = 6;
  const Finding finding = FindingOf(Slow(5), {avoided}, true, kRunNames);
  ASSERT_EQ(finding.causes.size(), 1U);
  EXPECT_NEAR(finding.causes[0].without_s, 4, 1e-9);
  avoided.gain = 6;
  EXPECT_TRUE(FindingOf(Slow(5), {avoided}, true, kRunNames).causes.empty()) << "by chance";
}

}  // namespace
}  // namespace mosa::predict
