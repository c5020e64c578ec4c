// Tests changes that one mount has not reported yet, while others change the same file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client-sai/sai/cluster_fixture.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

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
  // The commit is answered once b has confirmed that it dropped its caches.
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

// The manager hears nothing for longer than a close waits. The unsaved bytes must never appear,
// least of all over later writes of others.
TEST(Commits, WhatACloseHasFailedToSaveNeverAppears) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/large", Pattern(kMiB, 1))));
  auto made = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  auto large = cluster.a().Open("/large", O_WRONLY);
  ASSERT_TRUE(Ok(made));
  ASSERT_TRUE(Ok(large));
  ASSERT_TRUE(Ok(cluster.a().Write(made->handle, 0, "content")));
  ASSERT_TRUE(Ok(cluster.a().Write(large->handle, kMiB, Pattern(kMiB, 2))));
  cluster.a().SetUnheard(true);
  auto closed = std::async(std::launch::async, [&] { return cluster.a().Close(large->handle); });
  EXPECT_EQ(ReasonOf(cluster.a().Close(made->handle)), ErrorReason::kTimedOut);
  EXPECT_EQ(ReasonOf(closed.get()), ErrorReason::kTimedOut);
  cluster.a().SetUnheard(false);
  for (LocalMount* mount : {&cluster.a(), &cluster.b()}) {
    EXPECT_EQ(ReasonOf(mount->ReadFile("/d/f")), ErrorReason::kNoEntry) << "it was not made yet";
    EXPECT_EQ(mount->ReadFile("/large")->size(), kMiB);
  }
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", "instead")));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(*cluster.a().ReadFile("/d/f"), "instead");
}

// A system call of 2 MiB, which the kernel sends in pieces of 512 KiB.
TEST(Append, WhatOneCallAppendsInPiecesIsOneRecordOverAllMounts) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "")));
  constexpr size_t kPieceBytes = kMiB / 2;
  constexpr size_t kPieces = 4;
  constexpr int kRecords = 6;
  const auto work = [&](LocalMount& mount, char who) {
    auto handle = mount.Open("/log", O_WRONLY | O_APPEND);
    ASSERT_TRUE(Ok(handle));
    const std::string piece(kPieceBytes, who);
    for (size_t i = 0; i < kRecords * kPieces; ++i) {
      const CallPiece place{.offset = i * kPieceBytes, .call_bytes = kPieces * kPieceBytes};
      ASSERT_TRUE(Ok(mount.fs().Write(handle->handle, place, std::as_bytes(std::span(piece)))));
    }
    ASSERT_TRUE(Ok(mount.Close(handle->handle)));
  };
  std::thread other([&] { work(cluster.b(), 'b'); });
  work(cluster.a(), 'a');
  other.join();
  const std::string log = *cluster.a().ReadFile("/log");
  ASSERT_EQ(log.size(), 2 * kRecords * kPieces * kPieceBytes);
  for (size_t at = 0; at < log.size(); at += kPieces * kPieceBytes)
    EXPECT_EQ(log.find_first_not_of(log[at], at) < at + kPieces * kPieceBytes, false) << at;
}

// The program was killed in the middle of its call, and its descriptor is open elsewhere.
TEST(Append, WhoDoesNotGoOnKeepsOthersForSomeSecondsOnly) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "")));
  auto stuck = cluster.a().Open("/log", O_WRONLY | O_APPEND);
  auto other = cluster.b().Open("/log", O_WRONLY | O_APPEND);
  const std::string text(100, 'a');
  ASSERT_TRUE(Ok(cluster.a().fs().Write(stuck->handle, {.offset = 0, .call_bytes = 1000},
                                        std::as_bytes(std::span(text)))));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Ok(cluster.b().Write(other->handle, 0, "b")));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(8));
  EXPECT_EQ(*cluster.b().ReadFile("/log"), text + "b");
  // Another call through the same handle does not wait for the rest of the last one.
  ASSERT_TRUE(Ok(cluster.a().fs().Write(stuck->handle, {.offset = 0, .call_bytes = 1000},
                                        std::as_bytes(std::span(text)))));
  ASSERT_TRUE(Ok(cluster.a().fs().Write(stuck->handle, {.offset = 0, .call_bytes = 100},
                                        std::as_bytes(std::span(text)))));
  EXPECT_EQ(*cluster.b().ReadFile("/log"), text + "b" + text + text);
  ASSERT_TRUE(Ok(cluster.a().Close(stuck->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(other->handle)));
}

