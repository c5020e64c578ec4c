#include "predictor/plan/partition.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {
namespace {

PartitionOptions Equal(uint32_t hosts, uint64_t seed = 1) {
  return {.shares = std::vector<double>(hosts, 1.0 / hosts), .imbalance = 0.1, .seed = seed};
}

std::vector<double> SecondsEach(const Workflow& workflow, double each = 1) {
  return std::vector<double>(workflow.tasks.size(), each);
}

// What the division moves, as the partitioner counts it.
uint64_t BytesMoved(const Workflow& workflow, const std::vector<HostIndex>& hosts) {
  uint64_t bytes = 0;
  for (const WorkflowFile& file : workflow.files) {
    if (!IsOnTheStore(file)) continue;
    std::set<HostIndex> on;
    if (file.producer) on.insert(hosts[file.producer->value]);
    for (const TaskIndex reader : file.consumers) on.insert(hosts[reader.value]);
    if (on.size() > 1) bytes += file.size_bytes.value_or(0) * (on.size() - 1);
  }
  return bytes;
}

std::map<std::pair<uint32_t, HostIndex>, int> TasksByLevel(const Workflow& workflow,
                                                           const std::vector<HostIndex>& hosts) {
  std::map<std::pair<uint32_t, HostIndex>, int> tasks;
  for (size_t i = 0; i < hosts.size(); ++i) ++tasks[{workflow.tasks[i].level, hosts[i]}];
  return tasks;
}

TEST(PartitionTasks, AChainStaysOnOneHostAndHostsGetEquallyMany) {
  const Workflow workflow = Pipelines(12, 1 << 20);
  const auto hosts = PartitionTasks(workflow, SecondsEach(workflow), Equal(4));
  EXPECT_EQ(BytesMoved(workflow, hosts), 0U);
  for (const auto& [where, count] : TasksByLevel(workflow, hosts)) EXPECT_EQ(count, 3);
}

// A grid of tiles, of which each pair of neighbours is compared: blocks have the fewest comparisons
// across.
TEST(PartitionTasks, NeighboursOfAGridStayTogether) {
  constexpr int kSide = 8;
  WorkflowMaker maker;
  const auto tile = [](int x, int y) { return fmt::format("tile.{}.{}", x, y); };
  for (int x = 0; x < kSide; ++x) {
    for (int y = 0; y < kSide; ++y) {
      maker.File(tile(x, y), 1 << 20);
      maker.Task("make_" + tile(x, y), {}, {tile(x, y)});
    }
  }
  int pairs = 0;
  for (int x = 0; x < kSide; ++x) {
    for (int y = 0; y < kSide; ++y) {
      for (const auto& [dx, dy] : {std::pair(1, 0), std::pair(0, 1)}) {
        if (x + dx == kSide || y + dy == kSide) continue;
        const std::string difference = fmt::format("diff.{}", ++pairs);
        maker.File(difference, 1000);
        maker.Task("compare_" + difference, {tile(x, y), tile(x + dx, y + dy)}, {difference});
      }
    }
  }
  const Workflow workflow = maker.Build();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto hosts = PartitionTasks(workflow, SecondsEach(workflow), Equal(4, seed));
    // Four blocks of 4 x 4 tiles move 16 tiles. Placing tasks at random moves some 90.
    EXPECT_LE(BytesMoved(workflow, hosts), uint64_t{26} << 20) << seed;
    for (const auto& [where, count] : TasksByLevel(workflow, hosts))
      EXPECT_LE(count, where.first == 0 ? 18 : 32) << seed;
  }
}

TEST(PartitionTasks, AHostWithTwiceTheShareGetsTwiceTheTasksAndOneWithoutAShareNone) {
  const Workflow workflow = Pipelines(40, 1 << 20);
  PartitionOptions options = Equal(3);
  options.shares = {0.5, 0.25, 0.25, 0};
  const auto hosts = PartitionTasks(workflow, SecondsEach(workflow), options);
  std::map<HostIndex, int> tasks;
  for (const HostIndex host : hosts) ++tasks[host];
  EXPECT_NEAR(tasks[HostIndex{0}], 60, 7);
  EXPECT_EQ(tasks.count(HostIndex{3}), 0U);
}

TEST(PartitionTasks, OneLongTaskOutweighsManyShortOnes) {
  WorkflowMaker maker;
  for (int i = 0; i < 21; ++i)
    maker.File(fmt::format("f{}", i), 1).Task(fmt::format("t{}", i), {}, {fmt::format("f{}", i)});
  const Workflow workflow = maker.Build();
  std::vector<double> seconds = SecondsEach(workflow);
  seconds[7] = 20;
  PartitionOptions options = Equal(2);
  options.imbalance = 0;
  const auto hosts = PartitionTasks(workflow, seconds, options);
  for (size_t i = 0; i < seconds.size(); ++i) EXPECT_EQ(hosts[i] == hosts[7], i == 7) << i;
}

TEST(PartitionTasks, AnyGraphIsDividedWithinItsBounds) {
  Rng rng(20261129);
  for (int round = 0; round < 200; ++round) {
    const Workflow workflow = RandomWorkflow(rng, 60);
    const auto hosts = static_cast<uint32_t>(1 + rng.Below(6));
    const auto division = PartitionTasks(workflow, SecondsEach(workflow, 0.5), Equal(hosts, round));
    ASSERT_EQ(division.size(), workflow.tasks.size());
    EXPECT_EQ(PartitionTasks(workflow, SecondsEach(workflow, 0.5), Equal(hosts, round)), division);
    std::map<uint32_t, int> of_level;
    for (const Task& task : workflow.tasks) ++of_level[task.level];
    for (const auto& [where, count] : TasksByLevel(workflow, division)) {
      ASSERT_LT(where.second.value, hosts);
      const double fair = static_cast<double>(of_level[where.first]) / hosts;
      EXPECT_LE(count, std::max(std::ceil(fair), 1.1 * fair) + 1e-9)
          << "round " << round << " level " << where.first;
    }
  }
}

TEST(PartitionTasks, NoTasks) { EXPECT_TRUE(PartitionTasks(Workflow(), {}, Equal(3)).empty()); }

}  // namespace
}  // namespace mosa::predict
