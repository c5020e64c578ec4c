#include "manager/store/metadata_store.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "manager/store/faulty_metadata_store.h"
#include "manager/store/run_mark.h"

namespace mosa::manager {
namespace {

using Records = std::map<std::string, std::string>;

// A directory that is removed with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mosa-store-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_ / "metadata"; }

 private:
  std::filesystem::path path_;
};

Records AllOf(MetadataStore& store, std::string_view skip_prefix = "") {
  Records records;
  std::string last;
  EXPECT_TRUE(store
                  .Load(skip_prefix,
                        [&](std::string_view key, std::string_view value) {
                          EXPECT_TRUE(last.empty() || last < key);
                          last = key;
                          records.emplace(key, value);
                          return OkStatus();
                        })
                  .ok());
  return records;
}

KvBatch Puts(const Records& records) {
  KvBatch batch;
  for (const auto& [key, value] : records) batch.Put(key, value);
  return batch;
}

std::unique_ptr<MetadataStore> Opened(const std::string& path) {
  auto store = OpenRocksStore({.path = path});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

void CheckKeepsOrderedRecords(MetadataStore& store) {
  const std::string zero("k\0z", 3);
  ASSERT_TRUE(
      store.Commit(Puts({{"a", "1"}, {"b1", "2"}, {"b2", ""}, {"c", "4"}, {zero, "5"}})).ok());
  EXPECT_EQ(AllOf(store).size(), 5U);
  EXPECT_EQ(AllOf(store, "b"), (Records{{"a", "1"}, {"c", "4"}, {zero, "5"}}));
  EXPECT_EQ(*store.Get("b2"), "");
  EXPECT_EQ(store.Get("b").status().code(), StatusCode::kNotFound);
  KvBatch batch;
  batch.Put("a", "9");
  batch.Delete("a");
  batch.Delete("absent");
  batch.Put("c", "8");
  batch.Put("c", "7");
  ASSERT_TRUE(store.Commit(batch).ok());
  EXPECT_EQ(AllOf(store), (Records{{"b1", "2"}, {"b2", ""}, {"c", "7"}, {zero, "5"}}));
  int visits = 0;
  const Status stopped = store.Load("", [&](std::string_view, std::string_view) {
    return ++visits == 2 ? DataLossError("enough") : OkStatus();
  });
  EXPECT_EQ(MessageOf(stopped), "enough");
  EXPECT_EQ(visits, 2);
}

TEST(MemoryStore, KeepsRecordsInOrderAndTheLastWriteWins) {
  CheckKeepsOrderedRecords(*NewMemoryStore());
}

TEST(RocksStore, KeepsRecordsInOrderAndTheLastWriteWins) {
  const TemporaryDirectory directory;
  CheckKeepsOrderedRecords(*Opened(directory.path()));
}

TEST(RocksStore, FindsItsRecordsWhenOpenedAgain) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Opened(directory.path())->Commit(Puts({{"x", "y"}})).ok());
  EXPECT_EQ(AllOf(*Opened(directory.path())), (Records{{"x", "y"}}));
}