// Before the manager hears of it, and so before it answers others.
TEST(Sessions, TheKernelForgetsBeforeTheSessionIsAskedForAgain) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "x")));
  auto handle = cluster.a().Open("/f", O_RDONLY);
  ASSERT_TRUE(Ok(handle));
  const uint64_t entries = cluster.a().notifier().entries;
  const uint64_t attributes = cluster.a().notifier().attributes;
  cluster.a().Freeze(true);
  EXPECT_TRUE(Eventually([&] { return cluster.manager().Status().sessions.size() < 2; }));
  EXPECT_EQ(cluster.a().notifier().entries, entries);
  cluster.a().Freeze(false);
  EXPECT_TRUE(Eventually([&] { return cluster.a().notifier().entries > entries; }));
  EXPECT_TRUE(Eventually([&] { return cluster.a().notifier().attributes > attributes; }));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
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

// Two mounts write different parts of one small file that both have open.
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

// ---- full nodes

constexpr uint64_t kPiece = 64 << 10;

// Writes `content` in pieces until one is refused; returns the number of bytes accepted.
uint64_t WritePieces(LocalMount& mount, HandleId handle, uint64_t begin, const std::string& content,
                     const std::function<bool()>& go_on) {
  uint64_t at = begin;
  while (at < content.size() && go_on()) {
    if (!mount.Write(handle, at, std::string_view(content).substr(at, kPiece)).ok()) break;
    at += std::min<uint64_t>(kPiece, content.size() - at);
  }
  return at;
}

TEST(Spill, AStoreThatRunsFullInsideAChunkKeepsEveryByteThatWasAccepted) {
  for (const bool local : {false, true}) {
    for (const uint64_t b_bytes : {6 * kMiB, 6 * kMiB + 5 * kPiece, 9 * kMiB / 2}) {
      SCOPED_TRACE(std::to_string(b_bytes) + (local ? " local" : " striped"));
      Cluster cluster(6 * kMiB + kPiece, b_bytes);
      ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
      if (local) {
        ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
      }
      const std::string kept = Pattern(kMiB + 3 * kPiece, 4);
      ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/kept", kept)));
      const std::string content = Pattern(32 * kMiB, 5);
      auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
      const uint64_t accepted =
          WritePieces(cluster.a(), handle->handle, 0, content, [] { return true; });
      EXPECT_LT(accepted, content.size());
      EXPECT_GT(accepted, 4 * kMiB);
      EXPECT_TRUE(*cluster.a().Read(handle->handle, 0, content.size()) ==
                  content.substr(0, accepted));
      ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
      EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content.substr(0, accepted));
      EXPECT_TRUE(*cluster.a().ReadFile("/d/kept") == kept);
    }
  }
}

TEST(Spill, AMoveThatFailsAtAnyStepLosesNothing) {
  int failed = 0;
  for (uint64_t fault = 1; fault <= 12; ++fault) {
    SCOPED_TRACE(fault);
    Cluster cluster(4 * kMiB + kPiece, 64 * kMiB);
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
    const std::string content = Pattern(8 * kMiB, fault);
    auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
    ASSERT_TRUE(Ok(handle));
    const auto on_one_node = [&] {
      const auto status = cluster.manager().StatusOf("/d/f");
      return !status.ok() || status->layout.segments.size() < 2;
    };
    const uint64_t before = WritePieces(cluster.a(), handle->handle, 0,
                                        content.substr(0, 7 * kMiB / 2), [] { return true; });
    cluster.nodes().FailOperation(fault, 1);
    uint64_t accepted = WritePieces(cluster.a(), handle->handle, before, content, on_one_node);
    cluster.nodes().FailOperation(0, 0);
    failed += on_one_node() ? 1 : 0;
    ASSERT_TRUE(Ok(cluster.a().fs().Fsync(handle->handle)));
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content.substr(0, accepted));
    // That was not the last attempt.
    accepted = WritePieces(cluster.a(), handle->handle, accepted, content, [] { return true; });
    EXPECT_EQ(accepted, content.size());
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  }
  EXPECT_GT(failed, 0);
}

