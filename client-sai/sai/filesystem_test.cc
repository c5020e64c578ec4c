// Tests two mounts on the real manager core, with real object directories.
#include "client-sai/sai/filesystem.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <variant>
#include <vector>

#include "client-sai/sai/cluster_fixture.h"
#include "client-sai/sai/inode.h"
#include "common/model/request_kinds.h"

namespace mosa::sai {
namespace {

TEST(CloseToOpen, TheNextOpenElsewhereSeesWhatWasClosed) {
  Cluster cluster;
  for (const size_t size :
       {size_t{0}, size_t{100}, size_t{16 << 10}, size_t{17 << 10}, size_t{3 * kMiB + 5}}) {
    for (uint64_t round = 0; round < 3; ++round) {
      LocalMount& writer = round % 2 == 0 ? cluster.a() : cluster.b();
      LocalMount& reader = round % 2 == 0 ? cluster.b() : cluster.a();
      const std::string content = Pattern(size + round, size + round);
      ASSERT_TRUE(Ok(writer.WriteFile("/file", content)));
      const auto stat = reader.Stat("/file");
      ASSERT_TRUE(Ok(stat));
      EXPECT_EQ(stat->size_bytes, content.size());
      for (LocalMount* mount : {&reader, &writer, &reader}) {
        const auto read = mount->ReadFile("/file");
        ASSERT_TRUE(Ok(read)) << size << " round " << round;
        EXPECT_TRUE(*read == content) << size << " round " << round;
      }
    }
  }
}

TEST(CloseToOpen, NamesChangeElsewhereWithoutDelay) {
  Cluster cluster;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ReasonOf(cluster.b().Find("/x")), ErrorReason::kNoEntry);
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/x", "1")));
    ASSERT_TRUE(Ok(cluster.b().Find("/x")));
    ASSERT_TRUE(Ok(cluster.a().Rename("/x", "/y")));
    EXPECT_EQ(ReasonOf(cluster.b().Find("/x")), ErrorReason::kNoEntry);
    ASSERT_TRUE(Ok(cluster.b().Unlink("/y")));
    EXPECT_EQ(ReasonOf(cluster.a().Find("/y")), ErrorReason::kNoEntry);
  }
}

TEST(Delegation, ASmallFileCostsOneCallAndReadingItAgainNone) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  const uint64_t before = cluster.manager().envelopes();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f" + std::to_string(i), "content")));
  EXPECT_EQ(cluster.manager().envelopes() - before, 20u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(*cluster.a().ReadFile("/d/f" + std::to_string(i)), "content");
  EXPECT_EQ(cluster.a().List("/d")->size(), 20u);
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/absent")), ErrorReason::kNoEntry);
  EXPECT_EQ(cluster.manager().envelopes() - before, 20u);
  EXPECT_EQ(cluster.a().Stat("/d")->size_bytes, 20u);
}

TEST(Delegation, ADeferredCreateIsSentWhenAnotherMountLooks) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  auto handle = cluster.a().Open("/d/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  EXPECT_EQ(ReasonOf(cluster.a().Open("/d/f", O_CREAT | O_EXCL | O_RDWR)), ErrorReason::kExists);
  EXPECT_FALSE(cluster.manager().StatusOf("/d/f").ok());
  EXPECT_EQ(*cluster.b().List("/d"), std::vector<std::string>{"f"});
  EXPECT_TRUE(cluster.manager().StatusOf("/d/f").ok());
  EXPECT_EQ(ReasonOf(cluster.b().Open("/d/f", O_CREAT | O_EXCL | O_RDWR)), ErrorReason::kExists);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "late")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_EQ(*cluster.b().ReadFile("/d/f"), "late");
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/g", "by b")));
  EXPECT_EQ(*cluster.a().ReadFile("/d/g"), "by b");
  EXPECT_EQ(cluster.a().List("/d")->size(), 2u);
}

