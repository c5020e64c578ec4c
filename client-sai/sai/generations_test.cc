// Tests that a mount which was unheard for a while does not act on outdated knowledge.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

bool EventuallyWithin(std::chrono::seconds limit, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end)
    if (Eventually(condition)) return true;
  return false;
}

// Makes /d/f with this content: the first copy on a's node, another on b's.
void MakeCopied(Cluster& cluster, const std::string& content) {
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.replicas", "2")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content)));
  ASSERT_TRUE(EventuallyWithin(std::chrono::seconds(20), [&] {
    const auto status = cluster.manager().StatusOf("/d/f");
    return status.ok() && status->copies_valid == 2;
  }));
}

TEST(Generations, WhatWasStoredWhereTheFileIsNoLongerIsAnErrorOfFsyncAndOfClose) {
  Cluster cluster;
  const std::string old = Pattern(4 * kMiB, 1);
  MakeCopied(cluster, old);
  auto file = cluster.a().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(file));
  auto other = cluster.a().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(other));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, Pattern(kMiB, 2))));
  cluster.a().Freeze(true);
  cluster.manager().SilenceNode(cluster.node_a);
  ASSERT_TRUE(EventuallyWithin(std::chrono::seconds(40), [&] {
    const auto status = cluster.manager().StatusOf("/d/f");
    return status.ok() && status->layout.NodeAt(0) == cluster.node_b;
  })) << "the copy becomes the first one";
  cluster.a().Freeze(false);
  Outcome<Done> synced = Done{};
  // The manager does not answer before it has heard the mount again.
  for (int i = 0; i < 10; ++i) {
    synced = cluster.a().fs().Fsync(file->handle);
    if (ReasonOf(synced) != ErrorReason::kTimedOut) break;
  }
  EXPECT_EQ(ReasonOf(synced), ErrorReason::kStale);
  EXPECT_EQ(ReasonOf(cluster.a().Close(other->handle)), ErrorReason::kStale)
      << "it is told as well";
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == old);
  EXPECT_TRUE(*cluster.a().Read(file->handle, 0, old.size()) == old) << "nothing is left of it";
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, "new")));
  ASSERT_TRUE(Ok(cluster.a().Close(file->handle)));
  EXPECT_EQ(cluster.b().ReadFile("/d/f")->substr(0, 3), "new") << "what is written after it counts";
}

// Written before the other mount opened the file, and sent to the node only afterwards.
TEST(Generations, BytesThatASilentMountStillBuffersDoNotOverwriteNewerOnes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(2 * kMiB, 1))));
  const auto file = cluster.b().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(file));
  ASSERT_TRUE(Ok(cluster.b().Write(file->handle, 0, Pattern(4096, 2))));
  cluster.b().Freeze(true);
  std::this_thread::sleep_for(std::chrono::seconds(7));  // Its session expires.
  const std::string newer = Pattern(4096, 3);
  const auto other = cluster.a().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(other));
  ASSERT_TRUE(Ok(cluster.a().Write(other->handle, 0, newer)));
  ASSERT_TRUE(Ok(cluster.a().fs().Fsync(other->handle)));
  cluster.b().Freeze(false);
  Outcome<Done> synced = Done{};
  // The manager does not answer before it has heard the mount again.
  for (int i = 0; i < 10; ++i) {
    synced = cluster.b().fs().Fsync(file->handle);
    if (ReasonOf(synced) != ErrorReason::kTimedOut) break;
  }
  EXPECT_EQ(ReasonOf(synced), ErrorReason::kStale);
  EXPECT_TRUE(*cluster.a().Read(other->handle, 0, newer.size()) == newer);
  EXPECT_TRUE(cluster.b().ReadFile("/d/f")->substr(0, newer.size()) == newer);
  ASSERT_TRUE(Ok(cluster.a().Close(other->handle)));
  ASSERT_TRUE(Ok(cluster.b().Write(file->handle, 0, "new")));
  ASSERT_TRUE(Ok(cluster.b().Close(file->handle)));
  EXPECT_EQ(cluster.a().ReadFile("/d/f")->substr(0, 3), "new") << "what is written after it counts";
}

