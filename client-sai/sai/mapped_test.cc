// Tests stores through mappings of an object that the kernel serves directly: no call reports them.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client-sai/sai/cluster_fixture.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/watched_files.h"
#include "nlohmann/json.hpp"

namespace mosa::sai {
namespace {

constexpr size_t kSize = 256 << 10;

// A file on mount a's node that mount b has read.
class Mapped : public ::testing::Test {
 protected:
  Mapped() : cluster_(uint64_t{8} << 30, uint64_t{8} << 30, true) {
    EXPECT_TRUE(Ok(cluster_.a().MakeDirectory("/d")));
    EXPECT_TRUE(Ok(cluster_.a().SetXattr("/d", "user.mosa.placement", "local")));
    EXPECT_TRUE(Ok(cluster_.a().WriteFile("/d/f", std::string(kSize, 'A'))));
    EXPECT_TRUE(Seen('A'));
    // The node must first hear the end of the writes; until then it cannot tell stores from them.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ~Mapped() override { Unmap(); }

  bool Seen(char letter) { return *cluster_.b().ReadFile("/d/f") == std::string(kSize, letter); }
  uint64_t Version() { return cluster_.b().Stat("/d/f")->data_version; }
  uint64_t Count(const char* name) {
    return nlohmann::json::parse(cluster_.a().fs().StatsJson())[name].get<uint64_t>();
  }
  OpenResult OpenAndMap(OpenMode::Kind kind = OpenMode::Kind::kPassthrough) {
    auto opened = cluster_.a().Open("/d/f", O_RDWR);
    EXPECT_TRUE(Ok(opened));
    EXPECT_EQ(opened->mode.kind, kind);
    bytes_ = static_cast<char*>(
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, opened->mode.descriptor, 0));
    EXPECT_NE(static_cast<void*>(bytes_), MAP_FAILED);
    // Read faults: later stores leave no trace in the object's times.
    EXPECT_EQ(std::count(bytes_, bytes_ + kSize, 'A'), static_cast<int64_t>(kSize));
    return *opened;
  }
  void Store(char letter) { memset(bytes_, letter, kSize); }
  void Unmap() {
    if (bytes_ != nullptr) munmap(std::exchange(bytes_, nullptr), kSize);
  }

