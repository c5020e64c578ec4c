// Objects of a storage node after its process, or its machine, ended without a word.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/model/checksum_blocks.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/store/faulty_object_store.h"
#include "tests/support/test_node.h"

namespace mosa::node {
namespace {

constexpr FileId kFile{42};
const Changer kWriter = Changer::OfLayout(1);
constexpr size_t kBytes = 5 * kChecksumBlockBytes + 100;

// Says when bytes are read, and when an object has come back from aside.
class WatchedStore final : public FaultyObjectStore {
 public:
  struct Watches {
    std::function<void()> read, restored;
  };
  WatchedStore(std::unique_ptr<ObjectStore> inner, const Watches& watches)
      : FaultyObjectStore(std::move(inner), InternalError("none fails here")), watches_(watches) {}
  Result<size_t> Read(int fd, uint64_t offset, std::span<std::byte> out) override {
    if (watches_.read) watches_.read();
    return FaultyObjectStore::Read(fd, offset, out);
  }
  Status RestoreAside(FileId file) override {
    const Status restored = FaultyObjectStore::RestoreAside(file);
    if (watches_.restored) watches_.restored();
    return restored;
  }

 private:
  const Watches& watches_;
};

class NodeCrash : public ::testing::Test {
 protected:
  // The node starts on a boot of that name.
  void Start(const std::string& boot_id) {
    engine_ = nullptr;
    auto store = OpenDirectoryStore(
        {.path = directory_.path() + "/o", .node_name = "n1", .boot_id = boot_id});
    ASSERT_TRUE(store.ok()) << store.status();
    auto engine = ObjectEngine::Open(std::make_unique<WatchedStore>(*std::move(store), watches_),
                                     uint64_t{1} << 30, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void Write(FileId file, uint64_t offset, const std::string& text) {
    auto writer = engine_->BeginWrite(file, kWriter, offset, text.size());
    ASSERT_TRUE(writer.ok()) << writer.status();
    const auto bytes = std::as_bytes(std::span(text));
    const auto crcs = BlockChecksums(offset, bytes);
    ASSERT_TRUE(writer->WritePiece(offset, bytes, crcs).ok());
  }
  // Time passes: everything is sealed, recorded and compared.
  void Settle() {
    for (int i = 0; i < 5; ++i) {
      engine_->Account();
      clock_.Advance(Seconds(10));
      while (engine_->SealNext(scratch_)) {
      }
    }
  }
  Status Read(FileId file, uint64_t offset = 0, uint64_t length = kBytes) {
    auto plan = engine_->PlanRead(
        {.file = file, .offset_bytes = offset, .length_bytes = length, .verify = false}, scratch_);
    if (!plan.ok()) return plan.status();
    // As the reader compares what comes with the checksums.
    std::vector<std::byte> bytes(plan->length_bytes);
    std::span<const std::byte> got =
        plan->buffer.bytes().first(plan->fd ? 0 : static_cast<size_t>(plan->length_bytes));
    if (plan->fd) {
      EXPECT_EQ(::pread(plan->fd.get(), bytes.data(), bytes.size(),
                        static_cast<off_t>(plan->offset_bytes)),
                static_cast<ssize_t>(bytes.size()));
      got = bytes;
    }
    if (BlockChecksums(plan->offset_bytes, got) != plan->crcs) return DataLossError("mismatch");
    return OkStatus();
  }
  std::string ObjectPath(FileId file) const {
    const std::string name = fmt::format("{:016x}", file.value);
    for (const char* const place : {"/o/objects", "/o/lost+found"})
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(directory_.path() + place))
        if (entry.path().filename() == name) return entry.path();
    return "";
  }
  void Damage(FileId file, int64_t offset) {
    std::fstream object(ObjectPath(file), std::ios::in | std::ios::out | std::ios::binary);
    object.seekp(offset);
    object << "XXXX";
  }
  std::vector<FileId> Corrupt() {
    engine_->RepeatReports();
    return engine_->TakeHeartbeat().corrupt_objects;
  }

  WatchedStore::Watches watches_;
  testing::TemporaryDirectory directory_;
  ManualClock clock_{Time{1}};
  std::unique_ptr<ObjectEngine> engine_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(1 << 20);
};

TEST_F(NodeCrash, ChecksumsOutliveTheProcess) {
  Start("b1");
  Write(kFile, 0, std::string(kBytes, 'a'));
  Settle();
  Start("b1");
  Damage(kFile, 70'000);
  EXPECT_EQ(Read(kFile).code(), StatusCode::kDataLoss);
  Settle();
  while (engine_->ScrubNext(scratch_) > 0) {
  }
  EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
}

TEST_F(NodeCrash, WhatChangedBeforeTheEndIsNotTakenForDamage) {
  Start("b1");
  for (uint64_t i = 0; i < 4; ++i) Write(FileId{i}, 0, std::string(kBytes, 'a'));
  Settle();
  Write(FileId{0}, 10, "changed");
  ASSERT_TRUE(engine_->Truncate(FileId{1}, kWriter, 1000).ok());
  const FileId dropped[] = {FileId{2}};
  engine_->Drop(dropped);
  Write(FileId{2}, 0, std::string(3000, 'b'));
  Write(FileId{3}, kBytes, "tail");
  Start("b1");
  EXPECT_TRUE(Corrupt().empty());
  Settle();
  while (engine_->ScrubNext(scratch_) > 0) {
  }
  EXPECT_TRUE(Corrupt().empty());
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(Read(FileId{i}).ok()) << i;
}

TEST_F(NodeCrash, ATruncatedObjectIsDamagedAndNeverReadAsZeroes) {
  for (const char* boot : {"b1", "b2"}) {
    Start("b1");
    Write(kFile, 0, std::string(kBytes, 'a'));
    Settle();
    engine_ = nullptr;
    std::filesystem::resize_file(ObjectPath(kFile), 70'000);
    for (int starts = 0; starts < 2; ++starts) {
      Start(boot);
      EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
      EXPECT_TRUE(Read(kFile, 0, 1000).ok());
      EXPECT_EQ(Read(kFile, 70'000, 1000).code(), StatusCode::kDataLoss);
      EXPECT_EQ(Read(kFile, 4 * kChecksumBlockBytes, 1000).code(), StatusCode::kDataLoss);
      EXPECT_EQ(engine_->local().OpenToRead(kFile).status().code(), StatusCode::kDataLoss);
    }
    engine_ = nullptr;
    std::filesystem::remove_all(directory_.path() + "/o");
  }
}

TEST_F(NodeCrash, AfterAnotherBootBytesAreComparedBeforeTheyAreServed) {
  Start("b1");
  for (uint64_t i = 0; i < 3; ++i) Write(FileId{i}, 0, std::string(kBytes, 'a'));
  Settle();
  engine_ = nullptr;
  Damage(FileId{0}, 70'000);
  Damage(FileId{1}, 70'000);
  Start("b2");
  EXPECT_EQ(Read(FileId{0}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(engine_->local().OpenToRead(FileId{1}).status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Read(FileId{2}).ok());
  // Killed before all was compared: the next process goes on.
  Start("b2");
  Settle();
  EXPECT_EQ(Corrupt(), (std::vector<FileId>{FileId{0}, FileId{1}}));
  EXPECT_FALSE(engine_->store().record().verifying);
  Start("b2");
  EXPECT_TRUE(Read(FileId{2}).ok());
}

TEST_F(NodeCrash, AfterAnotherBootWhatWasNotRecordedIsDamageUntilItIsWrittenAnew) {
  Start("b1");
  Write(FileId{1}, 0, std::string(kBytes, 'a'));
  Settle();
  Write(kFile, 0, std::string(kBytes, 'a'));  // The crash comes before it is recorded.
  Start("b2");
  EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
  EXPECT_EQ(Read(kFile).code(), StatusCode::kDataLoss);
  Write(FileId{7}, 0, std::string(kBytes, 'b'));
  Start("b2");
  EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
  EXPECT_TRUE(Read(FileId{7}).ok());
  Settle();
  Write(kFile, 0, std::string(kBytes, 'c'));
  Settle();
  EXPECT_TRUE(Corrupt().empty());
  Start("b2");
  EXPECT_TRUE(Corrupt().empty());
  EXPECT_TRUE(Read(kFile).ok());
}

TEST_F(NodeCrash, AnOrderlyEndIsNoCrash) {
  Start("b1");
  Write(FileId{1}, 0, std::string(kBytes, 'a'));
  Settle();
  Write(kFile, 0, std::string(kBytes, 'a'));
  engine_->End();
  Start("b2");
  EXPECT_TRUE(Corrupt().empty());
  EXPECT_TRUE(Read(kFile).ok());
}

TEST_F(NodeCrash, ADirectoryFromBeforeThereWereRecordsIsTakenAsItIs) {
  Start("b1");
  Write(kFile, 0, std::string(kBytes, 'a'));
  engine_ = nullptr;
  std::filesystem::remove_all(directory_.path() + "/o/sums");
  Start("b2");
  EXPECT_TRUE(Corrupt().empty());
  EXPECT_TRUE(Read(kFile).ok());
}

TEST_F(NodeCrash, WhatIsPutAsideStaysChargedAndComesBack) {
  Start("b1");
  Write(kFile, kChecksumBlockBytes, std::string(kBytes, 'a'));
  Settle();
  const uint64_t used = engine_->used_bytes();
  engine_->aside().Obey({AsideAction::kSetAside, {kFile, FileId{5}}});
  EXPECT_EQ(engine_->used_bytes(), used);
  EXPECT_TRUE(engine_->ListObjects().empty());
  ASSERT_EQ(engine_->aside().List().size(), 1U);
  EXPECT_EQ(engine_->aside().List()[0].size_bytes, kChecksumBlockBytes + kBytes);
  EXPECT_EQ(engine_->aside().List()[0].data.front().begin, kChecksumBlockBytes);
  Start("b1");
  EXPECT_EQ(engine_->used_bytes(), used);
  ASSERT_EQ(engine_->aside().List().size(), 1U);
  engine_->aside().Obey({AsideAction::kRestore, {kFile}});
  EXPECT_EQ(engine_->used_bytes(), used);
  EXPECT_TRUE(engine_->aside().List().empty());
  EXPECT_TRUE(Read(kFile, kChecksumBlockBytes).ok());
  engine_->aside().Obey({AsideAction::kSetAside, {kFile}});
  engine_->aside().Obey({AsideAction::kDiscard, {kFile}});
  EXPECT_EQ(engine_->used_bytes(), 0U);
}

TEST_F(NodeCrash, WhatIsWrittenRightAfterTheStartIsNoDamage) {
  Start("b1");
  Write(kFile, 0, std::string(kBytes, 'a'));
  Settle();
  Start("b1");
  Write(kFile, 70'000, "changed");
  EXPECT_TRUE(Read(kFile).ok());
  Settle();
  while (engine_->ScrubNext(scratch_) > 0) {
  }
  EXPECT_TRUE(Corrupt().empty());
  EXPECT_TRUE(Read(kFile).ok());
}

TEST_F(NodeCrash, ALaterLayoutIsRememberedForAsLongAsTheObject) {
  Start("b1");
  const auto write = [&](uint64_t generation) {
    return engine_->BeginWrite(kFile, Changer::OfLayout(generation), 0, 10).status().code();
  };
  EXPECT_EQ(write(4), StatusCode::kOk);
  for (const bool settles : {false, true}) {
    if (settles) Settle();
    Start("b1");
    EXPECT_EQ(write(3), StatusCode::kAborted);
  }
  engine_->aside().Obey({AsideAction::kSetAside, {kFile}});
  Start("b1");
  engine_->aside().Obey({AsideAction::kRestore, {kFile}});
  EXPECT_EQ(write(3), StatusCode::kAborted);
  Start("b1");
  EXPECT_EQ(write(3), StatusCode::kAborted);
  EXPECT_EQ(write(5), StatusCode::kOk);
  const FileId dropped[] = {kFile};
  engine_->Drop(dropped);
  Start("b1");
  EXPECT_EQ(write(1), StatusCode::kOk) << "the layouts of another object";
}

TEST_F(NodeCrash, DamageIsNotForgottenWhileAnObjectIsAside) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    Start("b1");
    Write(kFile, 0, std::string(kBytes, 'a'));
    Settle();
    Damage(kFile, 70'000);
    while (engine_->ScrubNext(scratch_) > 0) {
    }
    ASSERT_EQ(Corrupt(), std::vector<FileId>{kFile});
    engine_->aside().Obey({AsideAction::kSetAside, {kFile}});
    EXPECT_TRUE(Corrupt().empty());
    if (restarts) Start("b1");
    if (restarts) Start("b1");
    engine_->aside().Obey({AsideAction::kRestore, {kFile}});
    Settle();
    EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
    EXPECT_EQ(Read(kFile, 70'000, 100).code(), StatusCode::kDataLoss);
    const FileId dropped[] = {kFile};
    engine_->Drop(dropped);
  }
}

TEST_F(NodeCrash, ChecksumsVouchForAnObjectThatWasAside) {
  Start("b1");
  for (const FileId file : {kFile, FileId{7}}) Write(file, 0, std::string(kBytes, 'a'));
  Settle();
  engine_->aside().Obey({AsideAction::kSetAside, {kFile, FileId{7}}});
  Damage(kFile, 70'000);
  Start("b2");
  engine_->aside().Obey({AsideAction::kRestore, {kFile, FileId{7}}});
  EXPECT_EQ(Read(kFile).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Read(FileId{7}).ok());
  Settle();
  EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
  Start("b2");
  while (engine_->ScrubNext(scratch_) > 0) {
  }
  EXPECT_EQ(Corrupt(), std::vector<FileId>{kFile});
}

TEST_F(NodeCrash, WhoMakesAnObjectThatIsBeingRestoredWritesIntoIt) {
  Start("b1");
  Write(kFile, 0, std::string(kBytes, 'a'));
  Settle();
  const uint64_t used = engine_->used_bytes();
  engine_->aside().Obey({AsideAction::kSetAside, {kFile}});
  std::thread writer;
  watches_.restored = [&] {
    writer = std::thread([&] { Write(kFile, 10, "written"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  engine_->aside().Obey({AsideAction::kRestore, {kFile}});
  writer.join();
  EXPECT_EQ(engine_->used_bytes(), used);
  for (int i = 0; i < 2; ++i, Settle()) {
    EXPECT_EQ(Read(kFile), OkStatus());
    EXPECT_EQ(engine_->Describe(kFile)->stat.size_bytes, kBytes);
    auto plan = engine_->PlanRead({.file = kFile, .length_bytes = kBytes}, scratch_);
    EXPECT_EQ(plan.ok() ? plan->length_bytes : 0, kBytes);
  }
  EXPECT_TRUE(Corrupt().empty());
}

TEST_F(NodeCrash, RecordsOfDamageEndWithTheDamage) {
  Start("b1");
  for (const FileId file : {FileId{1}, kFile}) {
    Write(file, 0, std::string(kBytes, 'a'));
    Settle();
    Damage(file, 70'000);
  }
  while (engine_->ScrubNext(scratch_) > 0) {
  }
  Start("b1");
  engine_->Account();
  for (const FileId file : {FileId{1}, kFile}) {
    while (engine_->ScrubNext(scratch_) > 0) {
    }
    Write(file, 0, "changed");  // From now on, damage is what is recorded.
  }
  ASSERT_EQ(Corrupt(), (std::vector<FileId>{FileId{1}, kFile}));
  const FileId dropped[] = {FileId{1}};
  engine_->Drop(dropped);
  Write(FileId{1}, 0, std::string(kBytes, 'b'));
  Write(kFile, 0, std::string(kBytes, 'b'));
  Start("b1");
  EXPECT_TRUE(Corrupt().empty());
  EXPECT_TRUE(Read(FileId{1}).ok());
  EXPECT_TRUE(Read(kFile).ok());
}

// Gigabytes are compared before the first change; what needs the object meanwhile does not wait.
TEST_F(NodeCrash, AnObjectIsComparedInPiecesBeforeItChanges) {
  constexpr size_t kLargeBytes = 1000 * kChecksumBlockBytes;
  for (const bool writes : {true, false}) {
    SCOPED_TRACE(writes);
    Start("b1");
    Write(kFile, 0, std::string(kLargeBytes, 'a'));
    Settle();
    Start("b2");
    int reads = 0, reads_before_answer = 0;
    std::atomic<bool> answered{false};
    std::thread asker;
    watches_.read = [&] {
      if (++reads == 1) {
        asker = std::thread([&] {
          EXPECT_TRUE(engine_->Describe(kFile).ok());
          answered = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // It waits for the object.
      }
      if (!answered) reads_before_answer = reads;
    };
    if (writes) {
      Write(kFile, 10, "changed");
    } else {
      EXPECT_TRUE(engine_->local().OpenToRead(kFile).ok());
    }
    watches_.read = nullptr;
    asker.join();
    EXPECT_GE(reads, 1000);
    EXPECT_LT(reads_before_answer, 900);
    engine_ = nullptr;
    std::filesystem::remove_all(directory_.path() + "/o");
  }
}

}  // namespace
}  // namespace mosa::node