TEST(Generations, AMissingObjectIsAnErrorAndAHoleIsZero) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string content = Pattern(kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/hole", "")));
  ASSERT_TRUE(Ok(cluster.a().Truncate("/d/hole", kMiB)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/hole") == std::string(kMiB, '\0'));
  const FileId file = *cluster.b().Find("/d/f");
  std::filesystem::remove(cluster.nodes().Get(cluster.node_a).PathOf(file));
  EXPECT_EQ(ReasonOf(cluster.b().ReadFile("/d/f")), ErrorReason::kNodeLost);
}

// The node refuses the right of before its restart; the repetition has one that it accepts.
TEST(Generations, ACutThatReachesANodeWhichCameBackEmptyLeavesTheOtherCopyValid) {
  Cluster cluster;
  const std::string content = Pattern(4 * kMiB, 1);
  MakeCopied(cluster, content);
  bool restarted = false;
  cluster.nodes().Get(cluster.node_a).before_cut = [&]() -> Status {
    if (std::exchange(restarted, true)) return OkStatus();
    cluster.nodes().RestartEmpty(cluster.node_a);
    return PermissionDeniedError("the capability has an earlier epoch");
  };
  const auto cut = cluster.b().Truncate("/d/f", kMiB);
  EXPECT_EQ(ReasonOf(cut), ErrorReason::kNodeLost) << (cut.ok() ? "" : cut.failure().message);
  EXPECT_TRUE(restarted);
  ASSERT_TRUE(EventuallyWithin(std::chrono::seconds(20), [&] {
    const auto read = cluster.b().ReadFile("/d/f");
    return read.ok() && *read == content;
  })) << "nothing was cut";
  EXPECT_TRUE(Ok(cluster.b().Truncate("/d/f", kMiB)));
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == content.substr(0, kMiB));
}

// Each object also holds its node's copies of what is first on the other one.
TEST(Generations, ACutChangesOnlyObjectsThatHoldRemovedBytes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/s", Pattern(kMiB, 1))));
  const FileId file = *cluster.a().Find("/s");
  const NodeId first = cluster.manager().StatusOf("/s")->layout.NodeAt(0);
  const NodeId other = first == cluster.node_a ? cluster.node_b : cluster.node_a;
  ASSERT_EQ(cluster.manager().StatusOf("/s")->layout.Nodes().size(), 2U);
  const std::string path = cluster.nodes().Get(other).PathOf(file);
  std::ofstream(path) << Pattern(kMiB, 1);
  EXPECT_TRUE(Ok(cluster.b().Truncate("/s", 4096)));
  EXPECT_EQ(std::filesystem::file_size(path), kMiB);
  EXPECT_EQ(std::filesystem::file_size(cluster.nodes().Get(first).PathOf(file)), 4096U);
}

// The objects are cut, and the manager does not take the new size.
TEST(Generations, ATruncationThatFailsAfterItsCutLeavesNoCopyCountedAsValid) {
  Cluster cluster;
  const std::string content = Pattern(4 * kMiB, 1);
  MakeCopied(cluster, content);
  bool refused = false;
  cluster.b().OnAnswer([&](const std::vector<Request>& requests) {
    // The new size comes next.
    if (!refused && std::holds_alternative<CommitRequest>(requests.front())) {
      refused = true;
      cluster.manager().SilenceNode(cluster.node_a);
      cluster.nodes().RestartEmpty(cluster.node_a);
    }
  });
  EXPECT_EQ(ReasonOf(cluster.b().Truncate("/d/f", kMiB)), ErrorReason::kNodeLost);
  EXPECT_TRUE(refused);
  ASSERT_TRUE(EventuallyWithin(std::chrono::seconds(20), [&] {
    const auto read = cluster.b().ReadFile("/d/f");
    return read.ok() && *read == content;
  })) << "the other copy is whole";
}

TEST(Generations, WhatAFailedWriterLeftBehindTheEndIsGoneAfterATruncation) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/s", Pattern(kMiB, 1))));
  const FileId file = *cluster.a().Find("/s");
  const auto layout = cluster.manager().StatusOf("/s")->layout;
  const NodeId other = layout.NodeAt(0) == cluster.node_a ? cluster.node_b : cluster.node_a;
  const std::string path = cluster.nodes().Get(other).PathOf(file);
  std::ofstream(path) << Pattern(2 * kMiB, 2);
  EXPECT_TRUE(Ok(cluster.b().Truncate("/s", 4096)));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/s", 2 * kMiB)));
  EXPECT_TRUE(*cluster.b().ReadFile("/s") ==
              Pattern(kMiB, 1).substr(0, 4096) + std::string(2 * kMiB - 4096, '\0'));
}

