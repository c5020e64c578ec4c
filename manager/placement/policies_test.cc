#include "manager/placement/policies.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "manager/placement/placement_fixture.h"
#include "manager/placement/policy.h"

namespace mosa::manager {
namespace {

struct PolicyRow {
  std::string policy;
  std::vector<int64_t> free_bytes;
  PlacementRequest request;
  std::vector<uint32_t> nodes;  // Empty: refused.
  std::string reason;           // Reason of the plan or of the refusal.
};

void CheckPolicy(const PolicyRow& row) {
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
  const PolicyRow rows[] = {
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
       "no storage node has free space for the bytes from 7340032 on: a has 0 B free of 5 B "
       "needed, b "
       "has 4 B free of 5 B "
       "needed; remove files or add nodes"},
      {"stripe", {}, Request(0, 5), {}, "no storage node is registered: start one"},
  };
  for (const PolicyRow& row : rows) CheckPolicy(row);
}

TEST(Local, TakesTheWritersNodeAndStripesWhenItCannot) {
  const PolicyRow rows[] = {
      {"local", {9, 9}, Request(0, 5, 0, 2), {2}, "local: b is the writer's node"},
      {"local",
       {9, 4},
       Request(0, 5, 0, 2),
       {1},
       "local: the writer's node b has 4 B free of 5 B needed; stripe: 1 of 1 nodes, from a by the "
       "file's seed; b has 4 B free of 5 B needed"},
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
       "no storage node has free space for the bytes from 7340032 on: a has 1 B free of 5 B "
       "needed; "
       "remove files or add "
       "nodes"},
  };
  for (const PolicyRow& row : rows) CheckPolicy(row);
}

PlacementRequest Strict(PlacementRequest request) {
  request.strict = request.exact_width = true;
  return request;
}
PlacementRequest Anchored(PlacementRequest request, uint32_t anchor) {
  request.anchor = NodeId(anchor);
  return request;
}

TEST(Strict, RefusesInOneSentenceWhatWouldGoElsewhere) {
  const PolicyRow rows[] = {
      {"local",
       {9, 4},
       Strict(Request(0, 5, 0, 2)),
       {},
       "strict=1, but placement local is not possible: the writer's node b has 4 B free of 5 B "
       "needed; free space there, or set strict to 0"},
      {"local",
       {9},
       Strict(Request(0, 5)),
       {},
       "strict=1, but placement local is not possible: the writer's host has no storage node; free "
       "space there, or set strict to 0"},
      {"local", {9}, Strict(Request(0, 5, 0, 1)), {1}, "local: a is the writer's node"},
      {"node:b",
       {9, -1},
       Strict(Request(0, 5)),
       {},
       "strict=1, but placement node:b is not possible: b takes nothing new; free space there, or "
       "set strict to 0"},
      {"collocate:g",
       {9, 4},
       Strict(Anchored(Request(0, 5), 2)),
       {},
       "strict=1, but placement collocate:g is not possible: b, the anchor of group 'g', has 4 B "
       "free of 5 B needed; free space there, or set strict to 0"},
      {"stripe",
       {9, 4, 9},
       Strict(Request(0, 5, 3)),
       {},
       "strict=1 needs all 3 nodes of the stripe, but only 2 are usable: b has 4 B free of 5 B "
       "needed; free space, add nodes, or set strict to 0"},
      {"scatter:2",
       {9, 9},
       Strict(Request(0, 5, 2)),
       {1, 2},
       "scatter: runs of 2 chunks in turn over 2 of 2 nodes, from a by the file's seed"},
  };
  for (const PolicyRow& row : rows) CheckPolicy(row);
}