TEST(Delegation, BothMountsCreateInOneDirectoryAtOnce) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  std::atomic<int> made{0};
  const auto work = [&](LocalMount& mount) {
    for (int i = 0; i < 100; ++i) {
      auto handle = mount.Open("/d/n" + std::to_string(i), O_CREAT | O_EXCL | O_WRONLY);
      if (!handle.ok()) {
        EXPECT_EQ(ReasonOf(handle), ErrorReason::kExists);
        continue;
      }
      ++made;
      EXPECT_TRUE(Ok(mount.Write(handle->handle, 0, "x")));
      EXPECT_TRUE(Ok(mount.Close(handle->handle)));
    }
  };
  std::thread other([&] { work(cluster.b()); });
  work(cluster.a());
  other.join();
  EXPECT_EQ(made, 100);
  EXPECT_EQ(cluster.a().List("/d")->size(), 100u);
  EXPECT_EQ(cluster.b().List("/d")->size(), 100u);
}

TEST(OpenFiles, AnUnlinkedFileLivesUntilItsLastClose) {
  Cluster cluster;
  const std::string content = Pattern(2 * kMiB, 1);
  for (const bool other_unlinks : {false, true}) {
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
    auto handle = cluster.a().Open("/f", O_RDWR);
    ASSERT_TRUE(Ok(handle));
    ASSERT_TRUE(Ok((other_unlinks ? cluster.b() : cluster.a()).Unlink("/f")));
    EXPECT_EQ(ReasonOf(cluster.a().Find("/f")), ErrorReason::kNoEntry);
    ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 10, "again")));
    auto read = cluster.a().Read(handle->handle, 0, kMiB);
    ASSERT_TRUE(Ok(read));
    EXPECT_EQ(read->substr(0, 10), content.substr(0, 10));
    EXPECT_EQ(read->substr(10, 5), "again");
    EXPECT_EQ(read->substr(15), content.substr(15, kMiB - 15));
    EXPECT_TRUE(Ok(cluster.a().Close(handle->handle)));
    EXPECT_TRUE(Eventually([&] {
      return cluster.nodes().Get(cluster.node_a).UsedBytes() +
                 cluster.nodes().Get(cluster.node_b).UsedBytes() ==
             0;
    })) << "its bytes come back";
  }
}

TEST(OpenFiles, AFileThatIsRenamedOverIsStillReadByWhoHasItOpen) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/old", Pattern(kMiB, 1))));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/new", "new")));
  auto here = cluster.a().Open("/old", O_RDONLY);
  auto there = cluster.b().Open("/old", O_RDONLY);
  ASSERT_TRUE(Ok(cluster.a().Rename("/new", "/old")));
  EXPECT_EQ(*cluster.b().ReadFile("/old"), "new");
  EXPECT_EQ(*cluster.a().Read(here->handle, 0, 2 * kMiB), Pattern(kMiB, 1));
  EXPECT_EQ(*cluster.b().Read(there->handle, 0, 2 * kMiB), Pattern(kMiB, 1));
  EXPECT_TRUE(Ok(cluster.a().Close(here->handle)));
  EXPECT_TRUE(Ok(cluster.b().Close(there->handle)));
}

TEST(Attributes, TimesThatWereSetOutliveEarlierWrites) {
  Cluster cluster;
  for (const size_t size : {size_t{10}, size_t{2 * kMiB}}) {
    ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d" + std::to_string(size))));
    const std::string path = "/d" + std::to_string(size) + "/f";
    auto handle = cluster.a().Open(path, O_CREAT | O_WRONLY);
    ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, Pattern(size, 1))));
    AttributeChanges changes;
    changes.modify_time = Time{1'000'000'000'000'000'123};
    changes.permissions = 0600;
    const FileId file = *cluster.a().Find(path);
    ASSERT_TRUE(Ok(cluster.a().fs().SetAttributes(file, changes)));
    EXPECT_EQ(cluster.a().Stat(path)->modify_time, *changes.modify_time);
    EXPECT_EQ(cluster.a().Stat(path)->size_bytes, size);
    ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
    EXPECT_EQ(cluster.b().Stat(path)->modify_time, *changes.modify_time);
    EXPECT_EQ(cluster.b().Stat(path)->permissions, 0600u);
    EXPECT_EQ(*cluster.b().ReadFile(path), Pattern(size, 1));
  }
}