TEST(Spill, AReaderOnAnotherMountReadsWhatWasCommittedWhileItMoves) {
  for (uint64_t round = 0; round < 4; ++round) {
    Cluster cluster(4 * kMiB + round * kPiece, 64 * kMiB);
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
    const std::string content = Pattern(6 * kMiB, round);
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content.substr(0, kPiece))));
    std::atomic<bool> done{false};
    std::thread reader([&] {
      auto handle = cluster.b().Open("/d/f", O_RDONLY);
      EXPECT_TRUE(Ok(handle));
      while (!done) {
        const uint64_t size = cluster.b().Stat("/d/f")->size_bytes;
        const uint64_t begin = size > kMiB ? size - kMiB : 0;
        const auto read = cluster.b().Read(handle->handle, begin, kMiB);
        EXPECT_TRUE(Ok(read));
        EXPECT_TRUE(read.ok() && *read == content.substr(begin, read->size())) << begin;
      }
      EXPECT_TRUE(Ok(cluster.b().Close(handle->handle)));
    });
    auto handle = cluster.a().Open("/d/f", O_RDWR);
    for (uint64_t at = kPiece; at < content.size(); at += kPiece) {
      EXPECT_TRUE(Ok(cluster.a().Write(handle->handle, at, content.substr(at, kPiece))));
      EXPECT_TRUE(Ok(cluster.a().fs().Fsync(handle->handle)));
    }
    done = true;
    reader.join();
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
    EXPECT_EQ(cluster.manager().StatusOf("/d/f")->layout.Nodes().size(), 2u);
  }
}

// A slow node still stores extents of a chunk when the rest of the chunk turns out to have no room.
TEST(Spill, ExtentsThatAreUnderWayAreStoredBeforeTheirChunkMoves) {
  Cluster cluster(64 * kMiB, 6 * kMiB);
  ASSERT_TRUE(Ok(cluster.b().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/d", "user.mosa.chunk_size", "4M")));
  const std::string content = Pattern(12 * kMiB, 9);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", content.substr(0, kPiece))));
  ASSERT_EQ(cluster.manager().StatusOf("/d/f")->layout.chunk_bytes, 4 * kMiB);
  ASSERT_EQ(cluster.manager().StatusOf("/d/f")->layout.Nodes(),
            std::vector<NodeId>{cluster.node_b});
  auto handle = cluster.a().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(handle));
  std::promise<void> slow;
  std::thread hindrance([&] {
    const MutexLock lock(cluster.nodes().Get(cluster.node_b).mutex);
    slow.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  });
  slow.get_future().wait();
  EXPECT_EQ(WritePieces(cluster.a(), handle->handle, kPiece, content, [] { return true; }),
            content.size());
  hindrance.join();
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_EQ(cluster.manager().StatusOf("/d/f")->layout.Nodes().size(), 2u);
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == content);
}

// Both mounts write their own stripes of one file while nodes become full. Accepted bytes are
// there, whichever mount relocated the rest.
TEST(Spill, TwoMountsThatWriteOneFileOnAFullNodeLoseNothing) {
  for (uint64_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    Cluster cluster(3 * kMiB + round * kPiece, 64 * kMiB);
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kPiece, round))));
    const std::string content = Pattern(12 * kMiB, round);
    const auto write = [&](LocalMount& mount, uint64_t first) {
      auto handle = mount.Open("/d/f", O_RDWR);
      ASSERT_TRUE(Ok(handle));
      for (uint64_t at = first * kPiece; at < content.size(); at += 2 * kPiece) {
        ASSERT_TRUE(Ok(mount.Write(handle->handle, at, content.substr(at, kPiece))));
        if (at % (7 * kPiece) == 0) {
          ASSERT_TRUE(Ok(mount.fs().Fsync(handle->handle)));
        }
      }
      ASSERT_TRUE(Ok(mount.Close(handle->handle)));
    };
    std::thread other([&] { write(cluster.b(), 1); });
    write(cluster.a(), 0);
    other.join();
    EXPECT_EQ(cluster.manager().StatusOf("/d/f")->layout.Nodes().size(), 2u);
    for (LocalMount* mount : {&cluster.a(), &cluster.b()}) {
      const auto read = mount->ReadFile("/d/f");
      ASSERT_TRUE(Ok(read));
      ASSERT_EQ(read->size(), content.size());
      for (uint64_t at = 0; at < content.size(); at += kPiece)
        ASSERT_TRUE(read->compare(at, kPiece, content, at, kPiece) == 0) << "at " << at;
    }
  }
}

