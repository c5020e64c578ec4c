#include "storage-node/core/data_runs.h"

#include <gtest/gtest.h>

namespace mosa::node {
namespace {

TEST(DataRuns, SayAStripeInTwoRuns) {
  std::vector<ByteRange> ranges;
  for (uint64_t i = 0; i < 1000; ++i) ranges.push_back({i * 400, i * 400 + 100});
  ranges.push_back({400'000, 400'007});
  EXPECT_EQ(RunsOf(ranges, 8), (std::vector<DataRuns>{{0, 100, 400, 1000}, {400'000, 7, 0, 1}}));
  EXPECT_TRUE(RunsOf({}, 8).empty());
}

TEST(DataRuns, BeyondTheLimitCoverHoles) {
  const std::vector<ByteRange> ranges = {{0, 1}, {10, 12}, {20, 23}, {30, 34}};
  EXPECT_EQ(RunsOf(ranges, 2), (std::vector<DataRuns>{{0, 1, 0, 1}, {10, 24, 0, 1}}));
}

}  // namespace
}  // namespace mosa::node