  Cluster cluster_;
  char* bytes_ = nullptr;
};

TEST_F(Mapped, StoresBehindTheCloseAreSeenByOtherMounts) {
  const OpenResult opened = OpenAndMap();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  const Time before = cluster_.b().Stat("/d/f")->modify_time;
  Store('B');
  Unmap();
  EXPECT_TRUE(Eventually([&] { return Seen('B'); }));
  // The bytes may be readable before the commit that reports them.
  EXPECT_TRUE(Eventually([&] { return cluster_.b().Stat("/d/f")->modify_time > before; }));
  EXPECT_TRUE(Eventually([&] { return Count("kept") == 0; }));
}

// The node compares a large object in steps, and remembers what it has seen.
TEST_F(Mapped, AStoreIsReportedThoughAWriterAppearsBetweenTwoStepsOfALook) {
  testing::LocalNode& node = cluster_.nodes().Get(cluster_.node_a);
  const std::string object = node.PathOf(*cluster_.a().Find("/d/f"));
  UniqueFd writer;
  node.after_look = [&](LocalWrites& look) {
    if (!look.changed || writer) return;
    writer = UniqueFd(open(object.c_str(), O_RDWR | O_CLOEXEC));
    look.complete = false;
    look.next_bytes = kSize;
  };
  const OpenResult opened = OpenAndMap();
  const uint64_t version = Version();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  Store('B');
  Unmap();  // One of the first looks, which compare nothing while somebody writes, sees the store.
  EXPECT_TRUE(Eventually([&] { return Version() > version; }));
}

TEST_F(Mapped, StoresBeforeTheCloseAreSeenWhenItReturns) {
  const OpenResult opened = OpenAndMap();
  Store('B');
  Unmap();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  EXPECT_TRUE(Seen('B'));
}

TEST_F(Mapped, StoresAreSeenWhileTheMappingLivesOn) {
  const OpenResult opened = OpenAndMap();
  Store('B');
  EXPECT_TRUE(Eventually([&] { return Seen('B'); })) << "while it is open";
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  for (const char letter : {'C', 'D'}) {
    Store(letter);
    EXPECT_TRUE(Eventually([&] { return Seen(letter); })) << letter;
    EXPECT_EQ(Count("kept"), 1U);
  }
}

TEST_F(Mapped, WhoOnlyReadsChangesNothing) {
  const uint64_t version = Version();
  const Time modified = cluster_.b().Stat("/d/f")->modify_time;
  const OpenResult opened = OpenAndMap();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  Unmap();
  ASSERT_TRUE(Eventually([&] { return Count("kept") == 0; }));
  EXPECT_EQ(Version(), version);
  EXPECT_EQ(cluster_.b().Stat("/d/f")->modify_time, modified);
}

TEST_F(Mapped, ATimeThatWasSetStays) {
  const OpenResult opened = OpenAndMap();
  ASSERT_EQ(pwrite(opened.mode.descriptor, "BB", 2, 0), 2);
  Store('B');
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  AttributeChanges changes;
  changes.modify_time = Time{1'000'000'000'000'000'000};
  const FileId file = *cluster_.a().Find("/d/f");
  ASSERT_TRUE(Ok(cluster_.a().fs().SetAttributes(file, changes)));
  Unmap();
  ASSERT_TRUE(Eventually([&] { return Count("kept") == 0; }));
  EXPECT_TRUE(Seen('B'));
  EXPECT_EQ(cluster_.b().Stat("/d/f")->modify_time, *changes.modify_time);
}

TEST_F(Mapped, ALookThatFailsIsRepeatedAndFindsTheSame) {
  const OpenResult opened = OpenAndMap();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  Store('B');
  cluster_.nodes().FailOperation(1, 2, StatusCode::kUnavailable);
  Unmap();
  EXPECT_TRUE(Eventually([&] { return Seen('B'); }));
}

// A node whose process has begun anew refuses older rights.
TEST_F(Mapped, ALookWhoseRightIsRefusedHasANewOneBeforeTheCloseReturns) {
  const OpenResult opened = OpenAndMap();
  Store('B');
  Unmap();
  cluster_.nodes().FailOperation(1, 0, StatusCode::kPermissionDenied);
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  EXPECT_TRUE(Seen('B'));
}

TEST_F(Mapped, AFileWithoutBytesIsOverWithItsClose) {
  auto opened = cluster_.a().Open("/d/empty", O_CREAT | O_RDWR);
  ASSERT_EQ(opened->mode.kind, OpenMode::Kind::kPassthrough);
  ASSERT_TRUE(Ok(cluster_.a().Close(opened->handle)));
  EXPECT_EQ(Count("kept"), 0U);
  EXPECT_TRUE(Ok(cluster_.b().SetXattr("/d/empty", "user.mosa.placement", "stripe")))
      << "nobody has it open for writing";
}

TEST_F(Mapped, StoresBehindTheCloseAreCommittedWhenTheMountEnds) {
  const OpenResult opened = OpenAndMap();
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  Store('B');
  ASSERT_TRUE(cluster_.a().fs().Stop().ok());
  EXPECT_TRUE(Seen('B'));
}

// The kernel maps its backing file for every open while a reader has it.
TEST_F(Mapped, StoresThroughAnOpenThatOnlyMapsTheBackingFileAreSeen) {
  const FileId file = *cluster_.a().Find("/d/f");
  AttributeChanges changes;
  changes.permissions = 06755;  // Its writes must be seen, so it is no passthrough open.
  ASSERT_TRUE(Ok(cluster_.a().fs().SetAttributes(file, changes)));
  const auto reader = cluster_.a().Open("/d/f", O_RDONLY);
  ASSERT_EQ(reader->mode.kind, OpenMode::Kind::kPassthrough);
  const OpenResult opened = OpenAndMap(OpenMode::Kind::kDirect);
  ASSERT_TRUE(Ok(cluster_.a().Close(reader->handle)));
  Store('B');
  ASSERT_TRUE(Ok(cluster_.a().Close(opened.handle)));
  EXPECT_TRUE(Seen('B'));
  Store('C');
  Unmap();
  EXPECT_TRUE(Eventually([&] { return Seen('C'); }));
  EXPECT_TRUE(Eventually([&] { return Count("kept") == 0; }));
  EXPECT_EQ(cluster_.a().Open("/d/f", O_RDONLY)->mode.kind, OpenMode::Kind::kPassthrough);
}

// A close that waits for copies could not wait for such stores, and other nodes' copies would not
// have them.
TEST_F(Mapped, AnOpenWhoseStoresWouldNotBeSeenIsRefused) {
  for (const char* const hint : {"user.mosa.replicate", "user.mosa.ack"}) {
    ASSERT_TRUE(Ok(cluster_.a().SetXattr("/d/f", "user.mosa.replicas", "2")));
    const bool eager = std::string_view(hint) == "user.mosa.replicate";
    ASSERT_TRUE(Ok(cluster_.a().SetXattr("/d/f", hint, eager ? "eager" : "pessimistic")));
    const auto reader = cluster_.a().Open("/d/f", O_RDONLY);
    ASSERT_EQ(reader->mode.kind, OpenMode::Kind::kPassthrough);
    const auto opened = cluster_.a().Open("/d/f", O_RDWR);
    ASSERT_FALSE(opened.ok()) << hint;
    EXPECT_EQ(opened.failure().reason, ErrorReason::kBusy) << opened.failure().message;
    ASSERT_TRUE(Ok(cluster_.a().Close(reader->handle)));
    ASSERT_TRUE(Ok(cluster_.a().SetXattr("/d/f", hint, eager ? "lazy" : "optimistic")));
  }
}

// A node whose process has begun anew refuses older rights.
TEST_F(Mapped, AnOpenBesideAReaderHasANewRight) {
  const auto reader = cluster_.a().Open("/d/f", O_RDONLY);
  cluster_.nodes().FailOperation(1, 0, StatusCode::kPermissionDenied);
  const auto opened = cluster_.a().Open("/d/f", O_RDWR | O_APPEND);
  ASSERT_TRUE(Ok(opened));
  EXPECT_TRUE(opened->mode.joins && opened->mode.descriptor >= 0);
  ASSERT_TRUE(Ok(cluster_.a().Close(opened->handle)));
  ASSERT_TRUE(Ok(cluster_.a().Close(reader->handle)));
}

// A mapping that lives on keeps the object of its file in use without an open.
TEST_F(Mapped, ALaterOpenMapsTheSameObjectAsAMappingThatLivesOn) {
  const OpenResult first = OpenAndMap();
  ASSERT_TRUE(Ok(cluster_.a().Close(first.handle)));
  const auto second = cluster_.a().Open("/d/f", O_RDWR | O_APPEND);
  ASSERT_TRUE(Ok(second));
  ASSERT_TRUE(second->mode.joins);
  Store('B');
  char letter = 0;
  ASSERT_EQ(pread(second->mode.descriptor, &letter, 1, 0), 1);
  EXPECT_EQ(letter, 'B');
  // The kernel did not take it.
  cluster_.a().fs().OpenedUnbacked(second->handle);
  Unmap();
  EXPECT_TRUE(Eventually([&] { return Count("kept") == 0; }));
  EXPECT_EQ(cluster_.a().Open("/d/f", O_RDONLY)->mode.kind, OpenMode::Kind::kCached)
      << "the second one may map pages";
  ASSERT_TRUE(Ok(cluster_.a().Close(second->handle)));
}

// The kernel refuses an open that names no backing file while it has one, and one that names one
// while it maps its pages.
TEST_F(Mapped, OpensDecideForThoseThatFollow) {
  auto& a = cluster_.a();
  const auto kind = [&](const Outcome<OpenResult>& opened) { return opened->mode.kind; };
  for (const uint32_t flags : {uint32_t{O_RDWR | O_APPEND}, uint32_t{O_RDWR | O_DIRECT}}) {
    const auto first = a.Open("/d/f", flags);
    ASSERT_EQ(kind(first), OpenMode::Kind::kDirect);
    const auto reader = a.Open("/d/f", O_RDONLY);
    EXPECT_EQ(kind(reader), OpenMode::Kind::kCached) << "the first one may map pages";
    ASSERT_TRUE(Ok(a.Close(first->handle)));
    ASSERT_TRUE(Ok(a.Close(reader->handle)));
  }
  const auto first = a.Open("/d/f", O_WRONLY | O_APPEND);
  const auto reader = a.Open("/d/f", O_RDONLY);
  EXPECT_EQ(kind(reader), OpenMode::Kind::kPassthrough) << "the first one cannot map anything";
  const auto second = a.Open("/d/f", O_WRONLY | O_APPEND);
  ASSERT_TRUE(Ok(a.Close(reader->handle)));
  for (const uint32_t flags : {uint32_t{O_RDWR | O_APPEND}, uint32_t{O_RDONLY | O_DIRECT}}) {
    const auto third = a.Open("/d/f", flags);
    EXPECT_EQ(kind(third), OpenMode::Kind::kDirect) << "the second one has the backing file";
    EXPECT_TRUE(third->mode.joins && third->mode.descriptor >= 0);
    ASSERT_TRUE(Ok(a.Close(third->handle)));
  }
  ASSERT_TRUE(Ok(a.Close(first->handle)));
  ASSERT_TRUE(Ok(a.Close(second->handle)));
}

TEST_F(Mapped, SetUserIdGoesWithWhatTheKernelWritesByItself) {
  const FileId file = *cluster_.a().Find("/d/f");
  const auto set = [&](uint32_t permissions) {
    AttributeChanges changes;
    changes.permissions = permissions;
    ASSERT_TRUE(Ok(cluster_.a().fs().SetAttributes(file, changes)));
  };
  set(06755);
  auto opened = cluster_.a().Open("/d/f", O_WRONLY);
  EXPECT_NE(opened->mode.kind, OpenMode::Kind::kPassthrough) << "its writes are to be seen";
  ASSERT_TRUE(Ok(cluster_.a().Close(opened->handle)));
  set(0755);
  opened = cluster_.a().Open("/d/f", O_WRONLY);
  ASSERT_EQ(opened->mode.kind, OpenMode::Kind::kPassthrough);
  set(06755);
  const uint64_t told = cluster_.a().notifier().attributes;
  ASSERT_EQ(pwrite(opened->mode.descriptor, "BB", 2, 0), 2);
  ASSERT_TRUE(Ok(cluster_.a().Close(opened->handle)));
  EXPECT_EQ(cluster_.b().Stat("/d/f")->permissions, 0755U);
  EXPECT_EQ(cluster_.a().Stat("/d/f")->permissions, 0755U);
  EXPECT_GT(cluster_.a().notifier().attributes, told);
}

// The program is told of the loss, and other hosts read what was committed before.
TEST(Pages, OfBytesThatTheManagerHasRefusedAreNotKept) {
  Cluster cluster(0, 0);  // Nor have nodes room for them.
  const std::string committed(8192, 'A');
  const auto file = cluster.a().Open("/f", O_WRONLY | O_CREAT);
  ASSERT_TRUE(Ok(file));
  EXPECT_EQ(file->mode.kind, OpenMode::Kind::kCached);
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, committed)));
  ASSERT_TRUE(Ok(cluster.a().Flush(file->handle, 0)));
  ASSERT_TRUE(Ok(cluster.a().Write(file->handle, 0, std::string(12288, 'B'))));
  cluster.manager().RefuseGrowth("its disk is full");
  EXPECT_FALSE(cluster.a().Close(file->handle).ok());
  const auto there = cluster.b().ReadFile("/f");
  ASSERT_TRUE(Ok(there));
  EXPECT_TRUE(*there == committed);
  const auto again = cluster.a().Open("/f", O_RDONLY);
  ASSERT_TRUE(Ok(again));
  EXPECT_FALSE(again->mode.keep_cache);
  EXPECT_TRUE(*cluster.a().Read(again->handle, 0, committed.size()) == committed);
}

