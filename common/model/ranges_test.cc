#include "common/model/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/base/rng.h"
#include "common/base/units.h"

namespace mosa {
namespace {

Layout LayoutOf(uint64_t chunk_bytes, std::vector<Segment> segments) {
  Layout layout;
  layout.chunk_bytes = chunk_bytes;
  layout.segments = std::move(segments);
  return layout;
}

std::string Show(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    text += std::to_string(piece.range.begin) + "-" + std::to_string(piece.range.end) + "@";
    for (const NodeId node : piece.nodes) text += std::to_string(node.value) + ",";
    text += " ";
  }
  return text;
}

TEST(SplitRange, SaysWhichBytesLieWhere) {
  struct Row {
    Layout layout;
    ByteRange range;
    uint64_t piece_bytes_max;
    std::string expected;
  };
  const Segment one{0, 1, {NodeId{7}}};
  const Segment two{0, 2, {NodeId{1}, NodeId{2}}};
  const Segment mirrored{0, 2, {NodeId{1}, NodeId{2}, NodeId{3}, NodeId{4}}};
  const Segment shared{0, 2, {NodeId{1}, NodeId{1}, NodeId{3}, NodeId{4}}};
  const Segment spilled{30, 1, {NodeId{9}}};
  const Segment copied{30, 1, {NodeId{7}, NodeId{8}}};
  const Row rows[] = {
      {LayoutOf(10, {one}), {0, 0}, UINT64_MAX, ""},
      {LayoutOf(10, {one}), {5, 35}, UINT64_MAX, "5-35@7, "},
      {LayoutOf(10, {one}), {5, 35}, 12, "5-17@7, 17-29@7, 29-35@7, "},
      {LayoutOf(10, {two}), {5, 25}, UINT64_MAX, "5-10@1, 10-20@2, 20-25@1, "},
      {LayoutOf(10, {mirrored}), {9, 11}, UINT64_MAX, "9-10@1,3, 10-11@2,4, "},
      {LayoutOf(10, {two, spilled}), {15, 55}, UINT64_MAX, "15-20@2, 20-30@1, 30-55@9, "},
      {LayoutOf(10, {shared}), {0, 20}, UINT64_MAX, "0-10@1,3, 10-20@1,4, "},
      {LayoutOf(10, {one, copied}), {0, 60}, UINT64_MAX, "0-30@7, 30-60@7,8, "},
  };
  for (const Row& row : rows)
    EXPECT_EQ(Show(SplitRange(row.layout, row.range, row.piece_bytes_max)), row.expected);
}

TEST(NodesOf, AgreesWithThePiecesOfTheRange) {
  const uint64_t seed = 20261127;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int round = 0; round < 500; ++round) {
    Layout layout = LayoutOf(1 + rng.Below(12), {});
    for (uint64_t begin = 0; layout.segments.size() < 3; begin += 1 + rng.Below(40)) {
      Segment segment{begin, static_cast<uint32_t>(1 + rng.Below(4)), {}};
      while (segment.nodes.size() < segment.width * (1 + static_cast<uint32_t>(round % 2)))
        segment.nodes.push_back(NodeId{static_cast<uint32_t>(1 + rng.Below(6))});
      layout.segments.push_back(segment);
    }
    const uint64_t begin = rng.Below(100);
    const ByteRange range{begin, begin + rng.Below(100)};
    std::set<NodeId> expected;
    for (const Piece& piece : SplitRange(layout, range))
      expected.insert(piece.nodes.begin(), piece.nodes.end());
    EXPECT_EQ(NodesOf(layout, range), std::vector<NodeId>(expected.begin(), expected.end()));
  }
}

