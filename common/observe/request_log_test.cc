// Tests reading a log of requests: it has everything that was added, with its daemon and cause. A
// file that is cut anywhere has what precedes the cut.
#include "common/observe/request_log.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "common/observe/duration_table.h"
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
  // Returns the fault once the log has begun or ended.
  std::string Begin(const RequestLog::Options& options) {
    const Status begun = log_.Start(options);
    return begun.ok() ? log_.Settled().fault : MessageOf(begun);
  }
  std::string End() {
    log_.Stop();
    return log_.Settled().fault;
  }
  void AddUntilItEnds() {
    while (log_.state().is_on) const TimedRequest one(&table_, kOuter);
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
  ASSERT_EQ(Begin(Into()), "");
  {
    TimedRequest outer(&table_, kOuter);
    outer.set_bytes(10);
    EXPECT_NE(CurrentSpan().trace, 0U);
    TimedRequest inner(&table_, kInner, table_.PeerOf("h2"));
    inner.set_link(7);
  }
  { const TimedRequest asked(&table_, kInner, DurationTable::kNoPeer, {.trace = 5, .span = 6}); }
  EXPECT_EQ(CurrentSpan().trace, 0U);
  EXPECT_EQ(End(), "");
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
  ASSERT_EQ(Begin(Into()), "");
  {
    const TimedRequest outer(&table_, kOuter);
    std::thread(InThisSpan([this] { const TimedRequest inner(&table_, kInner); })).join();
  }
  EXPECT_EQ(End(), "");
  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->requests.size(), 2U);
  EXPECT_EQ(file->requests[0].record.trace, file->requests[1].record.trace);
}

TEST_F(RequestLogTest, LosesNothingOfManyThreadsThatIsNotCounted) {
  constexpr size_t kThreads = 4;
  constexpr size_t kRequests = 20'000;
  ASSERT_EQ(Begin(Into()), "");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([this] {
      for (size_t k = 0; k < kRequests; ++k) const TimedRequest one(&table_, kOuter);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(End(), "");
  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->fault, "");
  EXPECT_EQ(file->requests.size() + file->dropped, kThreads * kRequests);
}

TEST_F(RequestLogTest, AFileThatIsCutHasWhatIsBeforeTheCut) {
  ASSERT_EQ(Begin(Into()), "");
  for (int i = 0; i < 3; ++i) const TimedRequest one(&table_, kOuter);
  EXPECT_EQ(End(), "");
  const std::string whole = Bytes();
  for (size_t size = kRequestLogTitle.size(); size < whole.size(); ++size) {
    const auto file = ReadRequestLog(whole.substr(0, size));
    ASSERT_TRUE(file.ok());
    EXPECT_THAT(file->fault, HasSubstr("requests before that point were read"));
  }
  std::string damaged = whole;
  damaged[whole.size() - 40] ^= 1;
  EXPECT_NE(ReadRequestLog(damaged)->fault, "");
  EXPECT_EQ(ReadRequestLog("something else").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(RequestLogTest, RefusesWhatCannotBe) {
  RequestLog::Options nowhere = Into();
  for (const std::string& path :
       {std::string(), std::string("relative"), "/" + std::string(5000, 'a')}) {
    nowhere.directory = path;
    EXPECT_EQ(log_.Start(nowhere).code(), StatusCode::kInvalidArgument);
  }
  nowhere.directory = "/nonexistent";
  EXPECT_THAT(Begin(nowhere), HasSubstr("cannot create /nonexistent/storage-h1"));
  EXPECT_FALSE(log_.state().is_on);
  // Where another user can create files, or has made a link to a place where that user cannot.
  fs::create_directory_symlink("/etc", directory_ + "/link");
  nowhere.directory = directory_ + "/link";
  EXPECT_THAT(Begin(nowhere), HasSubstr("symbolic link"));
  fs::create_directory(directory_ + "/shared");
  fs::permissions(directory_ + "/shared", fs::perms::all);
  nowhere.directory = directory_ + "/shared";
  EXPECT_THAT(Begin(nowhere), HasSubstr("writable for nobody else"));
  EXPECT_FALSE(log_.state().is_on);
  ASSERT_EQ(Begin(Into()), "");
  EXPECT_THAT(log_.Start(Into()).message(), HasSubstr("already being written"));
  EXPECT_EQ(End(), "");
  EXPECT_EQ(End(), "");
  EXPECT_THAT(Begin(Into()), HasSubstr("already exists"));
}

TEST_F(RequestLogTest, AFullFileEndsWell) {
  RequestLog::Options options = Into();
  options.file_bytes_max = 1 << 20;
  ASSERT_EQ(Begin(options), "");
  AddUntilItEnds();
  const RequestLog::State state = log_.Settled();
  EXPECT_THAT(state.fault, HasSubstr("has reached its limit of 1 MiB"));
  EXPECT_GT(state.dropped, 0U);
  const auto file = ReadRequestLog(Bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->fault, "");
  EXPECT_EQ(file->requests.size(), state.records);
}

TEST_F(RequestLogTest, AFailingWriteIsSaid) {
  ASSERT_EQ(Begin(Into()), "");
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  AddUntilItEnds();
  const RequestLog::State state = log_.Settled();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, ignored);
  EXPECT_THAT(state.fault, HasSubstr("File too large"));
  EXPECT_THAT(ReadRequestLog(Bytes())->fault, HasSubstr("requests before that point were read"));
}

}  // namespace
}  // namespace mosa