TEST(Spill, WhatIsAppendedToAFileOnAFullNodeGoesElsewhereAndNothingIsCopied) {
  Cluster cluster(4 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  std::string log = Pattern(100'001, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/log", log)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/filler", Pattern(5 * kMiB, 2))));
  for (uint64_t i = 0; i < 20; ++i) {
    auto handle = cluster.a().Open("/d/log", O_WRONLY | O_APPEND);
    const std::string line = Pattern(10'007, 3 + i);
    ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, line)));
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    log += line;
  }
  EXPECT_TRUE(*cluster.b().ReadFile("/d/log") == log);
  const Layout layout = cluster.manager().StatusOf("/d/log")->layout;
  EXPECT_EQ(layout.NodeAt(0), cluster.node_a);
  EXPECT_EQ(layout.NodeAt(log.size() - 1), cluster.node_b);
}

TEST(Spill, AHoleInTheMiddleOfAFileIsFilledElsewhere) {
  Cluster cluster(4 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string content = Pattern(3 * kMiB, 1);
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, content.substr(0, kPiece))));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 2 * kMiB + 5, content.substr(2 * kMiB + 5))));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/filler", Pattern(5 * kMiB, 2))));
  WritePieces(cluster.a(), handle->handle, kPiece, content.substr(0, 2 * kMiB + 5),
              [] { return true; });
  EXPECT_TRUE(*cluster.a().Read(handle->handle, 0, content.size()) == content);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  const Layout layout = cluster.manager().StatusOf("/d/f")->layout;
  EXPECT_EQ(layout.NodeAt(kMiB), cluster.node_b);
  EXPECT_EQ(layout.NodeAt(content.size() - 1), cluster.node_a);
}

TEST(Spill, MoreThanAllNodesHaveTogetherIsRefusedInBoundedTime) {
  Cluster cluster(20 * kMiB, 24 * kMiB);
  auto handle = cluster.a().Open("/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(ReasonOf(cluster.a().fs().Allocate(handle->handle, 0, 0, uint64_t{1} << 30)),
            ErrorReason::kNoSpace);
  EXPECT_EQ(ReasonOf(cluster.a().fs().Allocate(handle->handle, 0, 0, 60 * kMiB)),
            ErrorReason::kNoSpace);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/g", Pattern(kPiece, 1))));
}

TEST(InlineContent, TwoMountsThatLetOneFileGrowOutOfItLoseNothing) {
  for (uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    Cluster cluster;
    std::string content = Pattern(64 * 1024, round);
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content.substr(0, 12000))));
    const auto write = [&](LocalMount& mount, uint64_t begin, uint64_t end) {
      auto handle = mount.Open("/f", O_RDWR);
      for (uint64_t at = begin; at < end; at += 4096)
        EXPECT_TRUE(Ok(mount.Write(handle->handle, at,
                                   content.substr(at, std::min<uint64_t>(4096, end - at)))));
      EXPECT_TRUE(Ok(mount.Close(handle->handle)));
    };
    std::thread other([&] {
      write(cluster.b(), 0, 6000);
      write(cluster.b(), 40'000, content.size());
    });
    write(cluster.a(), 12'000, 40'000);
    other.join();
    EXPECT_TRUE(*cluster.a().ReadFile("/f") == content);
    EXPECT_TRUE(*cluster.b().ReadFile("/f") == content);
  }
}