// What is kept lies on the other node.
TEST(Generations, AFileIsWholeAgainOnceWhatItHasLostIsCutOff) {
  Cluster cluster;
  const std::string content = Pattern(2 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/s", content)));
  const auto layout = cluster.manager().StatusOf("/s")->layout;
  ASSERT_NE(layout.NodeAt(0), layout.NodeAt(kMiB));
  cluster.nodes().RestartEmpty(layout.NodeAt(kMiB));
  EXPECT_EQ(ReasonOf(cluster.b().Truncate("/s", kMiB + 4096)), ErrorReason::kNodeLost);
  EXPECT_EQ(ReasonOf(cluster.b().ReadFile("/s")), ErrorReason::kNodeLost);
  EXPECT_TRUE(Ok(cluster.b().Truncate("/s", 4096)));
  EXPECT_TRUE(*cluster.b().ReadFile("/s") == content.substr(0, 4096));
}

TEST(Generations, ATruncationOfAFileThatNobodyHasOpenWaitsForItsCopies) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.replicas", "2")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.ack", "pessimistic")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(4 * kMiB, 1))));
  EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U);
  for (const uint64_t size : {kMiB, 2 * kMiB}) {
    ASSERT_TRUE(Ok(cluster.b().Truncate("/d/f", size)));
    EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U) << size;
  }
  cluster.manager().SilenceNode(cluster.node_a);
  EXPECT_TRUE(Ok(cluster.b().Truncate("/d/f", 0))) << "an empty file needs no copies";
}

// The kernel releases a handle later than the program closes it.
TEST(Generations, ATruncationAfterAClosedWriteWaitsForCopiesBeforeTheRelease) {
  for (const char* const placement : {"local", "node:b"}) {
    Cluster cluster;
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    for (const auto& [name, value] : {std::pair("placement", placement), std::pair("replicas", "2"),
                                      std::pair("ack", "pessimistic")})
      ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", std::string("user.mosa.") + name, value)));
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(4 * kMiB, 1))));
    std::vector<HandleId> closed;
    for (const uint64_t size : {2 * kMiB, kMiB, 3 * kMiB}) {
      const auto file = cluster.a().Open("/d/f", O_WRONLY);
      ASSERT_TRUE(Ok(file));
      ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, Pattern(kMiB, 2))));
      ASSERT_TRUE(Ok(cluster.a().Flush(file->handle, 0)));
      EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U) << placement << size;
      closed.push_back(file->handle);
      ASSERT_TRUE(Ok(cluster.a().Truncate("/d/f", size)));
      EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U) << placement << size;
    }
    for (const HandleId handle : closed) cluster.a().fs().Release(handle, std::nullopt);
    EXPECT_EQ(cluster.manager().StatusOf("/d/f")->copies_valid, 2U) << placement;
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == Pattern(kMiB, 2) + std::string(2 * kMiB, '\0'))
        << placement;
  }
}