// What a program writes into a file that it has made or cut stays in the kernel's pages. Where
// others may be storing, writers bypass them.
TEST(Pages, KeepWhatWasWrittenByWhomMadeOrCutTheFile) {
  Cluster cluster;
  const auto keeps = [&](uint32_t flags) {
    const auto opened = cluster.a().Open("/f", flags);
    EXPECT_TRUE(Ok(opened));
    EXPECT_TRUE(Ok(cluster.a().Write(opened->handle, 0, std::string(kSize, 'B'))));
    EXPECT_TRUE(Ok(cluster.a().Close(opened->handle)));
    const auto reader = cluster.a().Open("/f", O_RDONLY);
    EXPECT_TRUE(Ok(cluster.a().Close(reader->handle)));
    EXPECT_EQ(opened->mode.kind == OpenMode::Kind::kCached, reader->mode.keep_cache);
    return opened->mode.kind == OpenMode::Kind::kCached;
  };
  EXPECT_TRUE(keeps(O_WRONLY | O_CREAT));
  EXPECT_TRUE(keeps(O_WRONLY | O_TRUNC));
  ASSERT_TRUE(Ok(cluster.b().Truncate("/f", 0)));
  EXPECT_FALSE(keeps(O_WRONLY)) << "another host may find it empty as well";
  EXPECT_FALSE(keeps(O_WRONLY | O_TRUNC | O_APPEND));
  EXPECT_FALSE(keeps(O_WRONLY | O_TRUNC | O_DIRECT));
}