TEST(Attributes, BlocksThatATruncationGaveBackAreSeenAfterTheNextSync) {
  Cluster cluster;
  auto handle = cluster.a().Open("/f", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(handle));
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, Pattern(8 * kMiB, 1))));
  ASSERT_TRUE(Ok(cluster.a().fs().Fsync(handle->handle)));
  const FileId file = *cluster.a().Find("/f");
  AttributeChanges cut;
  cut.size_bytes = kMiB;
  const auto changed = cluster.a().fs().SetAttributes(file, cut);
  ASSERT_TRUE(Ok(changed));
  EXPECT_EQ(changed->attributes_valid, Duration{0}) << "the kernel must ask again";
  EXPECT_EQ(cluster.a().fs().GetAttributes(file)->attributes_valid, Duration{0});
  ASSERT_TRUE(Ok(cluster.a().fs().Fsync(handle->handle)));
  EXPECT_LE(cluster.a().Stat("/f")->allocated_bytes, 2 * kMiB);
  EXPECT_GT(cluster.a().fs().GetAttributes(file)->attributes_valid, Duration{0});
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
}

// The page at a log's old end is zero where the new line is, so the kernel must not learn the new
// size before it has dropped that page.
TEST(Attributes, ALogsNewSizeIsToldOnceOldPagesAreGone) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "one\n")));
  const FileId file = *cluster.a().Find("/log");
  for (LocalMount* writer : {&cluster.a(), &cluster.b()}) {
    const uint64_t before = cluster.a().Stat("/log")->size_bytes;
    auto follower = cluster.a().Open("/log", O_RDONLY);
    ASSERT_EQ(follower->mode.kind, OpenMode::Kind::kCached);
    std::future<uint64_t> size;
    bool early = false;
    cluster.a().notifier().on_file = [&] {
      if (size.valid()) return;
      size = std::async(std::launch::async, [&] {
        return cluster.a().fs().GetAttributes(file)->attributes.size_bytes;
      });
      early = size.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready &&
              size.get() > before;
    };
    auto log = writer->Open("/log", O_WRONLY | O_APPEND);
    ASSERT_TRUE(Ok(writer->Write(log->handle, 0, "two\n")));
    ASSERT_TRUE(Ok(writer->Close(log->handle)));
    EXPECT_FALSE(early);
    cluster.a().notifier().on_file = nullptr;
    EXPECT_EQ(cluster.a().Stat("/log")->size_bytes, before + 4);
    ASSERT_TRUE(Ok(cluster.a().Close(follower->handle)));
  }
}

TEST(Space, AFullLocalNodeSpillsToOthers) {
  Cluster cluster(4 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  const std::string content = Pattern(10 * kMiB + 77, 3);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", content)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  EXPECT_TRUE(*cluster.a().ReadFile("/d/f") == content);
  const auto status = cluster.manager().StatusOf("/d/f");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->layout.Nodes().size(), 2u) << status->layout.reason;
}

TEST(Space, AFullStoreAnswersNoSpaceAtWriteAndKeepsWhatWasThere) {
  Cluster cluster(6 * kMiB, 6 * kMiB);
  const std::string kept = Pattern(2 * kMiB, 4);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/kept", kept)));
  EXPECT_EQ(ReasonOf(cluster.a().WriteFile("/large", Pattern(32 * kMiB, 5))),
            ErrorReason::kNoSpace);
  EXPECT_TRUE(*cluster.b().ReadFile("/kept") == kept);
  ASSERT_TRUE(Ok(cluster.a().Unlink("/large")));
  EXPECT_TRUE(Eventually([&] { return cluster.b().WriteFile("/next", kept).ok(); }));
  EXPECT_TRUE(*cluster.a().ReadFile("/next") == kept);
  // Overwriting existing bytes needs no room.
  auto handle = cluster.a().Open("/kept", O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 100, "over")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_EQ(cluster.b().ReadFile("/kept")->substr(100, 4), "over");
}

