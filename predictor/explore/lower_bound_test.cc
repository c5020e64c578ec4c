#include "predictor/explore/lower_bound.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "predictor/explore/canonical.h"
#include "predictor/explore/explore_fixture.h"

namespace mosa::predict {
namespace {

uint64_t FirstSeed() {
  const char* seed = std::getenv("MOSA_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

PowerLevel SomePower() { return {2300, 1, 91.6, 33.6, 37.5, 36.1, 0}; }

// Gives some tasks operations that compute and read the middle of inputs, like traced tasks.
void AddOperations(Rng& rng, Workflow& workflow) {
  for (Task& task : workflow.tasks) {
    if (rng.Chance(500)) continue;
    for (const PathIndex input : task.inputs) {
      const uint64_t bytes = workflow.at(input).size_bytes.value_or(0);
      if (!IsOnTheStore(workflow.at(input)) || bytes < 4) continue;
      task.operations.push_back({Milliseconds(static_cast<int64_t>(rng.Below(50))),
                                 TaskOperation::Kind::kRead, input, bytes / 4, bytes / 4});
    }
    task.operations.push_back({Milliseconds(1), TaskOperation::Kind::kCompute, {}, 0, 0});
  }
}

// MOSA_SEED=N runs another hundred seeds.
TEST(LowerBound, IsNeverAboveWhatIsSimulated) {
  int apart = 0, of_two_classes = 0;
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + 150; ++seed) {
    Rng rng(seed);
    Workflow workflow = RandomWorkload(rng);
    const Platform platform = RandomPlatform(rng);
    Configuration c = RandomConfiguration(rng);
    if (seed % 3 == 0) AddOperations(rng, workflow);
    AddClassPlacements(rng, workflow, c);
    const auto prediction = Predict(workflow, platform, c);
    ASSERT_TRUE(prediction.ok()) << "MOSA_SEED=" << seed << ": " << prediction.status();
    if (prediction->failure) continue;
    const LeastWork work = LeastWorkOf(workflow, platform, c.storage_hosts > 0);
    const Duration least = TimeAtLeast(work, platform, c);
    EXPECT_LE(least.ns, prediction->turnaround.ns) << "MOSA_SEED=" << seed << " " << ToText(c);
    const Outcome outcome = OutcomeOf(*prediction);
    EXPECT_LE(
        EnergyAtLeast(work, platform, c, SomePower(), least),
        EnergyOf(SomePower(), platform.host.cores,
                 static_cast<uint32_t>(prediction->machines.size()), outcome.time, outcome.use))
        << "MOSA_SEED=" << seed << " " << ToText(c);
    apart += c.storage_hosts > 0 ? 1 : 0;
    of_two_classes += c.class_placements.size() == 2 ? 1 : 0;
  }
  EXPECT_GT(apart, 30);
  EXPECT_GT(of_two_classes, 10);
}

// A bound of 0 would pass the other test; this one checks that the dominant cost is in the bound.
TEST(LowerBound, IsNearWhereOneThingRulesTheTime) {
  WorkflowMaker chain;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    chain.File("f" + n, 100 * kMiB);
    chain.Task("t" + n,
               i == 0 ? std::vector<std::string>{} : std::vector{"f" + std::to_string(i - 1)},
               {"f" + n}, Milliseconds(100));
  }
  WorkflowMaker many;
  for (int i = 0; i < 64; ++i) many.Task("t" + std::to_string(i), {}, {}, Milliseconds(100));
  WorkflowMaker writers;
  for (int i = 0; i < 8; ++i) {
    writers.File("f" + std::to_string(i), 50 * kMiB);
    writers.Task("t" + std::to_string(i), {}, {"f" + std::to_string(i)});
  }
  Platform no_shortcut = PlainPlatform();  // FUSE costs what the kernel's direct access costs.
  no_shortcut.client.fuse_write.ns_per_byte = 1;
  no_shortcut.client.local_write.ns_per_byte = 0;
  no_shortcut.client.fuse_read.ns_per_byte = 0.5;
  Platform slow_runner = PlainPlatform();
  slow_runner.runner.dispatch.ns_per_call = 1e8;
  WorkflowMaker streams;
  streams.File("s", 1000, {{"stream", "append"}}).File("t", 1000, {{"stream", "append"}});
  streams.Task("s0", {}, {"s"}, Seconds(1)).Task("s1", {"s"}, {"t"}, Seconds(1));
  streams.Task("s2", {"t"}, {}, Seconds(1));
  Platform forgetful = PlainPlatform();
  forgetful.host.page_cache_bytes = 0;
  const struct {
    const char* what;
    Workflow workflow;
    Platform platform;
    const char* configuration;
  } rows[] = {
      {"a path, where its files are", chain.Build(), no_shortcut, "hosts=4,placement=local"},
      {"a path, over links", chain.Build(), forgetful, "hosts=4,storage=4"},
      {"streams", streams.Build(), PlainPlatform(), "hosts=3,slots=1"},
      {"slots", many.Build(), PlainPlatform(), "hosts=2,slots=2"},
      {"cores", many.Build(), PlainPlatform(), "hosts=2,slots=20"},
      {"the runner", many.Build(), slow_runner, "hosts=50,slots=8"},
      {"links of hosts", writers.Build(), PlainPlatform(), "hosts=2,storage=4,slots=4"},
      {"a link of storage", writers.Build(), PlainPlatform(), "hosts=8,storage=1,slots=1"},
  };
  for (const auto& row : rows) {
    const Prediction prediction = MustPredict(row.workflow, row.platform, row.configuration);
    const Configuration c = *ParseConfiguration(row.configuration);
    const LeastWork work = LeastWorkOf(row.workflow, row.platform, c.storage_hosts > 0);
    const auto least = static_cast<double>(TimeAtLeast(work, row.platform, c).ns);
    const auto simulated = static_cast<double>(prediction.turnaround.ns);
    EXPECT_LE(least, simulated) << row.what;
    EXPECT_GE(least, 0.8 * simulated) << row.what;
  }
}

// Task by task and byte by byte.
void ExpectSame(const Prediction& a, const Prediction& b, const std::string& what) {
  EXPECT_EQ(a.turnaround.ns, b.turnaround.ns) << what;
  EXPECT_EQ(a.failure, b.failure) << what;
  ASSERT_EQ(a.tasks.size(), b.tasks.size()) << what;
  for (size_t i = 0; i < a.tasks.size(); ++i) {
    EXPECT_EQ(a.tasks[i].host, b.tasks[i].host) << what;
    EXPECT_EQ(a.tasks[i].start.ns, b.tasks[i].start.ns) << what;
    EXPECT_EQ(a.tasks[i].end.ns, b.tasks[i].end.ns) << what;
  }
  ASSERT_EQ(a.machines.size(), b.machines.size()) << what;
  for (size_t i = 0; i < a.machines.size(); ++i) {
    EXPECT_EQ(a.machines[i].link, b.machines[i].link) << what;
    EXPECT_EQ(a.machines[i].use, b.machines[i].use) << what;
    EXPECT_EQ(a.machines[i].store_bytes_max, b.machines[i].store_bytes_max) << what;
  }
}

TEST(Canonical, HasTheSamePrediction) {
  int differ = 0, of_two_classes = 0;
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + 150; ++seed) {
    Rng rng(seed);
    const Workflow workflow = RandomWorkload(rng);
    Platform platform = RandomPlatform(rng);
    if (rng.Chance(300)) platform.host.store_bytes = 64 * kMiB;
    Point point{RandomConfiguration(rng), 0};
    if (rng.Chance(300)) point.configuration.store_bytes = platform.host.store_bytes;
    AddClassPlacements(rng, workflow, point.configuration);
    const Point canonical = Canonical(workflow, platform).Of(point);
    if (canonical == point) continue;
    ++differ;
    of_two_classes += point.configuration.class_placements.size() == 2 ? 1 : 0;
    EXPECT_EQ(Canonical(workflow, platform).Of(canonical), canonical);
    const auto one = Predict(workflow, platform, point.configuration);
    const auto other = Predict(workflow, platform, canonical.configuration);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    ExpectSame(*one, *other, "MOSA_SEED=" + std::to_string(seed) + " " + ToText(point));
  }
  EXPECT_GT(differ, 50);
  EXPECT_GT(of_two_classes, 10);
}

TEST(Canonical, KeepsApartWhatDiffers) {
  const Workflow workflow = Reduce(4, 20 * kMiB);
  const Platform platform = PlainPlatform();
  const struct {
    const char* one;
    const char* other;
    bool same;
  } rows[] = {
      {"hosts=4", "hosts=4,stripe=4", true},
      {"hosts=4", "hosts=4,stripe=3", false},
      {"hosts=4,storage=2", "hosts=4,storage=2,stripe=2", true},
      {"hosts=4", "hosts=4,slots=4", true},  // PlainPlatform has four cores.
      {"hosts=4", "hosts=4,slots=3", false},
      {"hosts=4,slots=5", "hosts=4,slots=50", true},  // There are five tasks.
      {"hosts=4,chunk=32M", "hosts=4,chunk=64M", true},
      {"hosts=4,chunk=20M", "hosts=4,chunk=64M", false},
      {"hosts=4,chunk=64K", "hosts=4,chunk=1M", false},
      {"hosts=4,store=64G", "hosts=4", true},
      {"hosts=4,store=63G", "hosts=4", false},
      {"hosts=4,seed=2", "hosts=4", false},
      {"hosts=4,system=dss", "hosts=4", false},
      {"placement:part.*=default", "hosts=4", true},
      {"placement:part.*=stripe", "hosts=4", false},
      {"placement:part.*=stripe", "placement:part.*=local", false},
      {"placement:part.*=stripe,system=dss", "placement:part.*=local,system=dss", true},
  };
  const Canonical canonical(workflow, platform);
  for (const auto& row : rows) {
    const Point one{*ParseConfiguration(row.one), 0};
    const Point other{*ParseConfiguration(row.other), 0};
    EXPECT_EQ(canonical.Of(one) == canonical.Of(other), row.same) << row.one << " " << row.other;
  }
}

}  // namespace
}  // namespace mosa::predict