TEST(NodesOf, OfAHugeRangeCostsNoMoreThanOfASmallOne) {
  constexpr uint64_t kPiB = uint64_t{1} << 50;
  const Segment two{0, 2, {NodeId{1}, NodeId{2}}};
  EXPECT_EQ(NodesOf(LayoutOf(kMiB, {two}), {5, kPiB}), two.nodes);
  EXPECT_EQ(NodesOf(LayoutOf(kMiB, {two}), {kMiB, 2 * kMiB}), std::vector<NodeId>{NodeId{2}});
}

TEST(FirstPiece, OfAHugeFileCostsNoMoreThanOfASmallOne) {
  constexpr uint64_t kPiB = uint64_t{1} << 50;
  const Segment two{0, 2, {NodeId{1}, NodeId{2}}};
  const Segment one{4 * kMiB, 1, {NodeId{1}}};
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {two}), {5, kPiB}), (Piece{{5, kMiB}, {NodeId{1}}}));
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {two, one}), {4 * kMiB, kPiB}),
            (Piece{{4 * kMiB, kPiB}, {NodeId{1}}}));
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {two, one}), {3 * kMiB, kPiB}),
            (Piece{{3 * kMiB, 4 * kMiB}, {NodeId{2}}}));
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {one}), {4 * kMiB, kPiB}, 7),
            (Piece{{4 * kMiB, 4 * kMiB + 7}, {NodeId{1}}}));
  // All chunks on one node, as for a copy of what only one node still has.
  const Segment same{0, 2, {NodeId{1}, NodeId{1}}};
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {same}), {5, kPiB}), (Piece{{5, kPiB}, {NodeId{1}}}));
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {same, one}), {5, kPiB}), (Piece{{5, kPiB}, {NodeId{1}}}));
  const Segment some{0, 3, {NodeId{1}, NodeId{1}, NodeId{2}}};
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {some}), {5, kPiB}), (Piece{{5, 2 * kMiB}, {NodeId{1}}}));
  EXPECT_EQ(FirstPiece(LayoutOf(kMiB, {some}), {2 * kMiB, kPiB}),
            (Piece{{2 * kMiB, 3 * kMiB}, {NodeId{2}}}));
}

TEST(WidenToPages, CoversWholePages) {
  EXPECT_EQ(WidenToPages({1, 2}), (ByteRange{0, 4096}));
  EXPECT_EQ(WidenToPages({4096, 8193}), (ByteRange{4096, 12288}));
  EXPECT_EQ(WidenToPages({5, 5}), (ByteRange{5, 5}));
}

TEST(IntervalSet, AgreesWithASetOfBytes) {
  const uint64_t seed = 20250601;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  IntervalSet set;
  std::vector<bool> model(300, false);
  for (int step = 0; step < 5000; ++step) {
    const uint64_t begin = rng.Below(290);
    const ByteRange range{begin, begin + rng.Below(std::min<uint64_t>(40, 300 - begin))};
    uint64_t missing = 0;
    for (uint64_t i = range.begin; i < range.end; ++i) missing += model[i] ? 0 : 1;
    ASSERT_EQ(set.MissingBytes(range), missing) << step;
    ASSERT_EQ(set.Overlaps(range), missing < range.size()) << step;
    const auto first = std::find(model.begin() + static_cast<int>(begin), model.end(), true);
    const auto next = set.NextFrom(begin);
    ASSERT_EQ(next.has_value(), first != model.end()) << step;
    if (next) {
      ASSERT_EQ(next->begin, static_cast<uint64_t>(first - model.begin())) << step;
    }
    const bool add = rng.Chance(550);
    add ? set.Add(range) : set.Remove(range);
    for (uint64_t i = range.begin; i < range.end; ++i) model[i] = add;
    uint64_t last_end = 0;
    for (const ByteRange& interval : set.All()) {
      ASSERT_TRUE(interval.begin < interval.end);
      ASSERT_TRUE(last_end == 0 || interval.begin > last_end);
      last_end = interval.end;
      for (uint64_t i = interval.begin; i < interval.end; ++i) ASSERT_TRUE(model[i]);
    }
  }
}

}  // namespace
}  // namespace mosa