TEST(InlineContent, AGrowthThatFailsKeepsWhatWasCommitted) {
  Cluster cluster;
  const std::string content = Pattern(10'000, 1);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.stripe_width", "1")));
  // On several nodes, so that some lie on the failing one.
  for (int i = 0; i < 4; ++i) {
    const std::string path = "/d/f" + std::to_string(i);
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path, content)));
    auto handle = cluster.a().Open(path, O_RDWR);
    cluster.nodes().FailOperation(1, 1);
    const bool grown =
        cluster.a().Write(handle->handle, content.size(), Pattern(100'000, 2)).ok() &&
        cluster.a().fs().Fsync(handle->handle).ok();
    cluster.nodes().FailOperation(0, 0);
    static_cast<void>(cluster.a().Close(handle->handle).ok());
    for (LocalMount* mount : {&cluster.a(), &cluster.b()})
      EXPECT_TRUE(mount->ReadFile(path)->substr(0, content.size()) == content)
          << path << (grown ? " grown" : "");
    // Remains of a failed attempt in the objects must not show in a hole.
    ASSERT_TRUE(Ok(cluster.b().WriteFile(path, "")));
    handle = cluster.b().Open(path, O_RDWR);
    ASSERT_TRUE(Ok(cluster.b().Write(handle->handle, 150'000, "end")));
    ASSERT_TRUE(Ok(cluster.b().Close(handle->handle)));
    EXPECT_TRUE(*cluster.a().ReadFile(path) == std::string(150'000, '\0') + "end");
  }
}

// A drained node drops the object while a mount is about to read there by the previous layout.
TEST(Layouts, AReadThatIsUnderWayWhileItsObjectIsDroppedReadsTheBytes) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string content = Pattern(4 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content)));
  const FileId file = *cluster.b().Find("/d/f");
  std::promise<void> go;
  std::atomic<int> waiting{0};
  testing::LocalNode& node = cluster.nodes().Get(cluster.node_a);
  node.before_read = [&, gone = go.get_future().share()] {
    ++waiting;
    gone.wait();
  };
  auto read = std::async(std::launch::async, [&] { return cluster.b().ReadFile("/d/f"); });
  EXPECT_TRUE(Eventually([&] { return waiting > 0; }));
  const auto drained = cluster.manager().Change(manager::DrainNode{"a", true});
  EXPECT_TRUE(drained.status.ok()) << drained.status;
  EXPECT_TRUE(Eventually([&] { return access(node.PathOf(file).c_str(), F_OK) != 0; }));
  go.set_value();
  const auto bytes = read.get();
  ASSERT_TRUE(Ok(bytes));
  EXPECT_TRUE(*bytes == content);
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
}

// Another mount has stored bytes that it has not committed yet, with room taken.
TEST(Spill, BytesBeyondTheCommittedSizeOfAFullNodeAreWrittenOver) {
  Cluster cluster(8 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string content = Pattern(4 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content.substr(0, kPiece))));
  auto other = cluster.b().Open("/d/f", O_RDWR);
  EXPECT_EQ(WritePieces(cluster.b(), other->handle, kPiece, content, [] { return true; }),
            content.size());
  EXPECT_TRUE(Eventually([&] { return cluster.nodes().operations() >= 4; }));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/filler", Pattern(9 * kMiB, 2))));
  auto handle = cluster.a().Open("/d/f", O_RDWR);
  EXPECT_EQ(WritePieces(cluster.a(), handle->handle, kPiece, content, [] { return true; }),
            content.size());
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(other->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == content);
}

// Bytes on other nodes are not part of the object that the kernel would read directly.
TEST(Spill, AFileThatHasGoneOnElsewhereIsNotReadByTheKernelAlone) {
  for (int round = 0; round < 10; ++round) {
    Cluster cluster(4 * kMiB, 64 * kMiB, true);
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", Pattern(kPiece, 1))));
    const std::string content = Pattern(6 * kMiB, 1);
    std::atomic<bool> done{false};
    std::thread reader([&] {
      while (!done) {
        auto handle = cluster.a().Open("/d/f", O_RDONLY);
        const bool one = cluster.manager().StatusOf("/d/f")->layout.OnOneNode();
        if (handle.ok() && !one) {
          auto again = cluster.a().Open("/d/f", O_RDONLY);
          // Or the writer came while it was read so, and the kernel has the old object for it.
          if (!again.ok()) {
            EXPECT_EQ(ReasonOf(again), ErrorReason::kBusy);
          } else {
            EXPECT_NE(again->mode.kind, OpenMode::Kind::kPassthrough);
            EXPECT_TRUE(Ok(cluster.a().Close(again->handle)));
          }
        }
        if (handle.ok()) {
          EXPECT_TRUE(Ok(cluster.a().Close(handle->handle)));
        }
      }
    });
    auto handle = cluster.a().Open("/d/f", O_WRONLY);
    uint64_t at = kPiece;
    for (int tries = 0; at < content.size() && tries < 1000; ++tries) {
      at = WritePieces(cluster.a(), handle->handle, at, content, [] { return true; });
    }
    EXPECT_EQ(at, content.size());
    done = true;
    reader.join();
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  }
}

// To forget names, the kernel forgets all names of the mount, and with them pages of files.
TEST(Names, TheKernelForgetsThemOnceThoughOthersGoOnChangingADirectory) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  const FileId directory = *cluster.a().Find("/d");
  const auto look = [&](const std::string& name) {
    const auto entry = cluster.a().fs().Lookup(directory, name);
    EXPECT_TRUE(Ok(entry));
    return *entry;
  };
  EXPECT_GT(look("0").entry_valid, Duration{});  // Cached as absent.
  const uint64_t before = cluster.a().notifier().entries;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/" + name, "x")));
    EXPECT_NE(look(name).entry.file, FileId{});
    EXPECT_EQ(look(name).entry_valid, Duration{});
    EXPECT_EQ(look(std::to_string(i + 1)).entry_valid, Duration{});
  }
  EXPECT_EQ(cluster.a().notifier().entries - before, 1u);
  // Nor does it keep names of another directory: to forget them would cost the pages of all files.
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/e")));
  const FileId other = *cluster.a().Find("/e");
  EXPECT_EQ(cluster.a().fs().Lookup(other, "x")->entry_valid, Duration{});
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/e/x", "x")));
  EXPECT_EQ(cluster.a().notifier().entries - before, 1u);
  EXPECT_NE(cluster.a().fs().Lookup(other, "x")->entry.file, FileId{});
}

