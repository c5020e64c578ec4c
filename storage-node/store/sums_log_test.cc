#include "storage-node/store/sums_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace mosa::node {
namespace {

constexpr FileId kA{1}, kB{2};
const SumsRecord kSome{.damaged = false, .size_bytes = 100, .sums = {{BlockIndex{0}, 0xdeadbeef}}};

class SumsLogTest : public ::testing::Test {
 protected:
  SumsLogTest() {
    char name[] = "/dev/shm/mosa-sums-test-XXXXXX";
    path_ = ::mkdtemp(name);
    directory_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
  }
  ~SumsLogTest() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<SumsLog> Opened(bool keep_before_damage = false) {
    auto log = SumsLog::Open(directory_.get(), "sums", keep_before_damage);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(path_ + "/sums"))
      files.push_back(file.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  std::string path_;
  UniqueFd directory_;
};

TEST_F(SumsLogTest, FindsWhatTheProcessBeforeHasRecorded) {
  {
    const auto log = Opened();
    EXPECT_FALSE(log->found_any());
    ASSERT_TRUE(log->Append(EncodeSums(kA, kSome)).ok());
    ASSERT_TRUE(log->Append(EncodeSums(kB, kSome)).ok());
    ASSERT_TRUE(log->Append(EncodeForgotten(kB)).ok());
    ASSERT_TRUE(log->Sync().ok());
  }
  const auto log = Opened();
  EXPECT_TRUE(log->found_any());
  EXPECT_EQ(log->TakeFound().records, (std::map<FileId, SumsRecord>{{kA, kSome}}));
}

TEST_F(SumsLogTest, RewritesIntoOneFileAndOldOnesCountUntilThen) {
  const auto log = Opened();
  ASSERT_TRUE(log->Append(EncodeSums(kA, kSome)).ok());
  ASSERT_TRUE(log->BeginNext().ok());
  ASSERT_TRUE(log->Append(EncodeSums(kB, kSome)).ok());
  EXPECT_EQ(Files().size(), 2U);
  EXPECT_EQ(Opened()->TakeFound().records.size(), 2U);
  ASSERT_TRUE(log->FinishNext().ok());
  EXPECT_EQ(Opened()->TakeFound().records, (std::map<FileId, SumsRecord>{{kB, kSome}}));
}

TEST_F(SumsLogTest, ATornEndIsNoDamageAndOtherThingsAre) {
  ASSERT_TRUE(Opened()->Append(EncodeSums(kA, kSome)).ok());
  std::ofstream(Files().back(), std::ios::app) << EncodeSums(kB, kSome).substr(0, 20);
  auto log = Opened();
  EXPECT_FALSE(log->found_damage());
  EXPECT_EQ(log->TakeFound().records.size(), 1U);
  std::ofstream(Files().front(), std::ios::app) << std::string(100, '\x7f');
  std::ofstream(path_ + "/sums/foreign") << "not ours";
  log = Opened(/*keep_before_damage=*/false);
  EXPECT_TRUE(log->found_damage());
  EXPECT_TRUE(log->TakeFound().records.empty());
  log = Opened(/*keep_before_damage=*/true);
  EXPECT_TRUE(log->found_damage());
  EXPECT_EQ(log->TakeFound().records.size(), 1U);
}

// A record that could not be withdrawn must never be found again.
TEST_F(SumsLogTest, WithoutRoomEverythingIsForgotten) {
  const auto log = Opened();
  ASSERT_TRUE(log->Append(EncodeSums(kA, kSome)).ok());
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit none = {.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const Status full = log->Append(EncodeForgotten(kA));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(full.ok());
  EXPECT_TRUE(log->given_up());
  EXPECT_TRUE(log->Append(EncodeSums(kB, kSome)).ok());
  EXPECT_TRUE(Opened()->TakeFound().records.empty());
}

}  // namespace
}  // namespace mosa::node