// The killed process is this program started again: RocksDB's threads do not survive a fork.
TEST(RocksStore, KeepsWhatWasCommittedWhenTheProcessIsKilled) {
  constexpr const char* kVariable = "MOSA_TEST_STORE_TO_BE_KILLED";
  if (const char* path = getenv(kVariable)) {
    auto store = OpenRocksStore({.path = path});
    const bool committed = store.ok() && (*store)->Commit(Puts({{"x", "y"}})).ok();
    if (committed) raise(SIGKILL);
    _exit(1);
  }
  const TemporaryDirectory directory;
  std::string filter = "--gtest_filter=RocksStore.KeepsWhatWasCommittedWhenTheProcessIsKilled";
  std::string program = "/proc/self/exe", variable = kVariable + ("=" + directory.path());
  char* arguments[] = {program.data(), filter.data(), nullptr};
  char* environment[] = {variable.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(AllOf(*Opened(directory.path())), (Records{{"x", "y"}}));
}

TEST(RocksStore, IsRefusedWhileAnotherHasItOpen) {
  const TemporaryDirectory directory;
  const auto first = Opened(directory.path());
  const auto second = OpenRocksStore({.path = directory.path()});
  ASSERT_EQ(second.status().code(), StatusCode::kUnavailable) << second.status();
  EXPECT_NE(MessageOf(second.status()).find(directory.path()), std::string::npos);
}

void WriteRaw(const std::string& path, const std::string& key, const std::string& value) {
  rocksdb::DB* database = nullptr;
  rocksdb::Options options;
  options.create_if_missing = true;
  ASSERT_TRUE(rocksdb::DB::Open(options, path, &database).ok());
  ASSERT_TRUE(database->Put({}, key, value).ok());
  delete database;
}

TEST(RocksStore, RefusesANewerFormatAndForeignDatabases) {
  const std::string format("\0mosa.format", 12);
  const struct {
    std::string key, value;
    StatusCode expected;
  } rows[] = {{format, "3", StatusCode::kFailedPrecondition},
              {format, "x", StatusCode::kDataLoss},
              {"someone", "else's", StatusCode::kDataLoss}};
  for (const auto& row : rows) {
    const TemporaryDirectory directory;
    WriteRaw(directory.path(), row.key, row.value);
    const auto store = OpenRocksStore({.path = directory.path()});
    EXPECT_EQ(store.status().code(), row.expected) << row.value;
    EXPECT_NE(MessageOf(store.status()).find(directory.path()), std::string::npos);
  }
}

std::unique_ptr<MetadataStore> OpenedOnBoot(const TemporaryDirectory& directory,
                                            const std::string& boot_id, bool fsync) {
  auto store = OpenRocksStore({.path = directory.path(), .fsync = fsync, .boot_id = boot_id});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// The directory's state after an abrupt end of the machine or the process.
class CopyOfRunning {
 public:
  explicit CopyOfRunning(const TemporaryDirectory& directory)
      : from_(directory.path()), to_(directory.path() + ".copy") {
    std::filesystem::copy(from_, to_, std::filesystem::copy_options::recursive);
  }
  void PutBack() {
    std::filesystem::remove_all(from_);
    std::filesystem::rename(to_, from_);
  }

 private:
  std::string from_, to_;
};

TEST(RocksStore, MayHaveForgottenAfterACrashOfTheMachineWithoutSync) {
  const struct {
    bool fsync;
    bool ends;
    const char* next_boot;
    bool expected;
  } rows[] = {{false, false, "b2", true},
              {false, false, "b1", false},
              {true, false, "b2", false},
              {false, true, "b2", false},
              {true, true, "b2", false}};
  for (const auto& row : rows) {
    const TemporaryDirectory directory;
    auto store = OpenedOnBoot(directory, "b1", row.fsync);
    EXPECT_FALSE(store->may_have_forgotten());
    ASSERT_TRUE(store->Commit(Puts({{"x", "y"}})).ok());
    CopyOfRunning crashed(directory);
    store = nullptr;
    if (!row.ends) crashed.PutBack();
    EXPECT_EQ(OpenedOnBoot(directory, row.next_boot, false)->may_have_forgotten(), row.expected);
  }
}

// Records that are only in logs of an earlier run without fsync may not be on disk. A run that
// claims that everything is on disk has rewritten them.
TEST(RocksStore, WhatItBeganWithIsOnTheDiskAtItsEnd) {
  for (const bool fsync : {false, true}) {
    const TemporaryDirectory directory;
    auto store = OpenedOnBoot(directory, "b1", false);
    ASSERT_TRUE(store->Commit(Puts({{"x", "y"}})).ok());
    CopyOfRunning killed(directory);
    store = nullptr;
    killed.PutBack();
    OpenedOnBoot(directory, "b1", fsync);
    for (const auto& file : std::filesystem::directory_iterator(directory.path()))
      if (file.path().extension() == ".log") std::filesystem::resize_file(file.path(), 0);
    EXPECT_EQ(AllOf(*OpenedOnBoot(directory, "b1", false)), (Records{{"x", "y"}})) << fsync;
  }
}

TEST(RocksStore, MayHaveForgottenUntilSomethingWasDecidedAboutIt) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(OpenedOnBoot(directory, "b1", true)->Commit(Puts({{"x", "y"}})).ok());
  const std::string mark = directory.path() + "/mosa-run";
  for (const char* text : {"", "mosa-run 7\n", "\xff\xff"}) {
    std::ofstream(mark, std::ios::trunc) << text;  // Torn, of another version, or foreign.
    EXPECT_TRUE(OpenedOnBoot(directory, "b1", true)->may_have_forgotten());
  }
  std::filesystem::remove(mark);
  EXPECT_TRUE(OpenedOnBoot(directory, "b1", true)->may_have_forgotten());
  {
    const auto store = OpenedOnBoot(directory, "b1", true);
    EXPECT_TRUE(store->may_have_forgotten());
    ASSERT_TRUE(store->Commit(Puts({{"decided", "so"}})).ok());
    EXPECT_FALSE(store->may_have_forgotten());
  }
  EXPECT_FALSE(OpenedOnBoot(directory, "b2", true)->may_have_forgotten());
  EXPECT_EQ(AllOf(*OpenedOnBoot(directory, "b2", true)), (Records{{"decided", "so"}, {"x", "y"}}));
}

TEST(RunMark, IsReadBackOrNotAtAll) {
  const RunMark mark{.boot_id = "a-b", .synced = true, .ended = false, .behind = true};
  const std::string bytes = Encode(mark);
  EXPECT_EQ(ParseRunMark(bytes), mark);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ParseRunMark(bytes.substr(0, size)));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = '\x7f';
    ParseRunMark(changed);  // Must terminate, whatever the result.
  }
  EXPECT_EQ(ParseRunMark(Encode({.boot_id = std::string(1000, 'x')}))->boot_id.size(), 128U);
}

