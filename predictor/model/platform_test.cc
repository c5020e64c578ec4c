#include "predictor/model/platform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "predictor/model/platform_json.h"

namespace mosa::predict {
namespace {

Platform Example() {
  Platform platform;
  platform.machine = "two cores, \"quoted\"";
  platform.measured = "2026-11-21";
  platform.host.cores = 8;
  platform.host.speed = 1.25;
  platform.shared_cores = 2;
  platform.manager.open = {9000, 0.5, 0.05};
  platform.client.passthrough = false;
  platform.network.spread = 0.02;
  platform.model.spread = 0.07;
  return platform;
}

TEST(PlatformFile, ReadsBackWhatItWrote) {
  const auto read = ReadPlatform(WritePlatform(Example()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Example());
}

// Replaces the first `from` in the example's file.
std::string PlatformWith(const std::string& from, const std::string& to) {
  std::string text = WritePlatform(Example());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PlatformFile, LetsPeopleComment) {
  const auto read =
      ReadPlatform(PlatformWith("\"cores\": 8", "\"comment cores\": \"a guess\",\"cores\": 8"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Example());
}

TEST(PlatformFile, SaysWhatIsWrongInOneSentence) {
  const struct {
    std::string text;
    const char* expected;
  } rows[] = {
      {"", "line 1: this is not JSON, or it is cut short"},
      {WritePlatform(Example()).substr(0, 200), "this is not JSON, or it is cut short"},
      {"[1]", "a platform file must be one JSON object"},
      {"{}", "it has no 'mosa_platform'"},
      {std::string(5000, '['), "more than 1000 objects"},
      {PlatformWith("\"mosa_platform\": 4", "\"mosa_platform\": 1"),
       "has version 1, but this program reads version 4: make it again"},
      {PlatformWith("\"mosa_platform\": 4", "\"mosa_platform\": 5"),
       "has version 5, but this program reads"},
      {PlatformWith("\"cores\": 8", "\"cores\": \"8\""), "'host.cores' must be a whole number"},
      {PlatformWith("\"cores\": 8", "\"cores\": -8"), "'host.cores' must be a whole number"},
      {PlatformWith("\"cores\": 8", "\"cores\": 99999999999"),
       "'host.cores' must be a whole number"},
      {PlatformWith("\"cores\": 8", "\"cores\": 0"), "host.cores is 0: it must be above 0"},
      {PlatformWith("\"cores\": 8", "\"cors\": 8"), "'host.cores' is missing"},
      {PlatformWith("\"cores\": 8", "\"cors\": 8, \"cores\": 8"), "'host.cors' is not a field"},
      {PlatformWith("\"host\": {", "\"more\": 1, \"host\": {"), "'more' is not a field"},
      {PlatformWith("\"passthrough\": false", "\"passthrough\": 0"), "must be true or false"},
      {PlatformWith("9000.0", "-1"), "manager.open.ns_per_call is -1: it must be a number from 0"},
      {PlatformWith("9000.0", "1e300"), "manager.open.ns_per_call is 1e+300"},
      {PlatformWith("\"ns_per_call\": 9000.0,", ""), "'manager.open.ns_per_call' is missing"},
      {PlatformWith("\"ns_per_call\": 9000.0", "\"ns\": 1"),
       "'manager.open.ns' is not a field of a cost"},
      {PlatformWith("\"speed\": 1.25", "\"speed\": 0"),
       "host.speed is 0: it must be from 0.001 to 1000"},
      {PlatformWith("\"speed\": 1.25", "\"speed\": 1e-12"),
       "host.speed is 1e-12: it must be from 0.001"},
      {PlatformWith("\"speed\": 1.25", "\"speed\": 1e999"), "is out of range, such as 1e999"},
      {PlatformWith("\"spread\": 0.02", "\"spread\": 1.5"),
       "network.spread is 1.5: it must be a number from"},
      {PlatformWith("\"spread\": 0.07", "\"spread\": 1.5"),
       "model.spread is 1.5: it must be a number from"},
      {PlatformWith("\"spread\": 0.07", "\"spread\": -0.1"),
       "model.spread is -0.1: it must be a number"},
      {PlatformWith("\"spread\": 0.07", "\"spread\": \"7 %\""), "'model.spread' must be a number"},
      {PlatformWith("\"spread\": 0.07", ""), "'model.spread' is missing"},
      {PlatformWith("\"model\": {", "\"modell\": {"), "'model' is missing or not an object"},
  };
  for (const auto& row : rows) {
    const auto read = ReadPlatform(row.text);
    ASSERT_FALSE(read.ok()) << row.expected;
    EXPECT_NE(MessageOf(read.status()).find(row.expected), std::string::npos)
        << row.expected << ": " << read.status();
  }
}

TEST(Platform, IsDrawnFromItsSpreads) {
  const Platform base = Example();
  EXPECT_EQ(Perturbed(base, 1), Perturbed(base, 1));
  EXPECT_NE(Perturbed(base, 1), Perturbed(base, 2));
  EXPECT_EQ(Perturbed(base, 0), base) << "as measured";
  double sum = 0;
  for (uint64_t draw = 1; draw <= 400; ++draw) {
    const Platform drawn = Perturbed(base, draw);
    EXPECT_EQ(drawn.manager.make, base.manager.make);  // It has no spread.
    sum += drawn.manager.open.ns_per_call / 400;
  }
  EXPECT_NEAR(sum, 9000, 9000 * 0.05 * 4 / 20);
}

TEST(Platform, IsOffAsAWholeAsMuchAsItsModelIs) {
  Platform base = Example();
  EXPECT_EQ(ModelFactor(base, 1), ModelFactor(base, 1));
  EXPECT_EQ(ModelFactor(base, 0), 1) << "as measured";
  constexpr uint64_t kDraws = 4000;
  double sum = 0, squares = 0;
  for (uint64_t draw = 1; draw <= kDraws; ++draw) {
    const double off = std::log(ModelFactor(base, draw));
    sum += off / kDraws;
    squares += off * off / kDraws;
  }
  EXPECT_NEAR(sum, 0, 0.004);
  EXPECT_NEAR(std::sqrt(squares), 0.07, 0.003);
  base = Platform();
  EXPECT_EQ(ModelFactor(base, 1), 1);
  EXPECT_FALSE(HasSpread(base));
  base.model.spread = 0.01;
  EXPECT_TRUE(HasSpread(base));
  EXPECT_EQ(Perturbed(base, 1), base) << "no figure is off by it";
}

TEST(Cost, IsOfTheCallAndOfItsBytes) {
  const Cost cost{100, 0.5, 0};
  EXPECT_EQ(cost.Of(0).ns, 100);
  EXPECT_EQ(cost.Of(1000).ns, 600);
}

}  // namespace
}  // namespace mosa::predict
