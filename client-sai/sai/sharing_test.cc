// What one mount has not yet told the manager, while others change the same file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
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

TEST(Commits, AFileThatIsRemovedBeforeItWasSentCostsOneCall) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "small")));
  const uint64_t before = cluster.manager().envelopes();
  ASSERT_TRUE(Ok(cluster.a().Unlink("/d/f")));
  EXPECT_EQ(cluster.manager().envelopes() - before, 1u);
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/f")), ErrorReason::kNoEntry);
  EXPECT_EQ(ReasonOf(cluster.b().Find("/d/f")), ErrorReason::kNoEntry);
  const std::string large = Pattern(2 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 5, large)));
  EXPECT_TRUE(*cluster.a().Read(handle->handle, 0, 4 * kMiB) == "small" + large);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
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

// Two mounts write different parts of one small file, each into what it had opened.
TEST(InlineContent, WritersOfDifferentPartsBothSurvive) {
  Cluster cluster;
  const std::string first(4096, 'a');
  const std::string second(4096, 'b');
  for (const bool has_content : {false, true}) {
    const std::string path = has_content ? "/with" : "/empty";
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path, has_content ? std::string(9000, 'o') : "")));
    auto a = cluster.a().Open(path, O_RDWR);
    auto b = cluster.b().Open(path, O_RDWR);
    ASSERT_TRUE(Ok(cluster.a().Write(a->handle, 0, first)));
    ASSERT_TRUE(Ok(cluster.b().Write(b->handle, 4096, second)));
    ASSERT_TRUE(Ok(cluster.a().Close(a->handle)));
    const std::string expected =
        first + second + (has_content ? std::string(9000 - 8192, 'o') : "");
    EXPECT_EQ(cluster.b().Stat(path)->size_bytes, expected.size());
    EXPECT_TRUE(*cluster.b().Read(b->handle, 0, 16384) == expected) << "before it is committed";
    ASSERT_TRUE(Ok(cluster.b().Close(b->handle)));
    EXPECT_TRUE(*cluster.a().ReadFile(path) == expected);
    EXPECT_TRUE(*cluster.b().ReadFile(path) == expected);
  }
}

TEST(InlineContent, WritersThatCloseAtOnceBothSurvive) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", std::string(200, '-'))));
  for (int round = 0; round < 100; ++round) {
    const auto write = [&](LocalMount& mount, uint64_t offset, char what) {
      auto handle = mount.Open("/f", O_RDWR);
      EXPECT_TRUE(Ok(handle));
      EXPECT_TRUE(Ok(mount.Write(handle->handle, offset, std::string(100, what))));
      EXPECT_TRUE(Ok(mount.Close(handle->handle)));
    };
    const auto digit = static_cast<char>('0' + round % 10);
    const auto letter = static_cast<char>('a' + round % 10);
    std::thread other([&] { write(cluster.b(), 100, letter); });
    write(cluster.a(), 0, digit);
    other.join();
    ASSERT_EQ(*cluster.a().ReadFile("/f"), std::string(100, digit) + std::string(100, letter))
        << round;
  }
}

TEST(InlineContent, WhatWasWrittenInlineFollowsAFileThatGotObjects) {
  Cluster cluster;
  for (const bool grower_closes_first : {true, false}) {
    const std::string path = grower_closes_first ? "/first" : "/last";
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path, std::string(100, 'o'))));
    auto grown = cluster.a().Open(path, O_RDWR);
    auto small = cluster.b().Open(path, O_RDWR);
    ASSERT_TRUE(Ok(cluster.b().Write(small->handle, 50, "small")));
    ASSERT_TRUE(Ok(cluster.a().Write(grown->handle, 100, std::string(3 * kMiB, 'g'))));
    const HandleId closes_first = grower_closes_first ? grown->handle : small->handle;
    LocalMount& closer = grower_closes_first ? cluster.a() : cluster.b();
    ASSERT_TRUE(Ok(closer.Close(closes_first)));
    ASSERT_TRUE(Ok(grower_closes_first ? cluster.b().Close(small->handle)
                                       : cluster.a().Close(grown->handle)));
    std::string expected = std::string(100, 'o') + std::string(3 * kMiB, 'g');
    expected.replace(50, 5, "small");
    EXPECT_TRUE(*cluster.a().ReadFile(path) == expected);
    EXPECT_TRUE(*cluster.b().ReadFile(path) == expected);
  }
}

TEST(InlineContent, AFollowerOfALogReadsNoZeroes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "")));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    auto handle = cluster.a().Open("/log", O_WRONLY | O_APPEND);
    for (int i = 0; i < 300; ++i)
      EXPECT_TRUE(Ok(cluster.a().Write(handle->handle, 0, std::string(40, 'x'))));
    EXPECT_TRUE(Ok(cluster.a().Close(handle->handle)));
    done = true;
  });
  auto handle = cluster.b().Open("/log", O_RDONLY);
  ASSERT_TRUE(Ok(handle));
  while (!done) {
    const auto read = cluster.b().Read(handle->handle, 0, 16384);
    ASSERT_TRUE(Ok(read));
    EXPECT_EQ(read->find('\0'), std::string::npos) << "of " << read->size();
  }
  writer.join();
  ASSERT_TRUE(Ok(cluster.b().Close(handle->handle)));
}

}  // namespace
}  // namespace mosa::sai