TEST(Node, TakesTheOneThatIsNamedAndTheDefaultWhenItCannot) {
  const PolicyRow rows[] = {
      {"node:b", {9, 9, 9}, Request(0, 5, 0, 1), {2}, "node: b is the node that was named"},
      {"node:b",
       {9, 4, 9},
       Request(0, 5),
       {1, 3},
       "node: b has 4 B free of 5 B needed; stripe: 2 of 2 nodes, from a by the file's seed; b has "
       "4 "
       "B free of 5 B needed"},
      {"node:x",
       {9},
       Request(0, 5),
       {1},
       "node: there is no node x; stripe: 1 of 1 nodes, from a by the file's seed"},
      {"node:a",
       {9, 9},
       Request(0, 5, 0, 0, {NodeId(1)}),
       {2},
       "node: a was found full; stripe: 1 of 1 nodes, from b by the file's seed; a was found full"},
      {"node:a",
       {0},
       Request(0, 5),
       {},
       "no storage node has free space for the bytes from 7340032 on: a has 0 B free of 5 B "
       "needed; "
       "remove files or add nodes"},
  };
  for (const PolicyRow& row : rows) CheckPolicy(row);
  PlacementRequest request = Request(0, 5, 0, 2);
  request.fallback = "local";
  CheckPolicy(
      {"node:x", {9, 9}, request, {2}, "node: there is no node x; local: b is the writer's node"});
}

TEST(Scatter, GoesRoundAsStripeDoes) {
  CheckPolicy(
      {"scatter:4",
       {9, 9, 4},
       Request(1, 5),
       {2, 1},
       "scatter: runs of 4 chunks in turn over 2 of 2 nodes, from b by the file's seed; c has 4 B "
       "free of 5 B needed"});
}

TEST(Collocate, StaysWithTheAnchorAndMovesOnWhenItCannot) {
  const PolicyRow rows[] = {
      {"collocate:g",
       {9, 9},
       Anchored(Request(7, 5), 2),
       {2},
       "collocate: b is the anchor of group 'g'"},
      // Room decides before anything else.
      {"collocate:g",
       {90, 400, 90},
       Request(0, 5),
       {2},
       "collocate: b becomes the anchor of group 'g' (room 4 of 4, 0 other groups)"},
      {"collocate:g",
       {-1, 9, 0},
       Anchored(Request(0, 5), 1),
       {2},
       "collocate: b becomes the anchor of group 'g' (room 4 of 4, 0 other groups); a, the anchor "
       "of group 'g', takes nothing new; a takes nothing new, c has 0 B free of 5 B needed"},
      {"collocate:g",
       {4, 9},
       Anchored(Request(0, 5), 1),
       {2},
       "collocate: b becomes the anchor of group 'g' (room 4 of 4, 0 other groups); a, the anchor "
       "of group 'g', has 4 B free of 5 B needed; a has 4 B free of 5 B needed"},
      // A file already begun spills by the default.
      {"collocate:g",
       {9, 9, 9},
       Anchored(Request(1, 5, 0, 0, {NodeId(1)}), 1),
       {3, 2},
       "collocate: a node of group 'g' is full; stripe: 2 of 2 nodes, from c by the file's seed; a "
       "was found full"},
      {"collocate:g",
       {4, 4},
       Request(0, 5),
       {},
       "no storage node has free space for the bytes from 7340032 on: a has 4 B free of 5 B "
       "needed, b "
       "has "
       "4 B free of 5 B needed; remove files or add nodes"},
  };
  for (const PolicyRow& row : rows) CheckPolicy(row);
}

TEST(Collocate, TellsWhichAnchorToRemember) {
  const auto anchor = [](const std::vector<int64_t>& free_bytes, const PlacementRequest& request) {
    return Place("collocate:g", View(free_bytes), request)->anchor;
  };
  EXPECT_EQ(anchor({9, 99}, Request(0, 5)), NodeId(2));
  EXPECT_EQ(anchor({9, 99}, Anchored(Request(0, 5), 1)), std::nullopt);
  EXPECT_EQ(anchor({4, 99}, Anchored(Request(0, 5), 1)), NodeId(2));
  EXPECT_EQ(anchor({9, 99}, Anchored(Request(0, 5, 0, 0, {NodeId(1)}), 1)), kNoNode);
  EXPECT_EQ(anchor({9, 99}, Anchored(Request(0, 5, 0, 0, {NodeId(1)}), 2)), std::nullopt);
}

