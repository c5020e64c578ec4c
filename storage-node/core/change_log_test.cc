#include "storage-node/core/change_log.h"

#include <gtest/gtest.h>

#include "common/model/block_sums.h"

namespace mosa::node {
namespace {

TEST(ChangeLog, TellsWhatChangedAfterACount) {
  ChangeLog log(10);
  EXPECT_EQ(log.Since(9), std::nullopt);
  EXPECT_EQ(log.Since(11), std::nullopt);
  EXPECT_EQ(log.Since(10), std::vector<ByteRange>{});
  log.Note({0, 10}, 11);
  log.Note({10, 20}, 12);
  log.Note({100, 200}, 13);
  EXPECT_EQ(log.Since(10), (std::vector<ByteRange>{{0, 10}, {10, 20}, {100, 200}}));
  EXPECT_EQ(log.Since(11), (std::vector<ByteRange>{{10, 20}, {100, 200}}));
  EXPECT_EQ(log.Since(12), (std::vector<ByteRange>{{100, 200}}));
  EXPECT_EQ(log.Since(13), std::vector<ByteRange>{});
  log.NoteAll(14);
  EXPECT_EQ(log.Since(13), std::nullopt);
  EXPECT_EQ(log.Since(14), std::vector<ByteRange>{});
}

TEST(ChangeLog, WhatIsWrittenAgainAndAgainIsOneChange) {
  ChangeLog log(10);
  for (uint64_t change = 11; change < 100; ++change) log.Note({5, change % 2 + 6}, change);
  EXPECT_EQ(log.Since(10), (std::vector<ByteRange>{{5, 7}}));
  EXPECT_EQ(log.Since(98), (std::vector<ByteRange>{{5, 7}}));
}

TEST(ChangeLog, ALittleInsideOfMuchIsToldAlone) {
  ChangeLog log(10);
  log.Note({0, 1000}, 11);
  log.Note({500, 504}, 12);
  log.Note({600, 604}, 13);
  EXPECT_EQ(log.Since(11), (std::vector<ByteRange>{{500, 504}, {600, 604}}));
  EXPECT_EQ(log.Since(10), (std::vector<ByteRange>{{0, 1000}, {500, 504}, {600, 604}}));
  log.Note({400, 700}, 14);
  EXPECT_EQ(log.Since(10), (std::vector<ByteRange>{{0, 1000}, {400, 700}}));
  EXPECT_EQ(log.Since(12), (std::vector<ByteRange>{{400, 700}}));
}

TEST(ChangeLog, OfTheOldOnesItKnowsTheRoughPlace) {
  ChangeLog log(0);
  for (uint64_t i = 1; i <= 1000; ++i) log.Note({i * 1000, i * 1000 + 1}, i);
  const auto all = log.Since(0);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->size(), kChangedRangesMax);
  EXPECT_EQ(all->front(), (ByteRange{1000, (1001 - kChangedRangesMax) * 1000 + 1}));
  EXPECT_EQ(log.Since(999), (std::vector<ByteRange>{{1'000'000, 1'000'001}}));
}

}  // namespace
}  // namespace mosa::node
