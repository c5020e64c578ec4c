#include "client-sai/sai/block_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/read_ahead.h"
#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

// What a read from `offset` to `end` takes first; of a byte at least.
std::shared_ptr<Block> Find(BlockCache& cache, FileId file, uint64_t offset, uint64_t end) {
  return cache.Next(file, {offset, std::max(end, offset + 1)}).block;
}

TEST(BlockCache, WhatWasReadMakesRoomBeforeWhatWasNot) {
  BlockCache cache(4 * kMiB);
  EXPECT_EQ(cache.Add(FileId{1}, {0, 2 * kMiB}).size(), 2u);
  EXPECT_EQ(cache.Add(FileId{2}, {0, 2 * kMiB}).size(), 2u);
  EXPECT_NE(Find(cache, FileId{2}, 0, kMiB), nullptr);
  cache.Add(FileId{3}, {0, kMiB});
  EXPECT_EQ(Find(cache, FileId{2}, 0, 0), nullptr);
  EXPECT_NE(Find(cache, FileId{1}, 0, 0), nullptr);
  EXPECT_NE(Find(cache, FileId{1}, kMiB, 0), nullptr);
  EXPECT_NE(Find(cache, FileId{2}, kMiB, 0), nullptr);
}

TEST(BlockCache, WhatWasReadStaysForTwoMore) {
  BlockCache cache(16 * kMiB);
  cache.Add(FileId{1}, {0, 4 * kMiB});
  cache.Add(FileId{2}, {0, kMiB});
  const std::shared_ptr<Block> in_use = Find(cache, FileId{1}, 0, kMiB);
  for (uint64_t at = 0; at < 4 * kMiB; at += kMiB) {
    EXPECT_NE(Find(cache, FileId{1}, at, at + kMiB - 4096), nullptr) << at;
    EXPECT_NE(Find(cache, FileId{1}, at + kMiB / 2, at + kMiB), nullptr) << at;
  }
  EXPECT_NE(Find(cache, FileId{2}, 0, kMiB), nullptr);
  EXPECT_EQ(Find(cache, FileId{1}, 0, 0), nullptr) << "two for each of two files";
  EXPECT_EQ(in_use->range(), (ByteRange{0, kMiB}));
  for (const uint64_t at : {1U, 2U, 3U})
    EXPECT_NE(Find(cache, FileId{1}, at * kMiB, 0), nullptr) << at;
  cache.DropFile(FileId{1});
  EXPECT_EQ(cache.ShareBytes(), 16 * kMiB);
  EXPECT_NE(Find(cache, FileId{2}, 0, 0), nullptr);
}

TEST(BlockCache, FilesShareItsRoom) {
  BlockCache cache(8 * kMiB);
  EXPECT_EQ(cache.ShareBytes(), 8 * kMiB);
  for (uint64_t file = 1; file <= 4; ++file) cache.Add(FileId{file}, {0, kMiB});
  EXPECT_EQ(cache.ShareBytes(), 2 * kMiB);
  cache.DropFile(FileId{1});
  cache.DropFile(FileId{2});
  EXPECT_EQ(cache.ShareBytes(), 4 * kMiB);
  cache.DropAll();
  EXPECT_EQ(cache.ShareBytes(), 8 * kMiB);
}

TEST(Block, ARequestWaitsForItNoLongerThanItsTime) {
  Block block({0, kPageBytes});
  {
    const SteadyTime begun = SteadyNow();
    const WaitBudget budget({.end = begun + std::chrono::milliseconds(50), .program_waits = true});
    const auto failure = block.Wait(nullptr);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->reason, ErrorReason::kTimedOut);
    EXPECT_GE(SteadyNow() - begun, std::chrono::milliseconds(50));
  }
  block.Finish(std::nullopt);
  const WaitBudget spent({.end = SteadyNow(), .program_waits = true});
  EXPECT_FALSE(block.Wait(nullptr)) << "what has arrived is there at once";
}

// How a file system uses the cache.
TEST(Reading, WhatWasAskedForAheadOfAReaderThatHasClosedIsNotFetched) {
  constexpr uint64_t kFileBytes = 64 * kMiB;
  std::atomic<uint64_t> begun = 0;
  std::atomic<bool> held = false;
  Cluster cluster;
  std::promise<void> closed;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kFileBytes, 3))));
  const std::shared_future<void> is_closed = closed.get_future().share();
  cluster.nodes().Get(cluster.node_a).before_read = [&begun, &held, is_closed] {
    const bool waits = held;
    ++begun;
    if (waits) is_closed.wait();
  };
  const auto opened = cluster.b().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(opened));
  ReadAhead same;
  uint64_t asked_end = kMiB;
  const auto read = [&](uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at += kMiB) {
      asked_end = std::max(asked_end, same.OnRead({at, at + kMiB}, kFileBytes, 8 * kMiB).end);
      ASSERT_TRUE(Ok(cluster.b().fs().Read(opened->handle, at, kMiB)));
    }
  };
  read(0, 40 * kMiB);
  ASSERT_TRUE(Eventually([&] { return begun == asked_end / kMiB; }));
  const uint64_t free = begun;
  // These have been fetched; the read prefetches as many more, of which four are in progress at
  // once.
  held = true;
  read(40 * kMiB, 47 * kMiB);
  ASSERT_GE(asked_end / kMiB, free + 6);
  ASSERT_TRUE(Ok(cluster.b().Close(opened->handle)));
  closed.set_value();
  cluster.UnmountB();
  EXPECT_LE(begun, free + 4);
}

}  // namespace
}  // namespace mosa::sai
