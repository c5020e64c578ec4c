#include "predictor/model/energy.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

// Provisioning, section 4.2: nodes of the 'Lyon' cluster.
PowerLevel Lyon() { return {2300, 1, 91.6, 33.6, 37.5, 36.1, 0}; }

TEST(Energy, IsIdlePowerAndWhatEachPartDrawsWhileItIsBusy) {
  const struct {
    const char* what;
    uint32_t cores;
    uint32_t hosts;
    Duration time;
    HostUse use;
    double joules;
  } rows[] = {
      {"nothing to do", 12, 11, Seconds(100), {}, 11 * 91.6 * 100},
      {"no time", 12, 11, Seconds(0), {}, 0},
      {"one host computes with all its cores", 12, 1, Seconds(10), {120, 0, 0, 0}, 1252},
      {"with one of its cores", 12, 1, Seconds(10), {10, 0, 0, 0}, 916 + 33.6 * 10 / 12},
      {"the store works with all cores", 12, 1, Seconds(10), {0, 120, 0, 0}, 916 + 375},
      {"a link is full in both directions", 12, 1, Seconds(10), {0, 0, 10, 10}, 916 + 361},
      {"in one", 12, 1, Seconds(10), {0, 0, 0, 10}, 916 + 180.5},
      {"all at once on two hosts", 2, 2, Seconds(1), {2, 2, 1, 1}, 183.2 + 33.6 + 37.5 + 36.1},
  };
  for (const auto& row : rows)
    EXPECT_NEAR(EnergyOf(Lyon(), row.cores, row.hosts, row.time, row.use), row.joules, 1e-9)
        << row.what;
}

TEST(Energy, IsDrawnFromTheSpreadOfItsPowers) {
  PowerLevel level = Lyon();
  EXPECT_EQ(Perturbed(level, 7), level);
  level.spread = 0.1;
  EXPECT_EQ(Perturbed(level, 7), Perturbed(level, 7));
  EXPECT_EQ(Perturbed(level, 0), level) << "as measured";
  double sum = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) sum += Perturbed(level, seed).idle_w / 400;
  EXPECT_NEAR(sum, 91.6, 91.6 * 0.1 * 4 / 20);
}

TEST(Energy, SlowsProcessorsAloneAtALowerFrequency) {
  Platform platform;
  platform.host.speed = 2;
  const Platform slow = AtLevel(platform, {1200, 0.5, 80, 20, 30, 30, 0});
  EXPECT_EQ(slow.host.speed, 1);
  platform.host.speed = 1;
  EXPECT_EQ(slow, platform);
}

const char* const kGood =
    "mosa_power: 1\nmachine: Lyon\nmeasured: 2014\nby: a wattmeter\nlevels:\n"
    "  - {frequency_mhz: 2300, speed: 1, idle_w: 91.6, application_w: 33.6, storage_w: 37.5, "
    "network_w: 36.1}\n"
    "  - {frequency_mhz: 1200, speed: 0.52, idle_w: 88, application_w: 15, storage_w: 20, "
    "network_w: 30, spread: 0.05}\n";

TEST(PowerFile, HasALevelForEachFrequency) {
  const auto profile = ReadPower(kGood);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->machine, "Lyon");
  ASSERT_EQ(profile->levels.size(), 2U);
  EXPECT_EQ(profile->levels[0], Lyon());
  EXPECT_EQ(profile->levels[1], (PowerLevel{1200, 0.52, 88, 15, 20, 30, 0.05}));
  EXPECT_EQ(*LevelAt(*profile, 0), profile->levels[0]);
  EXPECT_EQ(*LevelAt(*profile, 1200), profile->levels[1]);
  EXPECT_EQ(MessageOf(LevelAt(*profile, 1800).status()),
            "the power file has no level of 1800 MHz, only 2300, 1200");
}

std::string PowerWith(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PowerFile, SaysWhatIsWrongInOneSentence) {
  const struct {
    std::string text;
    const char* expected;
  } rows[] = {
      {"", "line 1: the text is empty"},
      {"{\"mosa_platform\": 1}", "it has no 'mosa_power'"},
      {PowerWith("mosa_power: 1", "mosa_power: 2"), "line 1: the power file has version '2'"},
      {PowerWith("measured", "mesured"),
       "a power file has an unknown key 'mesured': did you mean 'measured'?"},
      {PowerWith("91.6", "-1"), "line 6: idle_w is '-1': it must be a number from 0 to"},
      {PowerWith("91.6", "nan"), "idle_w is 'nan'"},
      {PowerWith("speed: 0.52", "speed: 0"), "line 7: speed is '0'"},
      {PowerWith("idle_w: 88, ", ""), "a level needs 'idle_w', a number"},
      {PowerWith("idle_w: 88", "idle: 88"), "a level has an unknown key 'idle': known keys are"},
      {PowerWith("mhz: 1200", "mhz: 2300"), "two levels have 2300 MHz"},
      {PowerWith("mhz: 1200", "mhz: 1200.5"), "frequency_mhz is 1200.5: it must be a whole number"},
      {PowerWith("mhz: 1200", "mhz: 1e300"),
       "frequency_mhz is '1e300': it must be a number from 1 to"},
      {PowerWith("mhz: 1200", "mhz: -1"), "frequency_mhz is '-1'"},
      {PowerWith("mhz: 1200", "mhz: nan"), "frequency_mhz is 'nan'"},
      {"mosa_power: 1\n", "a power file has 1 to 100 levels, not 0"},
  };
  for (const auto& row : rows) {
    const auto profile = ReadPower(row.text);
    ASSERT_FALSE(profile.ok()) << row.expected;
    EXPECT_NE(MessageOf(profile.status()).find(row.expected), std::string::npos)
        << row.expected << ": " << profile.status();
  }
}

TEST(Interval, HoldsNineOfTenDraws) {
  EXPECT_FALSE(NineOfTen(std::vector<int>(kDrawsMin - 1, 1)));
  for (int n = kDrawsMin; n <= 250; ++n) {
    std::vector<int> draws;
    for (int i = n; i >= 1; --i) draws.push_back(i);
    const auto interval = NineOfTen(draws);
    ASSERT_TRUE(interval) << n;
    EXPECT_EQ(interval->low + interval->high, n + 1) << n;
    // A further draw falls into each of the n + 1 gaps with equal probability. One gap less would
    // be too few.
    const double inside = interval->high - interval->low;
    EXPECT_GE(inside / (n + 1), 0.9) << n;
    EXPECT_LT((inside - 2) / (n + 1), 0.9) << n;
  }
}

}  // namespace
}  // namespace mosa::predict
