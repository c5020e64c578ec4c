// Tests what programs see of real mounts of a real cluster, with passthrough and without.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/rng.h"
#include "common/base/unique_fd.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/support/process_cluster.h"

namespace mosa::sai {
namespace {

namespace fs = std::filesystem;
using mosa::testing::DaemonProcess;
using mosa::testing::ProcessCluster;
using mosa::testing::ProcessClusterOptions;

std::string RandomBytes(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.Next());
  return bytes;
}

std::string WriteFile(const fs::path& path, const std::string& bytes, int flags = 0) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | flags, 0644));
  if (!file) return strerror(errno);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        write(file.get(), bytes.data() + done, std::min<size_t>(bytes.size() - done, 1 << 20));
    if (n < 0) return strerror(errno);
    done += static_cast<size_t>(n);
  }
  return "";
}

std::string ReadFile(const fs::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY));
  if (!file) return std::string("cannot open: ") + strerror(errno);
  std::string bytes;
  std::string part(1 << 20, '\0');
  for (;;) {
    const ssize_t n = read(file.get(), part.data(), part.size());
    if (n < 0) return std::string("cannot read: ") + strerror(errno);
    if (n == 0) return bytes;
    bytes.append(part, 0, static_cast<size_t>(n));
  }
}

// Returns "ok", or the errno's name.
std::string Answer(int result) { return result >= 0 ? "ok" : strerrorname_np(errno); }

std::string GetXattr(const fs::path& path, const char* name) {
  std::string value(65536, '\0');
  const ssize_t n = getxattr(path.c_str(), name, value.data(), value.size());
  if (n < 0) return strerrorname_np(errno);
  value.resize(static_cast<size_t>(n));
  return value;
}

nlohmann::json MountStats(const fs::path& mount) {
  return nlohmann::json::parse(GetXattr(mount, "user.mosa.mount"), nullptr, false);
}

class MountTest : public ::testing::TestWithParam<bool> {
 protected:
  static void TearDownTestSuite() { clusters_.clear(); }

