// Cold page caches, in simulated runs.
#include "predictor/compare/read_again.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "predictor/compare/compare_fixture.h"
#include "predictor/compare/comparison.h"

namespace mosa::predict {
namespace {

constexpr const char* kWarm = "hosts=4,slots=1,manager=apart,system=dss";
constexpr const char* kColdAtH2 = "hosts=4,slots=1,manager=apart,system=dss,h2.cache=0";
constexpr const char* kSlowLinkOfH2 = "hosts=4,slots=1,manager=apart,system=dss,h2.link=30M";
constexpr const char* kColdAndSlow =
    "hosts=4,slots=1,manager=apart,system=dss,h2.cache=0,h2.link=30M";

// Each host reads the base several times.
Workflow Shared() {
  WorkflowMaker maker;
  maker.File("base", 64 * kMiB);
  maker.Task("begin_0", {}, {"base"}, Nanoseconds(50'000'000));
  for (int i = 0; i < 32; ++i) {
    const std::string n = std::to_string(i);
    maker.File("out." + n, 2 * kMiB);
    maker.Task("use_" + n, {"base"}, {"out." + n}, Nanoseconds(200'000'000 + i % 3 * 20'000'000));
  }
  return maker.Build();
}

SeenRun SimulatedFromBase(const Workflow& workflow, const std::string& deployment, uint64_t seed) {
  Platform platform = BusyPlatform();
  platform.network.spread = 0.03;
  auto configuration = ParseConfiguration(deployment);
  EXPECT_TRUE(configuration.ok()) << configuration.status();
  configuration->seed = seed;
  const auto prediction =
      Predict(workflow, Perturbed(platform, seed), *configuration, {.with_layouts = true});
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  SeenRun run = SeenOf(workflow, *prediction, platform, kHosts);
  run.name = fmt::format("run-{}", seed);
  return run;
}

class ReadAgainTest : public testing::Test {
 protected:
  Comparison CompareRuns(const std::string& predicted, const std::string& measured,
                         void (*change)(SeenRun&) = nullptr) const {
    std::vector<SeenRun> draws, runs;
    for (uint64_t seed = 1; seed <= 20; ++seed)
      draws.push_back(SimulatedFromBase(workflow_, predicted, seed));
    for (uint64_t seed = 101; seed <= 103; ++seed) {
      runs.push_back(SimulatedFromBase(workflow_, measured, seed));
      if (change != nullptr) change(runs.back());
    }
    return Compare(workflow_, draws, runs, {.slots = 1, .link_bytes_per_second = 100'000'000});
  }
  static bool IsPageCacheBlamed(const Comparison& comparison) {
    return std::ranges::any_of(comparison.anomalies, [](const Anomaly& anomaly) {
      return !anomaly.blamed.empty() && anomaly.blamed.front().suspect.part == Part::kPageCache;
    });
  }

  const Workflow workflow_ = Shared();
};

TEST_F(ReadAgainTest, NamesTheHostWhosePageCacheIsCold) {
  const Comparison comparison = CompareRuns(kWarm, kColdAtH2);
  ASSERT_FALSE(comparison.anomalies.empty());
  const Anomaly& largest = comparison.anomalies.front();
  ASSERT_FALSE(largest.blamed.empty());
  EXPECT_EQ(largest.blamed.front().suspect, (Suspect{Part::kPageCache, "h2"})) << largest.cause;
  EXPECT_NE(largest.cause.find("The page cache of h2: its mount read"), std::string::npos)
      << largest.cause;
  EXPECT_EQ(largest.open_first.rfind("h2: 'free'", 0), 0U) << largest.open_first;
}

TEST_F(ReadAgainTest, SlowLinksAreNoColdPages) {
  const Comparison comparison = CompareRuns(kWarm, kSlowLinkOfH2);
  ASSERT_FALSE(comparison.anomalies.empty());
  EXPECT_FALSE(IsPageCacheBlamed(comparison));
}

TEST_F(ReadAgainTest, ColdAsPredictedIsNoAnomaly) {
  EXPECT_TRUE(CompareRuns(kColdAtH2, kColdAtH2).anomalies.empty());
  const Comparison slow = CompareRuns(kColdAtH2, kColdAndSlow);
  EXPECT_FALSE(slow.anomalies.empty());
  EXPECT_FALSE(IsPageCacheBlamed(slow));
}

// Four tasks on h2 read a base, and each reads a part of its own.
TEST(FindColdPages, CountsEachFileByItself) {
  WorkflowMaker maker;
  maker.File("base", 64 * kMiB);
  for (int i = 0; i < 4; ++i) {
    maker.File(fmt::format("part.{}", i), 2 * kMiB);
    maker.Task(fmt::format("use_{}", i), {"base", fmt::format("part.{}", i)}, {},
               Nanoseconds(1'000'000));
  }
  const Workflow workflow = maker.Build();
  const auto find = [&workflow](const std::vector<uint64_t>& elsewhere, uint64_t fetched,
                                const std::string& stage = "") {
    SeenRun run;
    run.hosts = {"h1", "h2"};
    run.fetched["h2"] = fetched;
    run.tasks.resize(4);
    for (SeenTask& task : run.tasks) {
      task.ran = true;
      task.host = HostIndex{1};
      task.inputs_elsewhere = elsewhere;
    }
    const std::map<std::string, TaskTimes> tasks = {{"h2", {1, 5}}};
    return FindColdPages({workflow, {}, {run}, {0}, stage, tasks, 10'000'000});
  };
  const auto cold = find({64 * kMiB, 2 * kMiB}, 264 * kMiB);
  ASSERT_TRUE(cold);
  EXPECT_EQ(cold->suspect, (Suspect{Part::kPageCache, "h2"}));
  EXPECT_TRUE(find({64 * kMiB, 2 * kMiB}, 264 * kMiB, "use"));
  EXPECT_FALSE(find({64 * kMiB, 2 * kMiB}, 264 * kMiB, "another"));
  EXPECT_FALSE(find({64 * kMiB, 2 * kMiB}, 999 * kMiB));  // Others read there as well.
  EXPECT_FALSE(find({64 * kMiB, 2 * kMiB}, 72 * kMiB));   // Each reads for the first time.
  EXPECT_FALSE(find({0, 2 * kMiB}, 8 * kMiB));            // The bytes read again are local.
  EXPECT_FALSE(find({64 * kMiB}, 264 * kMiB));            // Where some of it lay is unknown.
}

// If somebody else used the mount, or it does not report what it moved, bytes prove nothing.
TEST_F(ReadAgainTest, OnlyTheRunsOwnBytesTell) {
  for (void (*change)(SeenRun&) :
       {+[](SeenRun& run) { run.fetched.at("h2") *= 3; },
        +[](SeenRun& run) { run.fetched.erase("h2"); }, +[](SeenRun& run) { run.whole = false; }}) {
    EXPECT_FALSE(IsPageCacheBlamed(CompareRuns(kWarm, kColdAtH2, change)));
  }
}

}  // namespace
}  // namespace mosa::predict