TEST(Append, EveryRecordOfTwoMountsIsThereOnce) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/log", "")));
  constexpr int kRecords = 150;
  const auto record = [](char who, int i) {
    return std::string(1, who) + std::to_string(i) + std::string(300, who) + "\n";
  };
  const auto work = [&](LocalMount& mount, char who) {
    auto handle = mount.Open("/log", O_WRONLY | O_APPEND);
    ASSERT_TRUE(Ok(handle));
    for (int i = 0; i < kRecords; ++i)
      ASSERT_TRUE(Ok(mount.Write(handle->handle, 0, record(who, i))));
    ASSERT_TRUE(Ok(mount.Close(handle->handle)));
  };
  std::thread other([&] { work(cluster.b(), 'b'); });
  work(cluster.a(), 'a');
  other.join();
  const std::string log = *cluster.a().ReadFile("/log");
  EXPECT_TRUE(log == *cluster.b().ReadFile("/log"));
  std::multiset<std::string> lines;
  size_t begin = 0;
  for (size_t end = 0; (end = log.find('\n', begin)) != log.npos; begin = end + 1)
    lines.insert(log.substr(begin, end + 1 - begin));
  EXPECT_EQ(lines.size(), 2u * kRecords);
  for (int i = 0; i < kRecords; ++i) {
    EXPECT_EQ(lines.count(record('a', i)), 1u) << i;
    EXPECT_EQ(lines.count(record('b', i)), 1u) << i;
  }
}

Lock Exclusive(uint64_t owner) { return {LockType::kExclusive, 0, UINT64_MAX, owner, 1, false}; }

TEST(Locks, AnotherMountWaitsAndIsAnsweredOnce) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "x")));
  const FileId file = *cluster.a().Find("/f");
  auto handle = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().fs().SetLock(file, Exclusive(7))));
  EXPECT_EQ(ReasonOf(cluster.b().fs().SetLock(file, Exclusive(7))), ErrorReason::kWouldBlock);
  const auto conflict = cluster.b().fs().GetLock(file, Exclusive(7));
  ASSERT_TRUE(Ok(conflict));
  EXPECT_TRUE(conflict->has_value());

  std::promise<ErrorReason> cancelled;
  const LockWaitId first = cluster.b().fs().WaitForLock(
      file, Exclusive(8), [&](Outcome<Done> o) { cancelled.set_value(ReasonOf(o)); });
  cluster.b().fs().CancelLockWait(first);
  EXPECT_EQ(cancelled.get_future().get(), ErrorReason::kInterrupted);

  std::promise<ErrorReason> granted;
  cluster.b().fs().WaitForLock(file, Exclusive(9),
                               [&](Outcome<Done> o) { granted.set_value(ReasonOf(o)); });
  auto future = granted.get_future();
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 0, "under lock")));
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle, 7)));  // Drops owner 7's locks.
  EXPECT_EQ(future.get(), ErrorReason::kNone);
  EXPECT_EQ(*cluster.b().ReadFile("/f"), "under lock");
}

TEST(Locks, ACounterUnderALockCountsEveryStep) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/counter", "0000")));
  const auto work = [](LocalMount& mount) {
    const FileId file = *mount.Find("/counter");
    auto handle = mount.Open("/counter", O_RDWR);
    ASSERT_TRUE(Ok(handle));
    for (int i = 0; i < 40; ++i) {
      std::promise<bool> granted;
      mount.fs().WaitForLock(file, Exclusive(1),
                             [&](Outcome<Done> o) { granted.set_value(o.ok()); });
      ASSERT_TRUE(granted.get_future().get());
      auto text = mount.Read(handle->handle, 0, 4);
      ASSERT_TRUE(Ok(text));
      std::string next = std::to_string(10000 + std::stoi(*text) + 1).substr(1);
      ASSERT_TRUE(Ok(mount.Write(handle->handle, 0, next)));
      Lock unlock = Exclusive(1);
      unlock.type = LockType::kUnlock;
      ASSERT_TRUE(Ok(mount.fs().SetLock(file, unlock)));
    }
    ASSERT_TRUE(Ok(mount.Close(handle->handle, 1)));
  };
  std::thread other([&] { work(cluster.b()); });
  work(cluster.a());
  other.join();
  EXPECT_EQ(*cluster.a().ReadFile("/counter"), "0080");
}

