#include "client-sai/sai/block_cache.h"

#include <gtest/gtest.h>

namespace mosa::sai {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(BlockCache, WhatWasReadMakesRoomBeforeWhatWasNot) {
  BlockCache cache(4 * kMiB);
  EXPECT_EQ(cache.Add(FileId{1}, {0, 2 * kMiB}).size(), 2u);
  EXPECT_EQ(cache.Add(FileId{2}, {0, 2 * kMiB}).size(), 2u);
  EXPECT_NE(cache.Find(FileId{2}, 0, kMiB), nullptr);
  cache.Add(FileId{3}, {0, kMiB});
  EXPECT_EQ(cache.Find(FileId{2}, 0), nullptr);
  EXPECT_NE(cache.Find(FileId{1}, 0), nullptr);
  EXPECT_NE(cache.Find(FileId{1}, kMiB), nullptr);
  EXPECT_NE(cache.Find(FileId{2}, kMiB), nullptr);
}

TEST(BlockCache, WhatWasReadStaysForTwoMore) {
  BlockCache cache(16 * kMiB);
  cache.Add(FileId{1}, {0, 4 * kMiB});
  cache.Add(FileId{2}, {0, kMiB});
  const std::shared_ptr<Block> in_use = cache.Find(FileId{1}, 0, kMiB);
  for (uint64_t at = 0; at < 4 * kMiB; at += kMiB) {
    EXPECT_NE(cache.Find(FileId{1}, at, at + kMiB - 4096), nullptr) << at;
    EXPECT_NE(cache.Find(FileId{1}, at + kMiB / 2, at + kMiB), nullptr) << at;
  }
  EXPECT_NE(cache.Find(FileId{2}, 0, kMiB), nullptr);
  EXPECT_EQ(cache.Find(FileId{1}, 0), nullptr) << "two for each of two files";
  EXPECT_EQ(in_use->range(), (ByteRange{0, kMiB}));
  for (const uint64_t at : {1U, 2U, 3U}) EXPECT_NE(cache.Find(FileId{1}, at * kMiB), nullptr) << at;
  cache.DropFile(FileId{1});
  EXPECT_EQ(cache.ShareBytes(), 16 * kMiB);
  EXPECT_NE(cache.Find(FileId{2}, 0), nullptr);
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

}  // namespace
}  // namespace mosa::sai
