// What one mount has not yet told the manager, while others change the same file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kGiB = 1 << 30;

TEST(Commits, WhatTheKernelWritesDuringACommitIsTheNextOnes) {
  Cluster cluster(8 * kGiB, 256 * kMiB, true);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  auto written = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(written));
  ASSERT_EQ(written->mode.kind, OpenMode::Kind::kPassthrough);
  const FileId file = *cluster.a().Find("/d/f");
  const std::string text(100, 'x');
  ASSERT_EQ(pwrite(written->mode.descriptor, text.data(), 100, 0), 100);
  ASSERT_TRUE(Ok(cluster.b().Stat("/d/f")));
  // The commit is answered once b has confirmed that it dropped what it knew.
  cluster.b().Freeze(true);
  auto synced =
      std::async(std::launch::async, [&] { return cluster.a().fs().Fsync(written->handle); });
  EXPECT_EQ(synced.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  ASSERT_EQ(pwrite(written->mode.descriptor, text.data(), 100, 100), 100);
  EXPECT_EQ(cluster.a().fs().GetAttributes(file)->attributes.size_bytes, 200u);
  cluster.b().Freeze(false);
  ASSERT_TRUE(Ok(synced.get()));
  EXPECT_EQ(cluster.a().fs().GetAttributes(file)->attributes.size_bytes, 200u);
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  EXPECT_EQ(cluster.b().Stat("/d/f")->size_bytes, 200u);
  EXPECT_EQ(*cluster.b().ReadFile("/d/f"), text + text);
}

// The manager is away for longer than a close waits.
TEST(Commits, AFileWhoseMakeWasAnsweredTooLateIsThereAfterwards) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "content")));
  cluster.a().Freeze(true);
  EXPECT_EQ(ReasonOf(cluster.a().Close(handle->handle)), ErrorReason::kTimedOut);
  cluster.a().Freeze(false);
  EXPECT_TRUE(Eventually([&] {
    const auto read = cluster.a().ReadFile("/d/f");
    return read.ok() && *read == "content";
  }));
  EXPECT_EQ(*cluster.b().ReadFile("/d/f"), "content");
}

TEST(Sparse, AFileOfAPebibyteIsSearchedAndPunchedInNoTime) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(3 * kMiB, 1))));
  ASSERT_GT(cluster.manager().StatusOf("/f")->layout.Nodes().size(), 1u);
  constexpr uint64_t kPiB = uint64_t{1} << 50;
  ASSERT_TRUE(Ok(cluster.a().Truncate("/f", kPiB)));
  auto handle = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(handle));
  Filesystem& fs = cluster.a().fs();
  const HandleId id = handle->handle;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(*fs.Seek(id, 5, SeekKind::kData), 5u);
  EXPECT_EQ(*fs.Seek(id, 5, SeekKind::kHole), 3 * kMiB);
  EXPECT_EQ(ReasonOf(fs.Seek(id, 3 * kMiB, SeekKind::kData)), ErrorReason::kNoEntry);
  ASSERT_TRUE(Ok(cluster.a().Write(id, kPiB / 2 + 10, "x")));
  EXPECT_EQ(*fs.Seek(id, 3 * kMiB, SeekKind::kData), kPiB / 2);
  ASSERT_TRUE(Ok(fs.Allocate(id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPiB)));
  EXPECT_EQ(ReasonOf(fs.Seek(id, 0, SeekKind::kData)), ErrorReason::kNoEntry);
  EXPECT_EQ(*fs.Seek(id, 7, SeekKind::kHole), 7u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(cluster.a().Stat("/f")->size_bytes, kPiB);
  ASSERT_TRUE(Ok(cluster.a().Close(id)));
}

}  // namespace
}  // namespace mosa::sai