TEST(Locks, ALockEndsWithItsDescriptorThoughItsReleaseComesLate) {
  Cluster cluster;
  Filesystem& fs = cluster.a().fs();
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "x")));
  const FileId file = *cluster.a().Find("/f");
  constexpr uint64_t kProcess = 5;
  for (const bool whole_file : {false, true}) {
    const HandleId one = cluster.a().Open("/f", O_RDWR)->handle;
    const HandleId two = cluster.a().Open("/f", O_RDWR)->handle;
    Lock first = Exclusive(100);
    Lock second = Exclusive(200);
    first.whole_file = second.whole_file = whole_file;
    fs.NoteLockOwner(one, first.owner);
    ASSERT_TRUE(Ok(fs.SetLock(file, first)));
    fs.NoteLockOwner(two, second.owner);
    EXPECT_EQ(ReasonOf(fs.SetLock(file, second)), ErrorReason::kWouldBlock);
    ASSERT_TRUE(Ok(cluster.a().Flush(one, kProcess)));
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fs.Release(one, whole_file ? std::optional(first.owner) : std::nullopt);
    });
    EXPECT_TRUE(Ok(fs.SetLock(file, second)));
    late.join();
    EXPECT_TRUE(Ok(cluster.a().Close(two)));
  }
}

TEST(Locks, ALateReleaseLeavesWhatItsProcessLockedSince) {
  Cluster cluster;
  Filesystem& fs = cluster.a().fs();
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", "x")));
  const FileId file = *cluster.a().Find("/f");
  constexpr uint64_t kProcess = 5;
  const HandleId one = cluster.a().Open("/f", O_RDWR)->handle;
  const HandleId two = cluster.a().Open("/f", O_RDWR)->handle;
  fs.NoteLockOwner(one, kProcess);
  ASSERT_TRUE(Ok(fs.SetLock(file, Exclusive(kProcess))));
  ASSERT_TRUE(Ok(cluster.a().Flush(one, kProcess)));
  fs.NoteLockOwner(two, kProcess);
  ASSERT_TRUE(Ok(fs.SetLock(file, Exclusive(kProcess))));
  fs.Release(one, std::nullopt);
  EXPECT_EQ(ReasonOf(cluster.b().fs().SetLock(file, Exclusive(9))), ErrorReason::kWouldBlock);
  ASSERT_TRUE(Ok(cluster.a().Close(two, kProcess)));
  EXPECT_TRUE(Ok(cluster.b().fs().SetLock(file, Exclusive(9))));
}

TEST(Reading, AStreamFromOtherNodesIsFetchedAhead) {
  Cluster cluster;
  const std::string content = Pattern(12 * kMiB, 9);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
  cluster.nodes().FailOperation(0, 0);
  EXPECT_TRUE(*cluster.b().ReadFile("/f") == content);
  EXPECT_LT(cluster.nodes().operations(), 60u) << "of 96 reads";
}

TEST(Writing, MemoryThatIsLentIsReturnedOnceItsBytesAreStored) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.b().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.b().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", Pattern(9 * kMiB, 1))));
  const auto memory = std::make_shared<const std::string>(Pattern(8 * kMiB, 2));
  const auto written = cluster.a().Open("/d/f", O_WRONLY);
  ASSERT_TRUE(Ok(written));
  for (const uint64_t at : {uint64_t{0}, uint64_t{4096}})
    ASSERT_TRUE(Ok(cluster.a().fs().Write(written->handle, {.offset = at},
                                          std::as_bytes(std::span(*memory)), {memory, 0})));
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  EXPECT_TRUE(Eventually([&] { return memory.use_count() == 1; }));
  EXPECT_EQ(*memory, Pattern(8 * kMiB, 2));
  const std::string content = *cluster.b().ReadFile("/d/f");
  EXPECT_TRUE(content.substr(0, 4096) == memory->substr(0, 4096));
  EXPECT_TRUE(content.substr(4096, 8 * kMiB) == *memory);
  EXPECT_TRUE(content.substr(8 * kMiB + 4096) == Pattern(9 * kMiB, 1).substr(8 * kMiB + 4096));
}

// Opens a file on node a for writing; the mode tells whether the kernel writes it.
Outcome<OpenResult> OpenLocalFile(Cluster& cluster, const std::string& name) {
  if (!cluster.a().Find("/d").ok()) {
    EXPECT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
    EXPECT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  }
  return cluster.a().Open("/d/" + name, O_CREAT | O_RDWR);
}

uint64_t FreeBytes(Cluster& cluster) { return cluster.b().fs().StatFilesystem()->free_bytes; }