// An older program's database is read, and that program refuses it from then on.
TEST(RocksStore, RaisesTheFormatOfAnOlderDatabase) {
  const TemporaryDirectory directory;
  const std::string format("\0mosa.format", 12);
  WriteRaw(directory.path(), format, "1");
  WriteRaw(directory.path(), "x", "y");
  EXPECT_EQ(AllOf(*Opened(directory.path())), (Records{{"x", "y"}}));
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory.path(), &database).ok());
  std::string value;
  EXPECT_TRUE(database->Get({}, format, &value).ok());
  EXPECT_EQ(value, "2");
  delete database;
}

TEST(RocksStore, APathWithALockInItsNameIsNotLocked) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/clock";
  std::ofstream(file) << "no directory";
  EXPECT_EQ(OpenRocksStore({.path = file + "/store"}).status().code(), StatusCode::kInternal);
}

TEST(RocksStore, NamesADamagedDirectory) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Opened(directory.path())->Commit(Puts({{"x", "y"}})).ok());
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    if (file.path().filename().string().starts_with("MANIFEST"))
      std::ofstream(file.path(), std::ios::binary) << std::string(200, '\x55');
  }
  const auto store = OpenRocksStore({.path = directory.path()});
  EXPECT_EQ(store.status().code(), StatusCode::kDataLoss) << store.status();
  EXPECT_NE(MessageOf(store.status()).find(directory.path()), std::string::npos);
}

TEST(FaultyMetadataStore, FailsFromTheChosenOperationOn) {
  for (uint64_t fail_at = 1; fail_at <= 3; ++fail_at) {
    FaultyMetadataStore store(NewMemoryStore(), fail_at);
    EXPECT_EQ(store.Commit(Puts({{"a", "1"}})).ok(), fail_at > 1);
    EXPECT_EQ(store.Get("a").ok(), fail_at > 2);
    EXPECT_FALSE(
        store.Load("", [](std::string_view, std::string_view) { return OkStatus(); }).ok());
    EXPECT_EQ(store.operations(), 3U);
  }
  FaultyMetadataStore sound(NewMemoryStore(), 0);
  EXPECT_TRUE(sound.Commit({}).ok());
}

// ---- without descriptors

// A write opens a file only when a log or a buffer is full.
TEST(RocksStore, WithoutDescriptorsNothingIsLostAndTheSameBatchIsTakenOnceThereAreSome) {
  const TemporaryDirectory directory;
  RocksOptions options{.path = directory.path()};
  options.buffer_bytes = uint64_t{64} << 10;
  options.log_bytes = uint64_t{256} << 10;
  auto store = OpenRocksStore(options);
  ASSERT_TRUE(store.ok()) << store.status();
  Records expected;
  const auto batch_of = [&expected](int number) {
    const std::string key = "k" + std::to_string(number);
    expected[key] = std::string(10'000, static_cast<char>('a' + number % 26));
    return Puts({{key, expected[key]}});
  };
  int number = 0;
  for (; number < 10; ++number) ASSERT_TRUE((*store)->Commit(batch_of(number)).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = dup(0);
  close(lowest);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Status status;
  KvBatch refused;
  for (const int end = number + 1'000; status.ok() && number < end; ++number) {
    refused = batch_of(number);
    status = (*store)->Commit(refused);
  }
  // It stays so, even when the database must be reopened.
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ((*store)->Commit(refused).code(), StatusCode::kResourceExhausted);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_NE(MessageOf(status).find("open files"), std::string::npos) << status;
  EXPECT_TRUE((*store)->Commit(refused).ok());
  for (const int end = number + 50; number < end; ++number)
    ASSERT_TRUE((*store)->Commit(batch_of(number)).ok()) << number;
  EXPECT_EQ(AllOf(**store), expected);
  store->reset();
  EXPECT_EQ(AllOf(*Opened(directory.path())), expected);
}

}  // namespace
}  // namespace mosa::manager
