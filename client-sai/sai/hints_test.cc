// Tests the effect of hints and rules on a mount's writes.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <variant>
#include <vector>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

std::vector<NodeId> NodesOf(Cluster& cluster, const std::string& path) {
  return cluster.manager().StatusOf(path)->layout.Nodes();
}

TEST(Strict, AFileFailsWhereOthersSpillAndOthersKeepWhatTheyHave) {
  Cluster cluster(4 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.strict", "1")));
  const std::string kept = Pattern(kMiB, 3);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/kept", kept)));
  EXPECT_EQ(ReasonOf(cluster.a().WriteFile("/d/f", Pattern(10 * kMiB, 4))), ErrorReason::kNoSpace);
  EXPECT_TRUE(*cluster.b().ReadFile("/d/kept") == kept);
  EXPECT_EQ(NodesOf(cluster, "/d/f").size(), 1u);
}

TEST(Hints, ComeToAnOpenFileUntilItHasBytes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_a});
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:b")));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, Pattern(kMiB, 3))));
  // Its bytes are not committed yet, but count.
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.mosa.placement", "local")),
            ErrorReason::kNotEmpty);
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.DP", "local")), ErrorReason::kNotEmpty);
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d/f", "user.mosa.lifetime", "temporary")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == Pattern(kMiB, 3));
  EXPECT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_b});
}

TEST(Hints, DoNotComeToAFileThatTheKernelWritesByItself) {
  Cluster cluster(8 * kGiB, 256 * kMiB, true);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_EQ(handle->mode.kind, OpenMode::Kind::kPassthrough);
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:b")),
            ErrorReason::kBusy);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_TRUE(Ok(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:b")));
}

TEST(Hints, DoNotComeToAnEmptyFileThatTheKernelOfAnotherMountReads) {
  Cluster cluster(8 * kGiB, 8 * kGiB, true);
  ASSERT_TRUE(Ok(cluster.b().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/d", "user.mosa.placement", "local")));
  auto made = cluster.b().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(made));
  ASSERT_TRUE(Ok(cluster.b().Close(made->handle)));
  auto reader = cluster.b().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(reader));
  ASSERT_EQ(reader->mode.kind, OpenMode::Kind::kPassthrough);
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:a")),
            ErrorReason::kBusy);
  EXPECT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_b});
  ASSERT_TRUE(Ok(cluster.b().Close(reader->handle)));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:a")));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", Pattern(kMiB, 5))));
  EXPECT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_a});
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == Pattern(kMiB, 5));
}

// The hint finds out that the other mount caches the layout, and freezes the file. Then the other
// mount opens it for writing, so the hint is refused. A freeze that stayed would end after 30 s.
TEST(Hints, ThatAreRefusedAfterTheirFreezeLeaveTheFileToItsWriter) {
  Outcome<OpenResult> writer =
      Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "the hint has frozen nothing"};
  Cluster cluster;
  cluster.a().OnAnswer([&](const std::vector<Request>& requests) {
    if (!writer.ok() && std::holds_alternative<FreezeRequest>(requests.front()))
      writer = cluster.b().Open("/d/f", O_RDWR);
  });
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  auto made = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(made));
  ASSERT_TRUE(Ok(cluster.a().Close(made->handle)));
  auto reader = cluster.b().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(reader));
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:b")),
            ErrorReason::kBusy);
  ASSERT_TRUE(Ok(writer));
  EXPECT_TRUE(Ok(cluster.b().Write(writer->handle, 0, Pattern(kMiB, 6))));
  EXPECT_TRUE(Ok(cluster.b().Close(writer->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(reader->handle)));
  EXPECT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_a});
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == Pattern(kMiB, 6));
}

TEST(Hints, OfAnotherMountReachBytesThatAreNotCommittedYet) {
  Cluster cluster;
  auto handle = cluster.a().Open("/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.b().Stat("/f")));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "small")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/f", "user.mosa.placement", "node:b")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_FALSE(cluster.manager().StatusOf("/f")->is_inline);
  EXPECT_EQ(NodesOf(cluster, "/f"), std::vector<NodeId>{cluster.node_b});
  EXPECT_EQ(*cluster.b().ReadFile("/f"), "small");
}

TEST(Hints, OfAFileThatNobodyKnowsYetCostNoCall) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  // The mount's own messages may come in between.
  uint64_t calls = UINT64_MAX;
  for (int i = 0; i < 10 && calls > 1; ++i) {
    const std::string path = "/d/f" + std::to_string(i);
    const uint64_t before = cluster.manager().envelopes();
    auto handle = cluster.a().Open(path, O_CREAT | O_WRONLY);
    ASSERT_TRUE(Ok(handle));
    ASSERT_TRUE(Ok(cluster.a().SetXattr(path, "user.mosa.lifetime", "temporary")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr(path, "user.RepSmntc", "pessimistic")));
    ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "small")));
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    calls = std::min(calls, cluster.manager().envelopes() - before);
    EXPECT_EQ(*cluster.b().ReadFile(path), "small");
    const auto file = cluster.b().Find(path);
    ASSERT_TRUE(Ok(file));
    EXPECT_EQ(*cluster.b().fs().GetXattr(*file, "user.mosa.lifetime"), "temporary");
    EXPECT_EQ(*cluster.b().fs().GetXattr(*file, "user.mosa.ack"), "pessimistic");
  }
  EXPECT_EQ(calls, 1u);
  auto handle = cluster.a().Open("/d/g", O_CREAT | O_WRONLY);
  ASSERT_TRUE(Ok(handle));
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/g", "user.mosa.lifetime", "long")),
            ErrorReason::kInvalid);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
}

