#include "client-sai/trace/tracer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "client-sai/sai/cluster_fixture.h"
#include "client-sai/sai/tracing.h"

namespace mosa::sai {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TracerTest : public ::testing::Test {
 protected:
  TracerTest() : directory_(fs::temp_directory_path() / ("tracer." + std::to_string(getpid()))) {
    fs::create_directories(directory_);
  }
  ~TracerTest() override { fs::remove_all(directory_); }

  Tracer::Options Into(const std::string& host, bool light = false) const {
    return {directory_.string(), host, "/nonexistent/mnt", light};
  }
  bool End() { return tracer_.Stop().ok() && tracer_.EndWithin(Seconds(30)); }
  TraceFile Read(const std::string& host) const {
    std::ifstream file(directory_ / (host + ".trace"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    auto trace = ParseTrace(bytes);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return *std::move(trace);
  }

  const fs::path directory_;
  const SystemClock clock_;
  Cluster cluster_{uint64_t{1} << 30, uint64_t{1} << 30, true};
  TracedFilesystem mount_{cluster_.a().fs(), cluster_.a().notifier()};
  Tracer tracer_{mount_, clock_};
};

TEST_F(TracerTest, WritesEveryThreadsEventsInItsOrder) {
  constexpr uint64_t kEvents = 20'000;
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEvents; ++i) {
        TraceEvent event;
        event.kind = TraceKind::kRead;
        event.handle = thread + 1;
        event.offset = i;
        tracer_.Note(event);
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(End());
  const TraceFile trace = Read("a");
  ASSERT_TRUE(trace.foot);
  EXPECT_EQ(trace.records.size(), trace.foot->records);
  EXPECT_EQ(trace.foot->records + trace.foot->dropped, 4 * kEvents);
  EXPECT_EQ(trace.fault.empty(), trace.foot->dropped == 0) << trace.fault;
  std::map<uint64_t, uint64_t> next;
  for (const TraceRecord& record : trace.records) {
    EXPECT_GE(record.offset, next[record.handle]);
    next[record.handle] = record.offset + 1;
    EXPECT_LE(record.start, cluster_.a().fs().ManagerNow());
  }
}

TEST_F(TracerTest, AFullTraceKeepsFilesFromTheKernelAndALightOneDoesNot) {
  cluster_.a().notifier().can.passthrough = true;
  ASSERT_TRUE(Ok(cluster_.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster_.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster_.a().WriteFile("/d/f", Pattern(kMiB, 1))));
  const auto kind = [&] {
    const auto opened = cluster_.a().Open("/d/f", O_RDONLY);
    EXPECT_TRUE(Ok(opened));
    EXPECT_EQ(opened->size_bytes, kMiB);
    EXPECT_TRUE(Ok(cluster_.a().Close(opened->handle)));
    return opened->mode.kind;
  };
  EXPECT_EQ(kind(), OpenMode::Kind::kPassthrough);
  ASSERT_TRUE(tracer_.Start(Into("full")).ok());
  EXPECT_NE(kind(), OpenMode::Kind::kPassthrough);
  ASSERT_TRUE(End());
  EXPECT_EQ(kind(), OpenMode::Kind::kPassthrough);
  ASSERT_TRUE(tracer_.Start(Into("light", true)).ok());
  EXPECT_EQ(kind(), OpenMode::Kind::kPassthrough);
  ASSERT_TRUE(End());
  // Names that the mount knew before are in the trace.
  const TraceFile trace = Read("light");
  bool has_name = false;
  for (const TraceRecord& record : trace.records)
    has_name = has_name || (record.kind == TraceKind::kName && record.text == "f");
  EXPECT_TRUE(has_name);
  EXPECT_TRUE(trace.head.light);
}

TEST_F(TracerTest, WritesANameOnceUntilItChanges) {
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  TraceEvent name;
  name.kind = TraceKind::kName;
  name.file = FileId{77};
  name.parent = FileId{1};
  for (const char* text : {"x", "x", "x", "y", "x"}) tracer_.Note(name, text);
  ASSERT_TRUE(End());
  std::vector<std::string> names;
  for (const TraceRecord& record : Read("a").records)
    if (record.file == FileId{77}) names.push_back(record.text);
  EXPECT_THAT(names, ::testing::ElementsAre("x", "y", "x"));
}

TEST_F(TracerTest, HasWhatIsNotedAfterTheAnswerThatEndsIt) {
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  auto use = std::make_unique<Tracer::Use>(tracer_);
  ASSERT_TRUE(tracer_.Stop().ok());
  EXPECT_FALSE(tracer_.EndWithin(Milliseconds(100)));
  TraceEvent event;
  event.kind = TraceKind::kRead;
  event.handle = 7;
  std::thread([&] { tracer_.Note(event); }).join();
  use.reset();
  ASSERT_TRUE(tracer_.EndWithin(Seconds(30)));
  const TraceFile trace = Read("a");
  EXPECT_EQ(std::count_if(trace.records.begin(), trace.records.end(),
                          [](const TraceRecord& record) { return record.handle == 7; }),
            1);
  // A caller that takes too long is counted.
  ASSERT_TRUE(tracer_.Start(Into("b")).ok());
  use = std::make_unique<Tracer::Use>(tracer_);
  ASSERT_TRUE(End());
  EXPECT_EQ(Read("b").foot->dropped, 1U);
}

TEST_F(TracerTest, WhatIsNotedAfterATraceIsNotInTheNextOne) {
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  ASSERT_TRUE(End());
  TraceEvent event;
  event.kind = TraceKind::kOpen;
  event.handle = 7;
  for (int i = 0; i < 400; ++i) tracer_.Note(event, std::string(1000, 'x'));
  ASSERT_TRUE(tracer_.Start(Into("b")).ok());
  ASSERT_TRUE(End());
  const TraceFile trace = Read("b");
  EXPECT_EQ(trace.fault, "");
  for (const TraceRecord& record : trace.records) EXPECT_NE(record.handle, 7U);
}

TEST_F(TracerTest, ThreadsAreOfOneProcess) {
  const auto self = static_cast<uint32_t>(getpid());
  const Tracer::Process first = tracer_.ProcessOf(self);
  Tracer::Process other;
  std::thread([&] { other = tracer_.ProcessOf(static_cast<uint32_t>(gettid())); }).join();
  EXPECT_EQ(first.pid, self);
  EXPECT_EQ(other.pid, self);
  EXPECT_EQ(other.start, first.start);
  EXPECT_EQ(other.text, first.text);
  EXPECT_FALSE(first.text.empty());
}

TEST_F(TracerTest, IsNobodyElsesToRead) {
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  ASSERT_TRUE(End());
  EXPECT_EQ(fs::status(directory_ / "a.trace").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  // A link in the directory is not followed either.
  fs::create_symlink(directory_ / "elsewhere", directory_ / "b.trace");
  EXPECT_EQ(tracer_.Start(Into("b")).code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

TEST_F(TracerTest, RefusesWhatCannotBe) {
  EXPECT_EQ(tracer_.Stop().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(tracer_.Start(Into("a")).ok());
  EXPECT_THAT(MessageOf(tracer_.Start(Into("b"))), HasSubstr("being traced to"));
  ASSERT_TRUE(End());
  EXPECT_EQ(tracer_.Start(Into("a")).code(), StatusCode::kAlreadyExists);
  const Status missing = tracer_.Start({"/nonexistent", "a", "/mnt", false});
  EXPECT_THAT(MessageOf(missing), HasSubstr("there is no directory"));
  Tracer::Options itself = Into("c");
  itself.mount_point = directory_.string();
  EXPECT_THAT(MessageOf(tracer_.Start(itself)), HasSubstr("would trace itself"));
  EXPECT_FALSE(fs::exists(directory_ / "c.trace"));
  fs::create_directory_symlink(directory_, directory_ / "link");
  itself = Into("d");
  itself.directory = directory_ / "link";
  EXPECT_FALSE(tracer_.Start(itself).ok());
  EXPECT_FALSE(tracer_.on());
  const auto status = nlohmann::json::parse(tracer_.StatusJson());
  EXPECT_EQ(status["end"], "stopped");
  EXPECT_EQ(status["tracing"], false);
}

TEST_F(TracerTest, ARefusedTraceHasEndedWhenItsCallerHears) {
  Tracer::Options nowhere = Into("a");
  nowhere.directory = directory_ / "missing";
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(tracer_.Start(nowhere).ok());
    ASSERT_TRUE(tracer_.Start(Into("t" + std::to_string(i))).ok());
    ASSERT_EQ(nlohmann::json::parse(tracer_.StatusJson())["tracing"], true);
    ASSERT_TRUE(tracer_.Stop().ok());
    // A writer that still belonged to the refusal would make this trace look complete too early.
    ASSERT_TRUE(tracer_.EndWithin(Seconds(30)));
    ASSERT_EQ(Read("t" + std::to_string(i)).fault, "");
  }
}

}  // namespace
}  // namespace mosa::sai