// A child that ends closes the descriptors that it has inherited.
TEST(Generations, AnFtruncateAfterTheCloseOfAnotherDescriptorWaitsForNothing) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  for (const auto& [name, value] : {std::pair("placement", "local"), std::pair("replicas", "2"),
                                    std::pair("ack", "pessimistic")})
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", std::string("user.mosa.") + name, value)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(4 * kMiB, 1))));
  const auto file = cluster.a().Open("/d/f", O_WRONLY);
  ASSERT_TRUE(Ok(file));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, Pattern(kMiB, 2))));
  ASSERT_TRUE(Ok(cluster.a().Flush(file->handle, 0)));
  cluster.manager().SilenceNode(cluster.node_b);
  AttributeChanges changes;
  changes.size_bytes = 2 * kMiB;
  changes.handle = file->handle;
  std::promise<Outcome<AttributesResult>> done;
  cluster.a().fs().SetAttributes(*cluster.a().Find("/d/f"), changes,
                                 [&](auto changed) { done.set_value(std::move(changed)); });
  EXPECT_TRUE(Ok(done.get_future().get())) << "a close waits, and says so";
  cluster.a().fs().Release(file->handle, std::nullopt);
  EXPECT_EQ(cluster.a().ReadFile("/d/f")->size(), 2 * kMiB);
}

TEST(Generations, WhatWasCutOffWhileItsNodeWasSilentIsNotReadAgain) {
  Cluster cluster;
  const std::string content = Pattern(8 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/s", content)));
  ASSERT_TRUE(*cluster.b().ReadFile("/s") == content);
  cluster.manager().SilenceNode(cluster.node_a);
  cluster.nodes().Get(cluster.node_a).reachable = false;
  ASSERT_TRUE(EventuallyWithin(std::chrono::seconds(20), [&] {
    return std::ranges::any_of(cluster.manager().Status().nodes, [](const auto& node) {
      return node.address.state == NodeState::kSilent;
    });
  }));
  EXPECT_FALSE(cluster.b().Truncate("/s", kMiB).ok()) << "a part of the rest is there";
  ASSERT_TRUE(Ok(cluster.b().Truncate("/s", 0)));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/s", 8 * kMiB)));
  const std::string zeroes(8 * kMiB, '\0');
  EXPECT_TRUE(*cluster.b().ReadFile("/s") == zeroes);
  cluster.nodes().Get(cluster.node_a).reachable = true;
  cluster.nodes().Return(cluster.node_a);
  for (LocalMount* mount : {&cluster.a(), &cluster.b()})
    EXPECT_TRUE(*mount->ReadFile("/s") == zeroes);
  // The node may have the file again.
  ASSERT_TRUE(Ok(cluster.a().Truncate("/s", 0)));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/s", "user.mosa.placement", "local")));
  auto file = cluster.a().Open("/s", O_RDWR);
  ASSERT_TRUE(Ok(file));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 2 * kMiB, "end")));
  ASSERT_TRUE(Ok(cluster.a().Close(file->handle)));
  EXPECT_EQ(cluster.manager().StatusOf("/s")->layout.NodeAt(0), cluster.node_a);
  EXPECT_TRUE(*cluster.b().ReadFile("/s") == zeroes.substr(0, 2 * kMiB) + "end");
}

TEST(Generations, AnObjectThatIsMissingIsNeitherCutNorPunched) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kMiB, 1))));
  const auto file = cluster.b().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(file));
  std::filesystem::remove(cluster.nodes().Get(cluster.node_a).PathOf(*cluster.b().Find("/d/f")));
  EXPECT_FALSE(cluster.b().Truncate("/d/f", 4096).ok());
  EXPECT_FALSE(cluster.b()
                   .fs()
                   .Allocate(file->handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096)
                   .ok());
  EXPECT_EQ(cluster.b().Stat("/d/f")->size_bytes, kMiB);
  EXPECT_TRUE(Ok(cluster.b().Truncate("/d/f", 0))) << "that needs nothing of it";
}