TEST(Hints, OfAFileThatNobodyKnowsYetSettleItsPlace) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_WRONLY);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d/f", "user.mosa.placement", "node:b")));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "small")));
  EXPECT_EQ(ReasonOf(cluster.a().SetXattr("/d/f", "user.mosa.placement", "local")),
            ErrorReason::kNotEmpty);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_EQ(NodesOf(cluster, "/d/f"), std::vector<NodeId>{cluster.node_b});
  EXPECT_EQ(*cluster.b().ReadFile("/d/f"), "small");
}

TEST(Rules, PlaceAFileInTheCallThatMakesIt) {
  Cluster cluster;
  ASSERT_TRUE(cluster.manager()
                  .Change(manager::AddHintRule{"/*.dat", {{"placement", "node:b"}}})
                  .status.ok());
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/first.dat", "x")));
  // The mount's own messages, such as the report of a close, may come in between.
  uint64_t calls = UINT64_MAX;
  for (int i = 0; i < 10 && calls > 1; ++i) {
    const std::string path = "/made" + std::to_string(i) + ".dat";
    ASSERT_FALSE(cluster.a().Stat(path).ok());
    const uint64_t before = cluster.manager().envelopes();
    auto made = cluster.a().Open(path, O_CREAT | O_RDWR);
    ASSERT_TRUE(Ok(made));
    calls = std::min(calls, cluster.manager().envelopes() - before);
    ASSERT_TRUE(Ok(cluster.a().Close(made->handle)));
  }
  EXPECT_EQ(calls, 1u);
  auto handle = cluster.a().Open("/f.dat", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  EXPECT_EQ(NodesOf(cluster, "/f.dat"), std::vector<NodeId>{cluster.node_b});
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "small")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_FALSE(cluster.manager().StatusOf("/f.dat")->is_inline);
  EXPECT_EQ(*cluster.b().ReadFile("/f.dat"), "small");
}

TEST(Rules, ReachAMountThatMadeFilesWithoutAsking) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto early = cluster.a().Open("/d/early", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(early));
  ASSERT_TRUE(Ok(cluster.a().Write(early->handle, 0, "deferred")));
  const manager::AddHintRule rule{"/d/*", {{"placement", "node:b"}}};
  EXPECT_TRUE(Eventually([&] { return cluster.manager().Change(rule).settled; }));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/late", "told")));
  EXPECT_EQ(NodesOf(cluster, "/d/late"), std::vector<NodeId>{cluster.node_b});
  ASSERT_TRUE(Ok(cluster.a().Close(early->handle)));
  EXPECT_EQ(*cluster.b().ReadFile("/d/early"), "deferred");
}

TEST(Scatter, TasksOnSeveralMountsFillTheirOwnRegions) {
  Cluster cluster;
  auto made = cluster.a().Open("/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(made));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/f", "user.mosa.pattern", "scatter:64K")));
  ASSERT_TRUE(Ok(cluster.a().Close(made->handle)));
  constexpr uint64_t kRegion = 64 << 10;
  constexpr uint64_t kRegions = 32;
  const auto work = [&](LocalMount& mount, uint64_t first) {
    auto handle = mount.Open("/f", O_RDWR);
    bool good = handle.ok();
    for (uint64_t i = first; good && i < kRegions; i += 2)
      good = mount.Write(handle->handle, i * kRegion, Pattern(kRegion, i)).ok();
    return good && mount.Close(handle->handle).ok();
  };
  auto other = std::async(std::launch::async, [&] { return work(cluster.b(), 1); });
  EXPECT_TRUE(work(cluster.a(), 0));
  EXPECT_TRUE(other.get());
  std::string expected;
  for (uint64_t i = 0; i < kRegions; ++i) expected += Pattern(kRegion, i);
  EXPECT_TRUE(*cluster.a().ReadFile("/f") == expected);
  EXPECT_TRUE(*cluster.b().ReadFile("/f") == expected);
  const Layout layout = cluster.manager().StatusOf("/f")->layout;
  EXPECT_EQ(layout.segments.at(0).width, 2u);
  EXPECT_NE(layout.NodeAt(0), layout.NodeAt(kRegion));
}

// The generation by which it was emptied is older than its new place.
TEST(Hints, AFileThatAProgramHasEmptiedAndPlacedAnewIsReadAndWritten) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(4 * kMiB, 1))));
  auto handle = cluster.a().Open("/f", O_RDWR | O_TRUNC);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/f", "user.mosa.chunk_size", "65536")));
  EXPECT_EQ(*cluster.a().Read(handle->handle, 0, kPageBytes), "");
  const std::string content = Pattern(kMiB, 2);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, content)));
  EXPECT_TRUE(*cluster.a().Read(handle->handle, 0, kMiB) == content);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/f") == content);
}

}  // namespace
}  // namespace mosa::sai
