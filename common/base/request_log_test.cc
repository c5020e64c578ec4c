// What a log of requests has when it is read again: all that was added, by whom and on behalf of
// what; of a file that is cut anywhere, what is before the cut.
#include "common/base/request_log.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "common/base/duration_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr DurationTable::ClassId kOuter{0};
constexpr DurationTable::ClassId kInner{1};

class RequestLogTest : public ::testing::Test {
 protected:
  RequestLogTest() { fs::create_directories(directory_); }
  ~RequestLogTest() override { fs::remove_all(directory_); }

  RequestLog::Options Into() const {
    return {.directory = directory_, .component = "storage", .host = "h1"};
  }
  std::string Bytes() const {
    std::ostringstream bytes;
    bytes << std::ifstream(log_.state().path, std::ios::binary).rdbuf();
    return bytes.str();
  }

  const std::string directory_ =
      fs::path(testing::TempDir()) / ("request-log-" + std::to_string(getpid()));
  RequestLog log_;
  DurationTable table_{{"outer", "inner"}, 2, &log_};
};

TEST_F(RequestLogTest, HasWhatWasAskedOnBehalfOfWhat) {
  { const TimedRequest before(&table_, kOuter); }
  EXPECT_EQ(CurrentSpan().trace, 0U);
  ASSERT_TRUE(log_.Start(Into()).ok());
  {
    TimedRequest outer(&table_, kOuter);
    outer.set_bytes(10);
    EXPECT_NE(CurrentSpan().trace, 0U);
    TimedRequest inner(&table_, kInner, table_.PeerOf("h2"));
    inner.set_link(7);
  }
  { const TimedRequest asked(&table_, kInner, DurationTable::kNoPeer, {.trace = 5, .span = 6}); }
  EXPECT_EQ(CurrentSpan().trace, 0U);
  ASSERT_TRUE(log_.Stop().ok());
  { const TimedRequest after(&table_, kOuter); }

  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->fault, "");
  EXPECT_EQ(file->component + file->host, "storageh1");
  ASSERT_EQ(file->requests.size(), 3U);
  const LoggedRequest& inner = file->requests[0];
  const LoggedRequest& outer = file->requests[1];
  EXPECT_EQ(inner.name + " " + inner.peer, "inner h2");
  EXPECT_EQ(outer.name + " " + outer.peer, "outer ");
  EXPECT_EQ(inner.record.parent, outer.record.span);
  EXPECT_EQ(inner.record.trace, outer.record.trace);
  EXPECT_EQ(inner.record.link, 7U);
  EXPECT_EQ(outer.record.parent, 0U);
  EXPECT_EQ(outer.record.bytes, 10U);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_EQ(file->requests[2].record.trace, 5U);
  EXPECT_EQ(file->requests[2].record.parent, 6U);
}

TEST_F(RequestLogTest, TasksOfOtherThreadsAreOnBehalfOfWhoGaveThem) {
  ASSERT_TRUE(log_.Start(Into()).ok());
  {
    const TimedRequest outer(&table_, kOuter);
    std::thread(InThisSpan([this] { const TimedRequest inner(&table_, kInner); })).join();
  }
  ASSERT_TRUE(log_.Stop().ok());
  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->requests.size(), 2U);
  EXPECT_EQ(file->requests[0].record.trace, file->requests[1].record.trace);
}

TEST_F(RequestLogTest, LosesNothingOfManyThreadsThatIsNotCounted) {
  constexpr size_t kThreads = 4;
  constexpr size_t kRequests = 20'000;
  ASSERT_TRUE(log_.Start(Into()).ok());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([this] {
      for (size_t k = 0; k < kRequests; ++k) const TimedRequest one(&table_, kOuter);
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(log_.Stop().ok());
  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->fault, "");
  EXPECT_EQ(file->requests.size() + file->dropped, kThreads * kRequests);
}

TEST_F(RequestLogTest, AFileThatIsCutHasWhatIsBeforeTheCut) {
  ASSERT_TRUE(log_.Start(Into()).ok());
  for (int i = 0; i < 3; ++i) const TimedRequest one(&table_, kOuter);
  ASSERT_TRUE(log_.Stop().ok());
  const std::string whole = Bytes();
  for (size_t size = kRequestLogTitle.size(); size < whole.size(); ++size) {
    const auto file = ReadRequestLog(whole.substr(0, size));
    ASSERT_TRUE(file.ok());
    EXPECT_THAT(file->fault, HasSubstr("requests before that are here"));
  }
  std::string damaged = whole;
  damaged[whole.size() - 40] ^= 1;
  EXPECT_NE(ReadRequestLog(damaged)->fault, "");
  EXPECT_EQ(ReadRequestLog("something else").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(RequestLogTest, RefusesWhatCannotBe) {
  EXPECT_EQ(log_.Stop().code(), StatusCode::kFailedPrecondition);
  RequestLog::Options nowhere = Into();
  nowhere.directory = "/nonexistent";
  EXPECT_THAT(log_.Start(nowhere).message(), HasSubstr("/nonexistent/storage-h1"));
  ASSERT_TRUE(log_.Start(Into()).ok());
  EXPECT_THAT(log_.Start(Into()).message(), HasSubstr("written already"));
  ASSERT_TRUE(log_.Stop().ok());
  EXPECT_EQ(log_.Start(Into()).code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace mosa