// A reader that opens and closes during a direct write may leave an old page.
TEST(Pages, AreNotKeptOverAWriteThatAReaderMetOrThatTheKernelDoesNotDropThemFor) {
  for (const bool drops : {true, false}) {
    for (const bool meets : {true, false}) {
      Cluster cluster;
      cluster.a().notifier().can.drops_pages = drops;
      ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", std::string(kSize, 'A'))));
      const auto keeps = [&] {
        auto opened = cluster.a().Open("/f", O_RDONLY);
        EXPECT_EQ(opened->mode.kind, OpenMode::Kind::kCached);
        EXPECT_TRUE(Ok(cluster.a().Close(opened->handle)));
        return opened->mode.keep_cache;
      };
      keeps();
      ASSERT_TRUE(keeps()) << "nothing was written";
      auto writer = cluster.a().Open("/f", O_WRONLY | O_APPEND);
      ASSERT_EQ(writer->mode.kind, OpenMode::Kind::kDirect);
      std::atomic<bool> armed = meets;
      cluster.a().OnAnswer([&](const std::vector<Request>&) {
        if (armed.exchange(false)) std::thread([&] { keeps(); }).join();
      });
      ASSERT_TRUE(Ok(cluster.a().Write(writer->handle, 0, "BB")));
      cluster.a().OnAnswer(nullptr);
      ASSERT_TRUE(Ok(cluster.a().Close(writer->handle)));
      EXPECT_EQ(keeps(), drops && !meets) << drops << meets;
    }
  }
}

