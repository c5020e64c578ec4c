#include "common/model/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/rng.h"

namespace mosa {
namespace {

constexpr uint64_t kUnit = kSegmentUnit;

Layout LayoutOfUnits(uint64_t chunk_units, std::vector<Segment> segments) {
  Layout layout;
  layout.chunk_bytes = chunk_units * kUnit;
  layout.segments = std::move(segments);
  return layout;
}

TEST(Layout, KnowsWhoHoldsEveryByte) {
  const NodeId a{1};
  const NodeId b{2};
  const NodeId c{3};
  struct Row {
    std::vector<Segment> segments;
    std::vector<NodeId> holders;
  };
  const Row rows[] = {
      {{}, {}},
      {{{0, 1, {a}}}, {a}},
      {{{0, 1, {a, c}}}, {a, c}},
      {{{0, 2, {a, b}}}, {}},
      {{{0, 2, {a, b, c, c}}}, {c}},
      {{{0, 2, {a, b, b, a}}}, {a, b}},
      {{{0, 2, {a, b, b, a}}, {kUnit, 1, {c, b}}}, {b}},
  };
  for (const Row& row : rows) {
    const Layout layout = LayoutOfUnits(1, row.segments);
    std::vector<NodeId> holders;
    for (const NodeId node : {a, b, c}) {
      if (layout.HoldsAll(node)) holders.push_back(node);
    }
    EXPECT_EQ(holders, row.holders) << &row - rows;
  }
}

TEST(Layout, WhatFollowsAFullNodeOnItsFormerNodesIsOneSegmentWithIt) {
  Layout layout = LayoutOfUnits(4, {{0, 1, {NodeId{1}}}});
  layout.Relocate(2 * kUnit, 3 * kUnit, {0, 1, {NodeId{2}}});
  EXPECT_EQ(layout.segments,
            (std::vector<Segment>{
                {0, 1, {NodeId{1}}}, {2 * kUnit, 1, {NodeId{2}}}, {3 * kUnit, 1, {NodeId{1}}}}));
  layout.Relocate(3 * kUnit, UINT64_MAX, {0, 1, {NodeId{2}}});
  EXPECT_EQ(layout.segments,
            (std::vector<Segment>{{0, 1, {NodeId{1}}}, {2 * kUnit, 1, {NodeId{2}}}}));
}

TEST(Layout, ARelocatedRangeIsOnItsNewNodesAndEveryOtherPageWhereItWas) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int round = 0; round < 200; ++round) {
    const auto nodes = [&](uint32_t count) {
      std::vector<NodeId> result;
      for (uint32_t i = 0; i < count; ++i)
        result.push_back(NodeId{static_cast<uint32_t>(1 + rng.Below(5))});
      return result;
    };
    const auto width = static_cast<uint32_t>(1 + rng.Below(3));
    Layout layout = LayoutOfUnits(1 + rng.Below(3), {{0, width, nodes(width * 2)}});
    for (int step = 0; step < 8; ++step) {
      const Layout before = layout;
      const uint64_t begin = rng.Below(40);
      const uint64_t end = rng.Chance(300) ? UINT64_MAX : begin + 1 + rng.Below(20);
      const auto new_width = static_cast<uint32_t>(1 + rng.Below(3));
      const Segment to{0, new_width, nodes(new_width * 2)};
      layout.Relocate(begin * kUnit, end == UINT64_MAX ? end : end * kUnit, to);
      Layout only = layout;
      only.segments = {to};
      only.segments[0].begin = begin * kUnit;
      for (uint64_t page = 0; page < 80; ++page) {
        for (uint32_t copy = 0; copy < 2; ++copy) {
          const Layout& expected = page >= begin && page < end ? only : before;
          ASSERT_EQ(layout.NodeAt(page * kUnit, copy), expected.NodeAt(page * kUnit, copy))
              << "page " << page << " after " << begin << " to " << end;
        }
      }
      ASSERT_TRUE(
          std::is_sorted(layout.segments.begin(), layout.segments.end(),
                         [](const Segment& a, const Segment& b) { return a.begin < b.begin; }));
      ASSERT_EQ(layout.segments.front().begin, 0U);
    }
  }
}

}  // namespace
}  // namespace mosa
