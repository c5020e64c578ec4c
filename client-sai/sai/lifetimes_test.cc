// Tests files that are removed automatically, over whole mounts: who counts as a reader, and what
// stays readable.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

bool IsGone(LocalMount& mount, const std::string& path) {
  return ReasonOf(mount.Stat(path)) == ErrorReason::kNoEntry;
}

uint64_t BytesOnNodes(Cluster& cluster) {
  uint64_t bytes = 0;
  for (const auto& node : cluster.manager().Status().nodes) bytes += node.used_bytes;
  return bytes;
}

TEST(Lifetimes, AFileGoesWithItsBytesBehindItsReader) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.lifetime", "readers:2")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(8 * kMiB, 1))));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == Pattern(8 * kMiB, 1));
  EXPECT_FALSE(IsGone(cluster.b(), "/d/f"));
  // A mount needs no call to open what it has written, but counts as a reader.
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == Pattern(8 * kMiB, 1));
  EXPECT_TRUE(Eventually([&] { return IsGone(cluster.a(), "/d/f"); }));
  EXPECT_TRUE(IsGone(cluster.b(), "/d/f"));
  EXPECT_TRUE(Eventually([&] { return BytesOnNodes(cluster) < kMiB; }));
}

TEST(Lifetimes, SmallFilesThatWereMadeWithoutAskingCountToo) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.lifetime", "readers:1")));
  for (int i = 0; i < 20; ++i) {
    const std::string path = "/d/f" + std::to_string(i);
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path, "small")));
    EXPECT_EQ(*cluster.a().ReadFile(path), "small");
    EXPECT_TRUE(Eventually([&] { return IsGone(cluster.b(), path); })) << i;
  }
}

TEST(Lifetimes, WhoHasTheFileOpenReadsItToItsEnd) {
  for (const bool passthrough : {false, true}) {
    Cluster cluster(uint64_t{8} << 30, uint64_t{8} << 30, passthrough);
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.lifetime", "readers:1")));
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(4 * kMiB, 1))));
    auto late = cluster.a().Open("/d/f", O_RDONLY);
    ASSERT_TRUE(Ok(late));
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == Pattern(4 * kMiB, 1));
    // Everything due has had time to be removed.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_FALSE(IsGone(cluster.b(), "/d/f"));
    EXPECT_EQ(*cluster.a().Read(late->handle, 3 * kMiB, 8),
              Pattern(4 * kMiB, 1).substr(3 * kMiB, 8));
    ASSERT_TRUE(Ok(cluster.a().Close(late->handle)));
    EXPECT_TRUE(Eventually([&] { return IsGone(cluster.b(), "/d/f"); }));
  }
}

TEST(Lifetimes, OneTaskWithTwoDescriptorsIsDoneWithTheSecond) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.lifetime", "readers:1")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kMiB, 1))));
  auto first = cluster.b().Open("/d/f", O_RDONLY);
  auto second = cluster.b().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(first));
  ASSERT_TRUE(Ok(second));
  ASSERT_TRUE(Ok(cluster.b().Close(first->handle)));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  auto third = cluster.b().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(third));
  ASSERT_TRUE(Ok(cluster.b().Close(third->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(second->handle)));
  EXPECT_TRUE(Eventually([&] { return IsGone(cluster.a(), "/d/f"); }));
}

TEST(Lifetimes, AReadOfAnyOtherFileIsToldToNobody) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(kMiB, 1))));
  ASSERT_TRUE(Ok(cluster.b().ReadFile("/f")));
  // The mount's own messages may come in between.
  uint64_t calls = UINT64_MAX;
  for (int i = 0; i < 10 && calls > 0; ++i) {
    const uint64_t before = cluster.manager().envelopes();
    ASSERT_TRUE(Ok(cluster.b().ReadFile("/f")));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    calls = std::min(calls, cluster.manager().envelopes() - before);
  }
  EXPECT_EQ(calls, 0u);
}

}  // namespace
}  // namespace mosa::sai
