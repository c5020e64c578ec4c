#include "manager/placement/policies.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "manager/placement/policy.h"

namespace mosa::manager {
namespace {

// Nodes 1, 2, ... named a, b, ... with this much free; a negative number: takes nothing new.
ClusterView View(const std::vector<int64_t>& free_bytes) {
  ClusterView view;
  for (size_t i = 0; i < free_bytes.size(); ++i)
    view.nodes.push_back(
        {NodeId(static_cast<uint32_t>(i + 1)), std::string(1, static_cast<char>('a' + i)),
         free_bytes[i] < 0 ? 0 : static_cast<uint64_t>(free_bytes[i]), free_bytes[i] >= 0});
  return view;
}

struct Row {
  std::string policy;
  std::vector<int64_t> free_bytes;
  PlacementRequest request;
  std::vector<uint32_t> nodes;  // Empty: refused.
  std::string reason;           // Of the plan, or of the refusal.
};

void Check(const Row& row) {
  SCOPED_TRACE(row.reason);
  const auto plan = Place(row.policy, View(row.free_bytes), row.request);
  if (row.nodes.empty()) {
    ASSERT_EQ(plan.status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(MessageOf(plan.status()), row.reason);
    return;
  }
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<uint32_t> nodes;
  for (const NodeId node : plan->segment.nodes) nodes.push_back(node.value);
  EXPECT_EQ(nodes, row.nodes);
  EXPECT_EQ(plan->segment.width, row.nodes.size());
  EXPECT_EQ(plan->segment.begin, row.request.begin);
  EXPECT_EQ(plan->reason, row.reason);
}

PlacementRequest Request(uint64_t seed, uint64_t needed, uint32_t width = 0, uint32_t writer = 0,
                         std::vector<NodeId> excluded = {}) {
  return {.seed = seed,
          .begin = 7 << 20,
          .needed_bytes = needed,
          .stripe_width = width,
          .writer_node = NodeId(writer),
          .excluded = std::move(excluded)};
}

TEST(Stripe, GoesRoundFromTheNodeOfTheSeedOverNodesWithRoom) {
  const Row rows[] = {
      {"stripe",
       {9, 9, 9},
       Request(0, 5),
       {1, 2, 3},
       "stripe: 3 of 3 nodes, from a by the file's seed"},
      {"stripe",
       {9, 9, 9},
       Request(5, 5),
       {3, 1, 2},
       "stripe: 3 of 3 nodes, from c by the file's seed"},
      {"stripe",
       {9, 9, 9},
       Request(1, 5, 2),
       {2, 3},
       "stripe: 2 of 3 nodes, from b by the file's seed"},
      {"stripe",
       {9, 9, 9},
       Request(1, 5, 8),
       {2, 3, 1},
       "stripe: 3 of 3 nodes, from b by the file's seed"},
      {"stripe",
       {9, 4, 9},
       Request(1, 5),
       {3, 1},
       "stripe: 2 of 2 nodes, from c by the file's seed; b has 4 B free of 5 B needed"},
      {"stripe",
       {-1, 9, 9},
       Request(0, 5, 0, 0, {NodeId(2)}),
       {3},
       "stripe: 1 of 1 nodes, from c by the file's seed; a takes nothing new, b was found full"},
      {"stripe",
       {0, 4},
       Request(0, 5),
       {},
       "no storage node has room for what comes at byte 7340032: a has 0 B free of 5 B needed, b "
       "has 4 B free of 5 B "
       "needed; remove files or add nodes"},
      {"stripe", {}, Request(0, 5), {}, "no storage node is registered: start one"},
  };
  for (const Row& row : rows) Check(row);
}

TEST(Local, TakesTheWritersNodeAndStripesWhenItCannot) {
  const Row rows[] = {
      {"local", {9, 9}, Request(0, 5, 0, 2), {2}, "local: b is the writer's node"},
      {"local",
       {9, 4},
       Request(0, 5, 0, 2),
       {1},
       "local: the writer's node cannot take it; stripe: 1 of 1 nodes, from a by the file's seed; "
       "b "
       "has 4 B free of 5 B needed"},
      {"local",
       {9, 9},
       Request(1, 5),
       {2, 1},
       "local: the writer's host has no storage node; stripe: 2 of 2 nodes, from b by the file's "
       "seed"},
      {"local",
       {1},
       Request(0, 5, 0, 1),
       {},
       "no storage node has room for what comes at byte 7340032: a has 1 B free of 5 B needed; "
       "remove files or add "
       "nodes"},
  };
  for (const Row& row : rows) Check(row);
}

TEST(Registry, TreatsWhatItDoesNotKnowAsStripeAndSaysSo) {
  Check({"collocate:g",
         {9},
         Request(0, 5),
         {1},
         "there is no policy 'collocate:g': stripe: 1 of 1 nodes, from a by the file's seed"});
}

TEST(FileSeed, StartsDifferentFilesAtDifferentNodesAndTheSameFileAtTheSame) {
  std::vector<int> starts(4);
  for (uint64_t i = 0; i < 4000; ++i)
    ++starts[FileSeed(1, kRootFile, "part" + std::to_string(i), i) % 4];
  for (const int count : starts) EXPECT_NEAR(count, 1000, 120);
  EXPECT_EQ(FileSeed(1, kRootFile, "a", 2), FileSeed(1, kRootFile, "a", 2));
  const std::set<uint64_t> seeds = {FileSeed(1, kRootFile, "a", 2), FileSeed(2, kRootFile, "a", 2),
                                    FileSeed(1, FileId(2), "a", 2), FileSeed(1, kRootFile, "b", 2),
                                    FileSeed(1, kRootFile, "a", 3)};
  EXPECT_EQ(seeds.size(), 5U);
}

}  // namespace
}  // namespace mosa::manager