  void SetUp() override {
    if (const std::string reason = ProcessCluster::WhyNot(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    std::unique_ptr<ProcessCluster>& cluster = clusters_[GetParam()];
    if (!cluster) {
      ProcessClusterOptions options;
      // A test changes an object behind the store's back, which a scrubber would report as corrupt.
      options.node_flags = {"--scrub-rate", "0"};
      if (!GetParam()) options.mount_flags = {"--no-passthrough"};
      auto started = ProcessCluster::Start(options);
      ASSERT_TRUE(started.ok()) << MessageOf(started.status());
      cluster = *std::move(started);
    }
    cluster_ = cluster.get();
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    directory_ = name.substr(0, name.find('/'));
    ASSERT_TRUE(fs::create_directory(cluster_->mount(0) / directory_));
    a_ = cluster_->mount(0) / directory_;
    b_ = cluster_->mount(1) / directory_;
  }
  void TearDown() override {
    if (HasFailure() && cluster_ != nullptr) GTEST_LOG_(ERROR) << cluster_->LogText();
  }

  ProcessCluster* cluster_ = nullptr;
  std::string directory_;
  fs::path a_;  // The test's directory on mount 0,
  fs::path b_;  // and on mount 1.

 private:
  static std::map<bool, std::unique_ptr<ProcessCluster>> clusters_;
};
std::map<bool, std::unique_ptr<ProcessCluster>> MountTest::clusters_;

INSTANTIATE_TEST_SUITE_P(Passthrough, MountTest, ::testing::Values(true, false),
                         [](const auto& row) { return row.param ? "On" : "Off"; });

TEST_P(MountTest, BytesOfEverySizeAreReadOnBothMounts) {
  for (const size_t size : {0UL, 1UL, 4096UL, 16384UL, 16385UL, 1048576UL, 5000001UL, 20000000UL}) {
    const std::string bytes = RandomBytes(size, size);
    const std::string name = fmt::format("f{}", size);
    ASSERT_EQ(WriteFile(a_ / name, bytes), "");
    EXPECT_EQ(fs::file_size(b_ / name), size);
    EXPECT_TRUE(ReadFile(b_ / name) == bytes) << size;
    EXPECT_TRUE(ReadFile(a_ / name) == bytes) << size;
  }
}

TEST_P(MountTest, LocalFilesAreRewrittenInPlaceAndSeenElsewhere) {
  ASSERT_EQ(Answer(setxattr(a_.c_str(), "user.mosa.placement", "local", 5, 0)), "ok");
  std::string bytes = RandomBytes(3'000'000, 1);
  ASSERT_EQ(WriteFile(a_ / "f", bytes), "");
  for (int round = 0; round < 10; ++round) {
    const UniqueFd file(open((a_ / "f").c_str(), O_RDWR));
    const std::string patch = RandomBytes(10'000, static_cast<uint64_t>(round) + 100);
    const size_t at = static_cast<size_t>(round) * 290'001;
    ASSERT_EQ(pwrite(file.get(), patch.data(), patch.size(), static_cast<off_t>(at)), 10'000);
    bytes.replace(at, patch.size(), patch);
    struct stat status {};
    ASSERT_EQ(fstat(file.get(), &status), 0);
    EXPECT_EQ(status.st_size, 3'000'000);
    ASSERT_EQ(close(UniqueFd(dup(file.get())).release()), 0);
    EXPECT_TRUE(ReadFile(b_ / "f") == bytes) << round;
  }
  EXPECT_TRUE(ReadFile(a_ / "f") == bytes);
}

TEST_P(MountTest, SaysWhetherTheKernelReadsByItself) {
  const nlohmann::json ready = cluster_->mount_ready(0);
  ASSERT_EQ(Answer(setxattr(a_.c_str(), "user.mosa.placement", "local", 5, 0)), "ok");
  ASSERT_EQ(WriteFile(a_ / "f", RandomBytes(2'000'000, 3)), "");
  const UniqueFd file(open((a_ / "f").c_str(), O_RDONLY));
  ASSERT_TRUE(file);
  const nlohmann::json stats = MountStats(cluster_->mount(0))["fuse"];
  EXPECT_EQ(stats["passthrough"], ready["passthrough"]);
  if (GetParam()) {
    if (!ready["passthrough"].get<bool>()) GTEST_SKIP() << ready["passthrough_reason"];
    EXPECT_EQ(stats["backing_files"], 1) << stats;
  } else {
    EXPECT_EQ(ready["passthrough"], false);
    EXPECT_EQ(stats["passthrough_reason"], "switched off by --no-passthrough");
    EXPECT_EQ(stats["backing_files"], 0) << stats;
  }
}

TEST_P(MountTest, NamesChangeOnBothMountsAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const std::string x = fmt::format("x{}", round);
    const std::string y = fmt::format("y{}", round);
    EXPECT_FALSE(fs::exists(b_ / x));  // Cached as absent from here on.
    ASSERT_EQ(WriteFile(a_ / x, "one"), "");
    EXPECT_EQ(ReadFile(b_ / x), "one");
    fs::rename(b_ / x, b_ / y);
    EXPECT_FALSE(fs::exists(a_ / x));
    EXPECT_EQ(ReadFile(a_ / y), "one");
    ASSERT_EQ(WriteFile(b_ / y, "second"), "");
    EXPECT_EQ(fs::file_size(a_ / y), 6U);
    EXPECT_EQ(ReadFile(a_ / y), "second");
    ASSERT_EQ(unlink((a_ / y).c_str()), 0);
    EXPECT_EQ(Answer(unlink((b_ / y).c_str())), "ENOENT");
    fs::create_directory(a_ / x);
    EXPECT_TRUE(fs::is_directory(b_ / x));
    fs::create_directory(b_ / x / "inner");
    EXPECT_EQ(Answer(rmdir((a_ / x).c_str())), "ENOTEMPTY");
    fs::remove(a_ / x / "inner");
    fs::remove(b_ / x);
    EXPECT_FALSE(fs::exists(a_ / x));
  }
}

TEST_P(MountTest, BothMountsMakeFilesInOneDirectoryAtOnce) {
  constexpr int kFiles = 200;
  const auto make = [](const fs::path& where, char letter) {
    for (int i = 0; i < kFiles; ++i) {
      EXPECT_EQ(WriteFile(where / fmt::format("{}{}", letter, i), "bytes"), "");
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] { make(b_, 'b'); });
  make(a_, 'a');
  other.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 15) << "mounts wait for each other's leases";
  for (const fs::path& mount : {a_, b_}) {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(mount)) ++count;
    EXPECT_EQ(count, 2U * kFiles);
  }
}

TEST_P(MountTest, ListsTenThousandNamesEachOnce) {
  for (int i = 0; i < 10'000; ++i) {
    const UniqueFd file(
        open((a_ / fmt::format("name-{:05}", i)).c_str(), O_CREAT | O_WRONLY, 0644));
    ASSERT_TRUE(file) << i << strerror(errno);
  }
  for (const fs::path& mount : {a_, b_}) {
    std::set<std::string> names;
    DIR* const directory = opendir(mount.c_str());
    ASSERT_NE(directory, nullptr);
    while (const dirent* entry = readdir(directory)) {
      EXPECT_TRUE(names.insert(entry->d_name).second) << entry->d_name;
    }
    closedir(directory);
    EXPECT_EQ(names.size(), 10'002U);
    EXPECT_TRUE(names.contains("name-09999"));
  }
}

TEST_P(MountTest, ExtendedAttributesOfUsersAreKept) {
  ASSERT_EQ(WriteFile(a_ / "f", "x"), "");
  const fs::path f = a_ / "f";
  EXPECT_EQ(Answer(setxattr(f.c_str(), "user.color", "blue", 4, XATTR_CREATE)), "ok");
  EXPECT_EQ(Answer(setxattr(f.c_str(), "user.color", "red", 3, XATTR_CREATE)), "EEXIST");
  EXPECT_EQ(Answer(setxattr(f.c_str(), "user.none", "red", 3, XATTR_REPLACE)), "ENODATA");
  EXPECT_EQ(GetXattr(b_ / "f", "user.color"), "blue");
  char small[2];
  EXPECT_EQ(Answer(static_cast<int>(getxattr(f.c_str(), "user.color", small, 2))), "ERANGE");
  char list[100];
  ASSERT_EQ(listxattr((b_ / "f").c_str(), list, sizeof(list)), 11);
  EXPECT_STREQ(list, "user.color");
  EXPECT_EQ(Answer(removexattr((b_ / "f").c_str(), "user.color")), "ok");
  EXPECT_EQ(GetXattr(f, "user.color"), "ENODATA");
  EXPECT_EQ(GetXattr(f, "security.selinux"), "EOPNOTSUPP");
  EXPECT_EQ(Answer(setxattr(f.c_str(), "user.mosa.nonsense", "1", 1, 0)), "EINVAL");
}

TEST_P(MountTest, SharedMappingsReachTheFile) {
  const std::string bytes = RandomBytes(300'000, 9);
  ASSERT_EQ(WriteFile(a_ / "f", bytes), "");
  {
    const UniqueFd file(open((a_ / "f").c_str(), O_RDWR));
    void* const memory = mmap(nullptr, 300'000, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    ASSERT_NE(memory, MAP_FAILED) << strerror(errno);
    EXPECT_EQ(memcmp(memory, bytes.data(), bytes.size()), 0);
    memcpy(static_cast<char*>(memory) + 123'456, "mapped", 6);
    EXPECT_EQ(msync(memory, 300'000, MS_SYNC), 0);
    EXPECT_EQ(munmap(memory, 300'000), 0);
  }
  std::string expected = bytes;
  expected.replace(123'456, 6, "mapped");
  EXPECT_TRUE(ReadFile(b_ / "f") == expected);
  EXPECT_TRUE(ReadFile(a_ / "f") == expected);
}

TEST_P(MountTest, ProgramsRunAndCannotBeWrittenMeanwhile) {
  fs::copy_file("/bin/sleep", a_ / "sleep");
  fs::permissions(a_ / "sleep", fs::perms::owner_all);
  for (const fs::path& mount : {a_, b_}) {
    const std::string program = mount / "sleep";
    const pid_t pid = fork();
    if (pid == 0) {
      execl(program.c_str(), "sleep", "0.5", nullptr);
      _exit(errno);
    }
    usleep(200'000);
    EXPECT_EQ(Answer(open(program.c_str(), O_WRONLY)), "ETXTBSY");
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

// Pages that a kernel holds while its write waits must not block the other mount.
TEST_P(MountTest, BothMountsLetOneFileGrowWithoutWaitingForEachOthersPages) {
  constexpr size_t kStep = 5000;
  const std::string content = RandomBytes(400'000, 7);
  for (int round = 0; round < 10; ++round) {
    const std::string name = "grown" + std::to_string(round);
    ASSERT_EQ(WriteFile(a_ / name, content.substr(0, kStep)), "");
    const auto write = [&](const fs::path& path, size_t first) {
      const UniqueFd file(open(path.c_str(), O_RDWR));
      for (size_t at = first * kStep; at < content.size(); at += 2 * kStep) {
        const size_t size = std::min(kStep, content.size() - at);
        EXPECT_EQ(pwrite(file.get(), content.data() + at, size, static_cast<off_t>(at)),
                  static_cast<ssize_t>(size));
      }
    };
    const auto begun = std::chrono::steady_clock::now();
    std::thread other([&] { write(b_ / name, 1); });
    write(a_ / name, 2);
    other.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(8));
    for (const fs::path& mount : {a_, b_}) EXPECT_TRUE(ReadFile(mount / name) == content) << name;
  }
}

TEST_P(MountTest, AppendsOfBothMountsAllArrive) {
  constexpr int kRecords = 100;
  ASSERT_EQ(WriteFile(a_ / "log", ""), "");
  const auto append = [](const fs::path& path, char letter) {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_APPEND));
    const std::string record(100, letter);
    for (int i = 0; i < kRecords; ++i) EXPECT_EQ(write(file.get(), record.data(), 100), 100);
  };
  std::thread other([&] { append(b_ / "log", 'b'); });
  append(a_ / "log", 'a');
  other.join();
  const std::string log = ReadFile(b_ / "log");
  ASSERT_EQ(log.size(), 2U * kRecords * 100);
  size_t letters[2] = {0, 0};
  for (size_t i = 0; i < log.size(); i += 100) {
    EXPECT_EQ(log.substr(i, 100), std::string(100, log[i])) << i;
    ++letters[log[i] == 'b'];
  }
  EXPECT_EQ(letters[0], size_t{kRecords});
  EXPECT_EQ(letters[1], size_t{kRecords});
}

void OnAlarm(int) {}

TEST_P(MountTest, RecordLocksHoldAcrossMountsAndWaitsAreInterrupted) {
  ASSERT_EQ(WriteFile(a_ / "f", "0123456789"), "");
  const UniqueFd a(open((a_ / "f").c_str(), O_RDWR));
  const UniqueFd b(open((b_ / "f").c_str(), O_RDWR));
  const auto set = [](const UniqueFd& file, int command, short type, off_t start, off_t length) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = start;
    lock.l_len = length;
    return Answer(fcntl(file.get(), command, &lock));
  };
  EXPECT_EQ(set(a, F_SETLK, F_WRLCK, 0, 5), "ok");
  EXPECT_EQ(set(b, F_SETLK, F_WRLCK, 5, 5), "ok");
  EXPECT_EQ(set(b, F_SETLK, F_RDLCK, 4, 1), "EAGAIN");
  struct flock conflict {};
  conflict.l_type = F_RDLCK;
  ASSERT_EQ(fcntl(b.get(), F_GETLK, &conflict), 0);
  EXPECT_EQ(conflict.l_type, F_WRLCK);
  EXPECT_EQ(conflict.l_len, 5);

  struct sigaction action {};
  action.sa_handler = OnAlarm;
  struct sigaction before {};
  sigaction(SIGALRM, &action, &before);
  alarm(1);
  EXPECT_EQ(set(b, F_SETLKW, F_WRLCK, 0, 5), "EINTR");
  sigaction(SIGALRM, &before, nullptr);

  std::thread waiter([&] { EXPECT_EQ(set(b, F_SETLKW, F_WRLCK, 0, 5), "ok"); });
  usleep(100'000);
  EXPECT_EQ(set(a, F_SETLK, F_UNLCK, 0, 0), "ok");
  waiter.join();
  EXPECT_EQ(set(a, F_SETLK, F_RDLCK, 0, 1), "EAGAIN");

  EXPECT_EQ(Answer(flock(a.get(), LOCK_EX)), "ok");
  EXPECT_EQ(Answer(flock(b.get(), LOCK_SH | LOCK_NB)), "EAGAIN");
  EXPECT_EQ(Answer(flock(a.get(), LOCK_UN)), "ok");
  EXPECT_EQ(Answer(flock(b.get(), LOCK_SH | LOCK_NB)), "ok");
}

TEST_P(MountTest, AttributesAreCompleteAndGuarded) {
  ASSERT_EQ(WriteFile(a_ / "f", "bytes"), "");
  struct statx status {};
  ASSERT_EQ(statx(AT_FDCWD, (b_ / "f").c_str(), 0, STATX_ALL, &status), 0);
  ASSERT_NE(status.stx_mask & STATX_BTIME, 0U);
  EXPECT_GT(status.stx_btime.tv_sec, 1'600'000'000);
  EXPECT_EQ(status.stx_size, 5U);

  ASSERT_EQ(chmod((a_ / "f").c_str(), 06755), 0);
  ASSERT_EQ(chown((a_ / "f").c_str(), 65534, 65534), 0);
  struct stat owned {};
  ASSERT_EQ(stat((b_ / "f").c_str(), &owned), 0);
  EXPECT_EQ(owned.st_mode & 07777, 0755U);
  EXPECT_EQ(owned.st_uid, 65534U);

  const timespec times[2] = {{1'000'000'000, 123'456'789}, {1'100'000'000, 987'654'321}};
  ASSERT_EQ(utimensat(AT_FDCWD, (a_ / "f").c_str(), times, 0), 0);
  ASSERT_EQ(stat((b_ / "f").c_str(), &owned), 0);
  EXPECT_EQ(owned.st_mtim.tv_sec, 1'100'000'000);
  EXPECT_EQ(owned.st_mtim.tv_nsec, 987'654'321);
  EXPECT_EQ(owned.st_atim.tv_nsec, 123'456'789);

  ASSERT_EQ(truncate((a_ / "f").c_str(), 3), 0);
  EXPECT_EQ(ReadFile(b_ / "f"), "byt");
  struct statvfs room {};
  ASSERT_EQ(statvfs(b_.c_str(), &room), 0);
  // Two nodes of 1 GiB, plus inline bytes.
  EXPECT_NEAR(static_cast<double>(room.f_blocks * room.f_frsize), 0x1p31, 0x1p20);
  EXPECT_GT(room.f_bavail, 0U);
}

TEST_P(MountTest, OpenFilesOutliveTheirNames) {
  const std::string bytes = RandomBytes(100'000, 5);
  ASSERT_EQ(WriteFile(a_ / "f", bytes), "");
  const UniqueFd a(open((a_ / "f").c_str(), O_RDONLY));
  const UniqueFd b(open((b_ / "f").c_str(), O_RDONLY));
  ASSERT_EQ(unlink((b_ / "f").c_str()), 0);
  for (const int file : {a.get(), b.get()}) {
    std::string read(bytes.size(), '\0');
    EXPECT_EQ(pread(file, read.data(), read.size(), 0), 100'000);
    EXPECT_TRUE(read == bytes);
    struct stat status {};
    EXPECT_EQ(fstat(file, &status), 0);
    EXPECT_EQ(status.st_nlink, 0U);
  }
}

TEST_P(MountTest, DirectReadsAndWritesBypassThePageCache) {
  const size_t size = 1 << 20;
  void* memory = nullptr;
  ASSERT_EQ(posix_memalign(&memory, 4096, size), 0);
  const std::unique_ptr<void, decltype(&free)> buffer(memory, &free);
  const std::string bytes = RandomBytes(size, 11);
  memcpy(memory, bytes.data(), size);
  const UniqueFd file(open((a_ / "f").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0644));
  ASSERT_EQ(write(file.get(), memory, size), static_cast<ssize_t>(size));
  memset(memory, 0, size);
  ASSERT_EQ(pread(file.get(), memory, size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(memcmp(memory, bytes.data(), size), 0);
}

// Like fsync(), each write reports its time to the manager. Without that none would before the
// close.
TEST_P(MountTest, ADirectWriteThatAsksForItIsStoredWhenItIsDone) {
  constexpr size_t kSize = 64 << 10;
  constexpr uint64_t kWrites = 20;
  void* memory = nullptr;
  ASSERT_EQ(posix_memalign(&memory, 4096, kSize), 0);
  const std::unique_ptr<void, decltype(&free)> buffer(memory, &free);
  const std::string bytes = RandomBytes(kSize, 12);
  memcpy(memory, bytes.data(), kSize);
  ASSERT_EQ(WriteFile(b_ / "f", std::string(kSize, '-')), "");
  const UniqueFd file(open((a_ / "f").c_str(), O_WRONLY | O_DIRECT | O_DSYNC));
  ASSERT_TRUE(file);
  const auto calls = [&] {
    return MountStats(cluster_->mount(0)).at("manager_calls").get<uint64_t>();
  };
  const uint64_t before = calls();
  for (uint64_t i = 0; i < kWrites; ++i)
    ASSERT_EQ(pwrite(file.get(), memory, kSize, 0), static_cast<ssize_t>(kSize));
  EXPECT_GE(calls(), before + kWrites);
  EXPECT_TRUE(ReadFile(b_ / "f") == bytes);
}

// Another program truncates and refills the object while it is read. The read bytes are old, new or
// zero, and there is never an error.
TEST_P(MountTest, AnObjectThatIsCutMeanwhileIsReadWithoutErrors) {
  ASSERT_EQ(Answer(setxattr(a_.c_str(), "user.mosa.placement", "local", 5, 0)), "ok");
  const std::string bytes = RandomBytes((4 << 20) + 3 * 4096, 12);
  ASSERT_EQ(WriteFile(a_ / "f", bytes), "");
  fs::path object;
  for (const auto& entry : fs::recursive_directory_iterator(cluster_->directory() / "n0"))
    if (entry.is_regular_file() && entry.file_size() == bytes.size()) object = entry.path();
  ASSERT_FALSE(object.empty());
  std::jthread cutter([&](const std::stop_token& ends) {
    const UniqueFd file(open(object.c_str(), O_RDWR));
    while (!ends.stop_requested()) {
      EXPECT_EQ(Answer(ftruncate(file.get(), 0)), "ok");
      EXPECT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
    }
  });
  for (int round = 0; round < 100; ++round) {
    const UniqueFd file(open((a_ / "f").c_str(), O_RDONLY));
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::string got(bytes.size(), '\0');
    size_t done = 0;
    for (ssize_t n = 1; n > 0; done += static_cast<size_t>(n)) {
      n = pread(file.get(), got.data() + done, got.size() - done, static_cast<off_t>(done));
      ASSERT_GE(n, 0) << strerror(errno) << " at " << done << " in round " << round;
    }
    size_t wrong = 0;
    for (size_t i = 0; i < done; ++i) wrong += got[i] != bytes[i] && got[i] != '\0' ? 1 : 0;
    EXPECT_EQ(wrong, 0U) << "in round " << round;
  }
  cutter.request_stop();
  cutter.join();
  EXPECT_TRUE(ReadFile(b_ / "f") == bytes);
}

// ---- the life of a mount

class MountLifeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = ProcessCluster::WhyNot(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    auto started = ProcessCluster::Start({});
    ASSERT_TRUE(started.ok()) << MessageOf(started.status());
    cluster_ = *std::move(started);
  }
  void TearDown() override {
    if (HasFailure() && cluster_) GTEST_LOG_(ERROR) << cluster_->LogText();
  }
  std::unique_ptr<ProcessCluster> cluster_;
};

TEST_F(MountLifeTest, AKilledMountIsMountedAgainInItsPlace) {
  const std::string bytes = RandomBytes(3'000'000, 21);
  ASSERT_EQ(WriteFile(cluster_->mount(0) / "kept", bytes), "");
  struct stat status {};
  ASSERT_EQ(stat(cluster_->mount(0).c_str(), &status), 0) << "the kernel remembers for a while";
  cluster_->mount_process(0).Kill();
  struct statvfs space {};
  EXPECT_EQ(Answer(statvfs(cluster_->mount(0).c_str(), &space)), "ENOTCONN");
  EXPECT_TRUE(ReadFile(cluster_->mount(1) / "kept") == bytes);
  const Status again = cluster_->StartMount(0);
  ASSERT_TRUE(again.ok()) << MessageOf(again);
  EXPECT_TRUE(ReadFile(cluster_->mount(0) / "kept") == bytes);
  ASSERT_EQ(WriteFile(cluster_->mount(0) / "new", "bytes"), "");
  EXPECT_EQ(ReadFile(cluster_->mount(1) / "new"), "bytes");
}

TEST_F(MountLifeTest, SigtermUnmountsAndLosesNothing) {
  const std::string bytes = RandomBytes(3'000'000, 22);
  ASSERT_EQ(WriteFile(cluster_->mount(0) / "f", bytes), "");
  const Result<int> code = cluster_->mount_process(0).Stop();
  ASSERT_TRUE(code.ok()) << MessageOf(code.status());
  EXPECT_EQ(*code, 0);
  EXPECT_TRUE(fs::is_empty(cluster_->mount(0))) << "still mounted";
  EXPECT_TRUE(ReadFile(cluster_->mount(1) / "f") == bytes);
}

TEST_F(MountLifeTest, EndsWhenSomebodyUnmounts) {
  ASSERT_EQ(umount2(cluster_->mount(0).c_str(), 0), 0) << strerror(errno);
  const Result<int> code = cluster_->mount_process(0).Wait(Seconds(20));
  ASSERT_TRUE(code.ok()) << MessageOf(code.status());
  EXPECT_EQ(*code, 0);
}

TEST_F(MountLifeTest, AnOpenFileDoesNotKeepSigtermWaiting) {
  const UniqueFd file(open((cluster_->mount(0) / "f").c_str(), O_RDWR | O_CREAT, 0644));
  ASSERT_EQ(write(file.get(), "bytes", 5), 5);
  const Result<int> code = cluster_->mount_process(0).Stop();
  ASSERT_TRUE(code.ok()) << MessageOf(code.status());
  EXPECT_EQ(*code, 0);
  EXPECT_TRUE(fs::is_empty(cluster_->mount(0))) << "still mounted";
}

TEST_F(MountLifeTest, RefusesToMountOverALiveMount) {
  DaemonProcess second({MOSA_BINARY_DIR "/mosa-mount", cluster_->mount(0), "--manager",
                        "127.0.0.1:1", "--name", "n0"},
                       cluster_->directory() / "second.log",
                       cluster_->directory() / "second.ready");
  const auto started = second.Start();
  ASSERT_FALSE(started.ok());
  EXPECT_NE(second.LogText().find("a live Mosa mount is already on"), std::string::npos)
      << second.LogText();
}

// ---- the command line

int RunMount(const std::string& arguments, std::string& output) {
  FILE* const pipe = popen((MOSA_BINARY_DIR "/mosa-mount " + arguments + " 2>&1").c_str(), "r");
  char text[4096];
  const size_t bytes = fread(text, 1, sizeof(text), pipe);
  output.assign(text, bytes);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MountCommand, RefusesBadFlagsBeforeDoingAnything) {
  std::ofstream("/tmp/mosa-mount-test.conf") << "manager = \"127.0.0.1:1\"\nno-such-flag = 1\n";
  struct Row {
    const char* arguments;
    int code;
    const char* part;
  };
  for (const Row& row : {Row{"", 2, "mountpoint"}, Row{"/tmp", 2, "--manager"},
                         Row{"/tmp --manager nonsense", 2, "HOST:PORT"},
                         Row{"/tmp --manager 127.0.0.1:1 --threads 0", 2, "threads"},
                         Row{"/tmp --manager 127.0.0.1:1 --log-level loud", 2, "loud"},
                         Row{"/tmp --manager 127.0.0.1:1 --secret /no/such", 3, "/no/such"},
                         Row{"/no/such/place --manager 127.0.0.1:1", 3, "/no/such/place"},
                         Row{"/etc/passwd --manager 127.0.0.1:1", 3, "not a directory"},
                         Row{"/tmp --config /tmp/mosa-mount-test.conf", 2, "no-such-flag"},
                         Row{"--help", 0, "--no-passthrough"}}) {
    std::string output;
    EXPECT_EQ(RunMount(row.arguments, output), row.code) << row.arguments << ": " << output;
    EXPECT_NE(output.find(row.part), std::string::npos) << row.arguments << ": " << output;
  }
  unlink("/tmp/mosa-mount-test.conf");
}

TEST(MountCommand, AnAbsentManagerIsSaidWithinItsWait) {
  if (const std::string reason = ProcessCluster::WhyNot(); !reason.empty()) GTEST_SKIP() << reason;
  std::string pattern = "/tmp/mosa-mount-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  std::string output;
  EXPECT_EQ(RunMount(pattern + " --manager 127.0.0.1:1", output), 5) << output;
  EXPECT_NE(output.find("127.0.0.1:1"), std::string::npos) << output;
  rmdir(pattern.c_str());
}

}  // namespace
}  // namespace mosa::sai