TEST(Collocate, KeepsAnAnchorWhoseRoomOthersHoldWithoutUsingIt) {
  ClusterView view = View({0, 99});
  view.nodes[0].reclaimable_bytes = 5;
  EXPECT_EQ(Place("collocate:g", view, Anchored(Request(0, 5), 1))->segment.nodes[0], NodeId(1));
  view.nodes[0].reclaimable_bytes = 4;
  EXPECT_EQ(Place("collocate:g", view, Anchored(Request(0, 5), 1))->segment.nodes[0], NodeId(2));
}

PlacementRequest FirstSegment(uint64_t seed, uint32_t width, uint32_t writer,
                              std::vector<NodeId> excluded = {}) {
  PlacementRequest request = Request(seed, 5, width, writer, std::move(excluded));
  request.begin = 0;
  return request;
}

TEST(Near, IsAStripeThatBeginsOnTheWritersNode) {
  const PolicyRow rows[] = {
      {"near",
       {9, 9, 9, 9},
       FirstSegment(2, 0, 2),
       {2, 3, 4, 1},
       "near: 4 of 4 nodes, from b, which is the writer's"},
      // The second chunks go where the seed says.
      {"near",
       {9, 9, 9, 9},
       FirstSegment(3, 0, 2),
       {2, 4, 1, 3},
       "near: 4 of 4 nodes, from b, which is the writer's"},
      {"near",
       {9, 9, 9, 9},
       FirstSegment(2, 2, 1),
       {1, 3},
       "near: 2 of 4 nodes, from a, which is the writer's"},
      {"near",
       {9, 9, 9},
       FirstSegment(1, 1, 3),
       {3},
       "near: 1 of 3 nodes, from c, which is the writer's"},
      {"near",
       {9, 4, 9},
       FirstSegment(0, 0, 2),
       {1, 3},
       "near, but the writer's node b has 4 B free of 5 B needed: 2 of 2 nodes, from a by the "
       "file's seed; b has 4 B free of 5 B needed"},
      {"near",
       {9, 9},
       FirstSegment(0, 0, 2, {NodeId(2)}),
       {1},
       "near, but the writer's node b was found full: 1 of 1 nodes, from a by the file's seed; b "
       "was "
       "found full"},
      {"near",
       {9, 9},
       FirstSegment(1, 0, 0),
       {2, 1},
       "near: 2 of 2 nodes, from b by the file's seed"},
      // What follows when a node is full goes round like any stripe.
      {"near",
       {9, 9},
       Request(0, 5, 0, 2),
       {1, 2},
       "near: 2 of 2 nodes, from a by the file's seed"},
      {"near", {1}, FirstSegment(0, 0, 1), {}, ""},
  };
  for (const PolicyRow& row : rows) {
    if (row.nodes.empty())
      EXPECT_FALSE(Place(row.policy, View(row.free_bytes), row.request).ok());
    else
      CheckPolicy(row);
  }
}

TEST(Collocate, SpreadsGroupsOverNodesOfLikeRoom) {
  ClusterView view = View({100, 100, 100, 100});
  for (int i = 0; i < 40; ++i) {
    const auto plan = Place("collocate:g" + std::to_string(i), view, Request(0, 5));
    ++view.nodes[plan->anchor->value - 1].groups;
  }
  for (const NodeView& node : view.nodes) EXPECT_EQ(node.groups, 10U);
}

TEST(Registry, TreatsWhatItDoesNotKnowAsStripeAndSaysSo) {
  CheckPolicy({"far:g",
               {9},
               Request(0, 5),
               {1},
               "there is no policy 'far:g': stripe: 1 of 1 nodes, from a by the file's seed"});
  CheckPolicy({"",
               {9},
               Request(0, 5),
               {1},
               "there is no policy '': stripe: 1 of 1 nodes, from a by the file's seed"});
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