// The kernel moves a cached name together with the file.
TEST(Names, WhatARenameHasBroughtIntoASharedDirectoryIsForgottenToo) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/shared")));
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/own")));
  const FileId shared = *cluster.a().Find("/shared");
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/own/t", "t")));
  EXPECT_GT(cluster.a().fs().Lookup(*cluster.a().Find("/own"), "t")->entry_valid, Duration{});
  ASSERT_TRUE(Ok(cluster.a().Rename("/own/t", "/shared/t")));
  const uint64_t before = cluster.a().notifier().entries;
  ASSERT_TRUE(Ok(cluster.b().Rename("/shared/t", "/shared/u")));
  EXPECT_EQ(cluster.a().notifier().entries - before, 1u);
  EXPECT_EQ(cluster.a().fs().Lookup(shared, "t")->entry.file, FileId{});
}

TEST(Names, TheKernelKeepsNoneOfAListing) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", "x")));
  const FileId directory = *cluster.a().Find("/d");
  const auto handle = cluster.a().fs().OpenDirectory(directory);
  ASSERT_TRUE(Ok(handle));
  const auto page = cluster.a().fs().ReadDirectory(*handle, 0, 10);
  ASSERT_TRUE(Ok(page));
  size_t remembered = 0;
  for (const DirectoryItem& item : page->items) {
    const EntryResult entry = cluster.a().fs().RememberEntry(*handle, item);
    if (entry.entry.file.value != 0 && item.name == "f") ++remembered;
    EXPECT_EQ(entry.entry_valid, Duration{});
  }
  EXPECT_EQ(remembered, 1u);
}

}  // namespace
}  // namespace mosa::sai