TEST(WatchedFiles, KeepsOneHandleOfAFileAndLooksAtTheNextThatIsDue) {
  SystemClock clock;
  WatchedFiles watched(clock);
  const auto inode = [](uint64_t id) { return std::make_shared<Inode>(FileId{id}); };
  const auto handle = std::make_shared<OpenFile>();
  watched.Watch(FileId{1}, inode(1), clock.Monotonic() + Seconds(100));
  watched.Watch(FileId{2}, inode(2), clock.Monotonic() + Milliseconds(20));
  auto due = watched.AwaitDue();
  EXPECT_EQ(due->file, FileId{2});
  EXPECT_FALSE(due->keeps);
  EXPECT_EQ(watched.Keep(FileId{2}, inode(2), handle), WatchedFiles::Keeping::kKept);
  EXPECT_EQ(watched.Keep(FileId{2}, inode(2), std::make_shared<OpenFile>()),
            WatchedFiles::Keeping::kOneIsKept);
  EXPECT_EQ(watched.Finish(FileId{2}), nullptr) << "it came after the look had begun";
  EXPECT_EQ(watched.kept(), 1U);
  due = watched.AwaitDue();
  EXPECT_TRUE(due->keeps);
  EXPECT_EQ(watched.Finish(FileId{2}), handle);
  EXPECT_EQ(watched.Keep(FileId{1}, inode(1), handle), WatchedFiles::Keeping::kKept);
  EXPECT_EQ(watched.AwaitDue()->file, FileId{1}) << "what is kept is due at once";
  watched.Stop();
  EXPECT_FALSE(watched.AwaitDue());
}

TEST(WatchedFiles, RefusesMoreThanItsLimit) {
  SystemClock clock;
  WatchedFiles watched(clock);
  const auto handle = std::make_shared<OpenFile>();
  const auto inode = std::make_shared<Inode>(FileId{1});
  for (uint64_t id = 1; id <= WatchedFiles::kFilesMax; ++id)
    ASSERT_EQ(watched.Keep(FileId{id}, inode, handle), WatchedFiles::Keeping::kKept);
  EXPECT_EQ(watched.Keep(FileId{1u << 20}, inode, handle), WatchedFiles::Keeping::kTooMany);
  watched.Watch(FileId{1u << 20}, inode, Time{});
  EXPECT_EQ(watched.kept(), WatchedFiles::kFilesMax);
}

}  // namespace
}  // namespace mosa::sai