TEST(Generations, WhoReadsWhileTheFileIsCutFindsItsEndAndNoZeroes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.b().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", Pattern(kMiB, 1))));
  const auto file = cluster.a().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(file));
  bool cut = false;
  cluster.nodes().Get(cluster.node_b).before_read = [&] {
    if (std::exchange(cut, true)) return;
    EXPECT_TRUE(Ok(cluster.a().Truncate("/d/f", 0)));
  };
  const auto read = cluster.a().Read(file->handle, 0, 4096);
  ASSERT_TRUE(Ok(read));
  EXPECT_TRUE(cut);
  EXPECT_EQ(*read, "");
}

TEST(Generations, AStripeOfWhichOneNodeHasNoByteReadsAsItIs) {
  Cluster cluster;
  const auto file = cluster.a().Open("/s", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(file));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 6 * kMiB, "end")));
  std::string expected(6 * kMiB, '\0');
  expected += "end";
  EXPECT_TRUE(*cluster.a().Read(file->handle, 0, expected.size()) == expected)
      << "its writer's view";
  ASSERT_TRUE(Ok(cluster.a().Close(file->handle)));
  EXPECT_TRUE(*cluster.a().ReadFile("/s") == expected);
  EXPECT_TRUE(*cluster.b().ReadFile("/s") == expected);
}

TEST(Generations, ANodeThatCouldNotBeReachedHasNothingToLose) {
  Cluster cluster;
  const std::string content = Pattern(64 << 10, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/s", content)));
  const Layout layout = cluster.manager().StatusOf("/s")->layout;
  const bool begins_on_a = layout.NodeAt(0) == cluster.node_a;
  const NodeId second = layout.NodeAt(kMiB);
  ASSERT_NE(layout.NodeAt(0), second);
  LocalMount& writer = begins_on_a ? cluster.a() : cluster.b();
  LocalMount& reader = begins_on_a ? cluster.b() : cluster.a();
  const auto file = writer.Open("/s", O_WRONLY);
  ASSERT_TRUE(Ok(file));
  cluster.nodes().Get(second).reachable = false;
  (void)writer.Write(file->handle, kMiB, "cannot be stored");
  EXPECT_FALSE(writer.Close(file->handle).ok());
  cluster.nodes().Get(second).reachable = true;
  const auto read = reader.ReadFile("/s");
  ASSERT_TRUE(Ok(read));
  EXPECT_TRUE(read->substr(0, content.size()) == content);
}

TEST(Generations, ANameThatAnotherFileHasByNowIsLookedUpAgain) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/x", "old")));
  ASSERT_TRUE(Ok(cluster.b().Find("/x")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/y", "new")));
  ASSERT_TRUE(Ok(cluster.a().Rename("/y", "/x")));
  EXPECT_TRUE(Ok(cluster.b().Unlink("/x"))) << "there was a file all the time";
  EXPECT_EQ(ReasonOf(cluster.a().Find("/x")), ErrorReason::kNoEntry);
}

// Else the manager would take the other one's bytes for a hole when their node returns empty.
TEST(Commits, WhoHasEmptiedAFileDoesNotReportOthersBytesAsNone) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "stripe")));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", "small")));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/d/f", 0)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", std::string(8 << 20, 'A'))));
  auto written = cluster.b().Open("/d/f", O_WRONLY);
  ASSERT_TRUE(Ok(cluster.b().Write(written->handle, 0, "B")));
  ASSERT_TRUE(Ok(cluster.b().Close(written->handle)));
  EXPECT_GE(cluster.a().Stat("/d/f")->allocated_bytes, uint64_t{8} << 20);
}

// Its answer tells the version of the other one's bytes.
TEST(Commits, ACommitWithoutBytesDoesNotMakeAnothersBytesKnown) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "stripe")));
  auto opened = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(opened));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", std::string(8 << 20, 'B'))));
  ASSERT_TRUE(Ok(cluster.a().fs().Fsync(opened->handle)));
  ASSERT_TRUE(Ok(cluster.a().Write(opened->handle, 0, "A")));
  ASSERT_TRUE(Ok(cluster.a().Close(opened->handle)));
  EXPECT_GE(cluster.b().Stat("/d/f")->allocated_bytes, uint64_t{8} << 20);
}

}  // namespace
}  // namespace mosa::sai