// Checks which reads the kernel may copy directly out of the object, as "mapped".
TEST(Reading, AnObjectOfThisHostIsMappedUnlessItHasHoles) {
  Cluster cluster;
  auto written = OpenLocalFile(cluster, "f");
  ASSERT_TRUE(Ok(written));
  const std::string content = Pattern(34 * kMiB, 3);
  ASSERT_TRUE(Ok(cluster.a().Write(written->handle, 0, content)));
  const auto read = [&](HandleId handle, uint64_t offset, size_t size) -> std::string {
    const auto result = cluster.a().fs().Read(handle, offset, size);
    if (!result.ok()) return result.failure().message;
    if (result->descriptor < 0) return "bytes";
    std::string bytes(size, '\0');
    EXPECT_EQ(pread(result->descriptor, bytes.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    if (result->mapped.empty()) return "descriptor";
    EXPECT_EQ(memcmp(result->mapped.data(), bytes.data(), size), 0);
    return "mapped";
  };
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  auto opened = cluster.a().Open("/d/f", O_RDWR | O_APPEND);
  ASSERT_TRUE(Ok(opened));
  EXPECT_EQ(read(opened->handle, 0, kMiB), "descriptor") << "not for the kernel's page cache";
  ASSERT_TRUE(Ok(cluster.a().Close(opened->handle)));
  opened = cluster.a().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(opened));
  for (const uint64_t at : {0U, 33U, 12U, 1U, 33U})
    EXPECT_EQ(read(opened->handle, at * kMiB, kMiB), "mapped") << at;
  EXPECT_EQ(read(opened->handle, 4096, 4096), "descriptor") << "not worth it";
  EXPECT_EQ(read(opened->handle, 32 * kMiB - 65536, 2 * 65536), "descriptor") << "two windows";
  cluster.a().fs().OnUnreadableMapping(opened->handle);
  EXPECT_EQ(read(opened->handle, 0, kMiB), "descriptor") << "it was cut while it was read";
  ASSERT_TRUE(Ok(cluster.a().Close(opened->handle)));

  // Reading would fill a mapped hole.
  ASSERT_TRUE(Ok(cluster.a().Truncate("/d/f", 36 * kMiB)));
  written = cluster.a().Open("/d/f", O_RDWR);
  ASSERT_TRUE(Ok(written));
  ASSERT_TRUE(Ok(cluster.a().Write(written->handle, 36 * kMiB - 8, "the last")));
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  const uint64_t allocated = cluster.a().Stat("/d/f")->allocated_bytes;
  EXPECT_LT(allocated, 35 * kMiB);
  opened = cluster.a().Open("/d/f", O_RDONLY);
  for (const uint64_t at : {0U, 34U, 35U})
    EXPECT_EQ(read(opened->handle, at * kMiB, kMiB), "descriptor") << at;
  ASSERT_TRUE(Ok(cluster.a().Close(opened->handle)));
  EXPECT_EQ(cluster.a().Stat("/d/f")->allocated_bytes, allocated);
}

TEST(Passthrough, TheKernelReadsAndWritesTheObjectItself) {
  Cluster cluster(8 * kGiB, 256 * kMiB, true);
  auto written = OpenLocalFile(cluster, "f");
  ASSERT_TRUE(Ok(written));
  ASSERT_EQ(written->mode.kind, OpenMode::Kind::kPassthrough);
  const std::string content = Pattern(kMiB, 2);
  ASSERT_EQ(pwrite(written->mode.descriptor, content.data(), content.size(), 0),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(cluster.a().fs().GetAttributes(*cluster.a().Find("/d/f"))->attributes.size_bytes, kMiB);
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/f") == content);
  auto read = cluster.a().Open("/d/f", O_RDONLY);
  ASSERT_TRUE(Ok(read));
  ASSERT_EQ(read->mode.kind, OpenMode::Kind::kPassthrough);
  std::string bytes(kMiB, '\0');
  ASSERT_EQ(pread(read->mode.descriptor, bytes.data(), kMiB, 0), static_cast<ssize_t>(kMiB));
  EXPECT_TRUE(bytes == content);
  // A second open gets another mode, and is never cached while the kernel has the object.
  auto second = cluster.a().Open("/d/f", O_RDWR | O_APPEND);
  EXPECT_EQ(second->mode.kind, OpenMode::Kind::kDirect);
  EXPECT_TRUE(Ok(cluster.a().Close(second->handle)));
  EXPECT_TRUE(Ok(cluster.a().Close(read->handle)));
}

// The answer to the cut says where the bytes go: nobody has to ask, and the kernel writes them.
TEST(Passthrough, AFileThatIsReplacedIsWrittenByTheKernelToo) {
  Cluster cluster(8 * kGiB, 256 * kMiB, true);
  auto first = OpenLocalFile(cluster, "f");
  ASSERT_TRUE(Ok(first));
  const std::string content = Pattern(kMiB, 2);
  ASSERT_EQ(pwrite(first->mode.descriptor, content.data(), kMiB, 0), static_cast<ssize_t>(kMiB));
  ASSERT_TRUE(Ok(cluster.a().Close(first->handle)));
  std::vector<std::string> sent;
  cluster.a().OnSend([&](const std::vector<Request>& requests) {
    for (const Request& request : requests) sent.emplace_back(kRequestNames[request.index()]);
  });
  auto again = cluster.a().Open("/d/f", O_WRONLY | O_TRUNC);
  ASSERT_TRUE(Ok(again));
  EXPECT_EQ(again->mode.kind, OpenMode::Kind::kPassthrough);
  ASSERT_EQ(pwrite(again->mode.descriptor, "new", 3, 0), 3);
  ASSERT_TRUE(Ok(cluster.a().Close(again->handle)));
  cluster.a().OnSend({});
  EXPECT_LE(std::ranges::count(sent, "open"), 1) << ::testing::PrintToString(sent);
  EXPECT_EQ(*cluster.b().ReadFile("/d/f"), "new");
}

TEST(Passthrough, ANodeOfLittleRoomIsWrittenByTheMountSoThatItsFilesCanSpill) {
  for (const uint64_t limit : {64 * kMiB, 512 * kMiB, kGiB, 4 * kGiB}) {
    Cluster cluster(limit, 256 * kMiB, true);
    auto written = OpenLocalFile(cluster, "f");
    ASSERT_TRUE(Ok(written));
    EXPECT_EQ(written->mode.kind == OpenMode::Kind::kPassthrough, limit == 4 * kGiB) << limit;
  }
}

TEST(Passthrough, EveryFileThatTheKernelWritesHasRoomSetAside) {
  Cluster cluster(4 * kGiB, 256 * kMiB, true);
  const uint64_t free_before = FreeBytes(cluster);
  std::vector<HandleId> open;
  for (int i = 0; i < 40; ++i) {
    auto written = OpenLocalFile(cluster, "f" + std::to_string(i));
    ASSERT_TRUE(Ok(written));
    if (written->mode.kind != OpenMode::Kind::kPassthrough) break;
    open.push_back(written->handle);
  }
  EXPECT_GE(open.size(), 8u);
  EXPECT_LE(open.size(), 12u) << "the last gibibyte stays free";
  EXPECT_LE(FreeBytes(cluster), free_before - open.size() * 256 * kMiB);
  for (const HandleId handle : open) ASSERT_TRUE(Ok(cluster.a().Close(handle)));
  EXPECT_EQ(OpenLocalFile(cluster, "again")->mode.kind, OpenMode::Kind::kPassthrough);
}

TEST(Passthrough, RoomIsHeldAheadOfAFileThatGrows) {
  Cluster cluster(4 * kGiB, 256 * kMiB, true);
  const uint64_t free_before = FreeBytes(cluster);
  auto written = OpenLocalFile(cluster, "f");
  ASSERT_TRUE(Ok(written));
  ASSERT_EQ(written->mode.kind, OpenMode::Kind::kPassthrough);
  EXPECT_EQ(fallocate(written->mode.descriptor, 0, 0, 200 * kMiB), 0);
  EXPECT_TRUE(Eventually([&] { return FreeBytes(cluster) <= free_before - 456 * kMiB; }));
  ASSERT_TRUE(Ok(cluster.a().Close(written->handle)));
}

TEST(Leases, AFrozenMountServesNothingOldOnceTheChangeElsewhereIsDone) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f", "old")));
  auto deferred = cluster.a().Open("/d/deferred", O_CREAT | O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().Write(deferred->handle, 0, "kept")));
  EXPECT_EQ(*cluster.a().ReadFile("/d/f"), "old");
  cluster.a().Freeze(true);
  EXPECT_EQ(*cluster.a().ReadFile("/d/f"), "old") << "its lease runs still";
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/f", "new")));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(12));
  auto read = std::async(std::launch::async, [&] { return cluster.a().ReadFile("/d/f"); });
  auto absent = std::async(std::launch::async, [&] { return cluster.a().Find("/d/g"); });
  EXPECT_EQ(read.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/g", "made while it slept")));
  cluster.a().Freeze(false);
  auto result = read.get();
  ASSERT_TRUE(Ok(result));
  EXPECT_EQ(*result, "new");
  absent.wait();
  ASSERT_TRUE(Ok(cluster.a().Find("/d/g")));
  // What only this mount knew is either created now, or refused with an error.
  const auto closed = cluster.a().Close(deferred->handle);
  const auto there = cluster.b().ReadFile("/d/deferred");
  EXPECT_EQ(closed.ok(), there.ok() && *there == "kept");
}

// A mount would otherwise keep the bytes of every small file that its kernel knows.
TEST(Forgotten, InlineBytesLeaveNoMemoryBehind) {
  DataAccess access;
  access.inline_data = std::string(16 << 10, 'x');
  access.generation = 7;
  const auto without = WithoutInlineBytes(access);
  EXPECT_EQ(without->generation, 7U);
  EXPECT_TRUE(without->inline_data.empty());
  EXPECT_LT(without->inline_data.capacity(), 64U);
}

// Files that were cut count by their size, and those that were not by what they hold.
TEST(Forgotten, SmallFilesTakeLittleMemoryOnceTheyAreClosed) {
  constexpr int kFiles = 6000;
  Cluster cluster;
  const std::string content(15'000, 'x');
  const auto before = static_cast<int64_t>(mallinfo2().uordblks);
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = "/f" + std::to_string(i);
    const auto made = cluster.a().Open(path, O_CREAT | O_WRONLY);
    ASSERT_TRUE(Ok(made));
    ASSERT_TRUE(Ok(cluster.a().Write(made->handle, 0, content)));
    AttributeChanges cut;
    cut.size_bytes = 1;
    ASSERT_TRUE(Ok(cluster.a().fs().SetAttributes(*cluster.a().Find(path), cut)));
    ASSERT_TRUE(Ok(cluster.a().Close(made->handle)));
  }
  // Sanitizers do not say what is in use.
  EXPECT_LT(static_cast<int64_t>(mallinfo2().uordblks) - before, kFiles * 15'000 / 2);
}

TEST(Forgotten, FilesBeyondTheLimitAreLookedUpAgain) {
  constexpr int kFiles = 300;
  Cluster cluster;
  const SystemClock clock;
  FilesystemOptions options;
  options.idle_inodes_max = 100;
  LocalMount mount(cluster.manager(), cluster.nodes(), "c", clock, false, options);
  std::atomic<int> lookups{0};
  mount.OnAnswer([&lookups](const std::vector<Request>& requests) {
    for (const Request& each : requests) {
      if (std::holds_alternative<LookupRequest>(each)) ++lookups;
    }
  });
  const auto path = [](int i) { return "/f" + std::to_string(i); };
  for (int i = 0; i < kFiles; ++i) {
    ASSERT_TRUE(Ok(cluster.a().WriteFile(path(i), path(i))));
    EXPECT_EQ(*mount.ReadFile(path(i)), path(i));
    const auto file = mount.Find(path(i));
    ASSERT_TRUE(Ok(file));
    mount.fs().Forget(*file, 1000);
  }
  // The oldest inodes are looked up again, each once, because a file that was looked up is kept.
  const int before = lookups;
  int asked = 0;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(Ok(mount.Find(path(asked++))));
    return lookups > before || asked == kFiles;
  }));
  EXPECT_GT(lookups, before);
  for (int i = 0; i < kFiles; ++i) EXPECT_EQ(*mount.ReadFile(path(i)), path(i));
}

}  // namespace
}  // namespace mosa::sai
