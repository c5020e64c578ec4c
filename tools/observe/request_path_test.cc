// Paths of requests from made-up logs: which component accounts for the time, clocks that disagree,
// requests made on behalf of another one, and work that continues on its own.
#include "tools/observe/request_path.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

struct Made {
  uint64_t span = 0;
  uint64_t parent = 0;
  int64_t begin_ms = 0;
  int64_t took_ms = 0;
  std::string name;
  std::string peer;
  uint64_t link = 0;
};

RequestLogFile FileOf(const char* component, const char* host, const std::vector<Made>& requests) {
  RequestLogFile file{.component = component, .host = host};
  for (const Made& one : requests)
    file.requests.push_back({.record = {.trace = 1,
                                        .span = one.span,
                                        .parent = one.parent,
                                        .link = one.link,
                                        .begin_ns = one.begin_ms * kMs,
                                        .duration_ns = one.took_ms * kMs},
                             .begin = Time{one.begin_ms * kMs},
                             .name = one.name,
                             .peer = one.peer});
  return file;
}

RequestPath PathOf(std::vector<RequestLogFile> files) {
  const RequestPaths paths(std::move(files));
  return paths.PathOf(*paths.RootOf(1));
}

std::vector<std::string> Names(const RequestPath& path) {
  std::vector<std::string> names;
  for (const PathPart& part : path.parts) names.push_back(std::string(part.depth, '.') + part.name);
  return names;
}

TEST(RequestPath, GivesEachDaemonItsPart) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}}),
       FileOf("storage", "h1", {{3, 2, 103, 5, "read"}, {4, 3, 103, 1, "read.object"}})});
  EXPECT_THAT(Names(path), ElementsAre("fuse.read", ".node.read", "..read", "...read.object"));
  EXPECT_EQ(path.shares.at("the mount of h2"), Milliseconds(2));
  EXPECT_EQ(path.shares.at("the network to h1, and connections"), Milliseconds(3));
  EXPECT_EQ(path.shares.at("sending and receiving at h1"), Milliseconds(4));
  EXPECT_EQ(path.shares.at("objects of h1"), Milliseconds(1));
  EXPECT_EQ(path.parts[2].at, Milliseconds(3));
  EXPECT_TRUE(path.notes.empty());
}

TEST(RequestPath, SaysWhichClocksDisagreeAndPutsPartsWhereTheyCanBe) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}}),
       FileOf("storage", "h1", {{3, 2, 40, 5, "read"}})});
  EXPECT_EQ(path.parts[2].at, Milliseconds(1));
  EXPECT_EQ(path.shares.at("the network to h1, and connections"), Milliseconds(3));
  ASSERT_EQ(path.notes.size(), 1U);
  EXPECT_THAT(path.notes[0], HasSubstr("the clock of h1 is at least 61.000 ms behind that of h2"));
}

// 107 to 112 by a clock that is 4 ms ahead, within a call from 101 to 109.
TEST(RequestPath, AClockThatIsAheadByLessThanTheQuestionTakesNothingFromAnybody) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}}),
       FileOf("storage", "h1", {{3, 2, 107, 5, "read"}, {4, 3, 107, 1, "read.object"}})});
  EXPECT_EQ(path.parts[2].at, Milliseconds(4));
  EXPECT_EQ(path.parts[3].at, Milliseconds(4));
  EXPECT_EQ(path.shares.at("the mount of h2"), Milliseconds(2));
  EXPECT_EQ(path.shares.at("the network to h1, and connections"), Milliseconds(3));
  EXPECT_EQ(path.shares.at("sending and receiving at h1"), Milliseconds(4));
  EXPECT_EQ(path.shares.at("objects of h1"), Milliseconds(1));
  ASSERT_EQ(path.notes.size(), 1U);
  EXPECT_THAT(path.notes[0], HasSubstr("the clock of h1 is at least 3.000 ms ahead of that of h2"));
}

TEST(RequestPath, AClockThatIsFarAheadTakesNothingFromAnybody) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}}),
       FileOf("storage", "h1", {{3, 2, 904, 5, "read"}})});
  EXPECT_EQ(path.parts[2].at, Milliseconds(4));
  EXPECT_EQ(path.shares.at("the network to h1, and connections"), Milliseconds(3));
  EXPECT_EQ(path.shares.at("sending and receiving at h1"), Milliseconds(5));
  EXPECT_THAT(path.notes[0], HasSubstr("the clock of h1 is at least 800.000 ms ahead of"));
}

// The node counts what it has handed to the network, and may finish with that last.
TEST(RequestPath, APartThatTookLongerThanTheQuestionCountsWhereItLiesWithinThePath) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}}),
       FileOf("storage", "h1", {{3, 2, 101, 20, "read"}})});
  EXPECT_EQ(path.shares.at("sending and receiving at h1"), Milliseconds(9));
  EXPECT_FALSE(path.shares.contains("the network to h1, and connections") &&
               path.shares.at("the network to h1, and connections") > Duration());
}

TEST(RequestPath, WithoutALogTheTimeIsThatDaemonsAndTheNetworks) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h2", {{1, 0, 100, 10, "fuse.read"}, {2, 1, 101, 8, "node.read", "h1"}})});
  EXPECT_EQ(path.shares.at("h1 and the network to it"), Milliseconds(8));
}

TEST(RequestPath, FindsWhatAnotherRequestHadAskedFor) {
  RequestLogFile mount = FileOf("mount", "h2",
                                {{1, 0, 100, 10, "fuse.read"},
                                 {2, 1, 101, 9, "wait.fetch", "", 7},
                                 {7, 0, 90, 3, "fuse.read"},
                                 {8, 7, 91, 19, "node.read", "h1"}});
  mount.requests[2].record.trace = mount.requests[3].record.trace = 5;
  const RequestPath path = PathOf({mount});
  EXPECT_THAT(Names(path), ElementsAre("fuse.read", ".wait.fetch", "..node.read"));
  EXPECT_THAT(path.parts[2].notes, ElementsAre("requested by 0000000000000005"));
  EXPECT_EQ(path.parts[2].at, Milliseconds(-9));
  EXPECT_EQ(path.shares.at("waiting for what was asked for before"), Milliseconds(9));
}

TEST(RequestPath, WaitingForItsOwnFetchIsThatFetch) {
  const RequestPath path = PathOf({FileOf("mount", "h2",
                                          {{1, 0, 100, 10, "fuse.read"},
                                           {2, 1, 101, 9, "wait.fetch", "", 1},
                                           {3, 1, 102, 7, "node.read", "h1"}})});
  EXPECT_THAT(Names(path), ElementsAre("fuse.read", ".wait.fetch", ".node.read"));
  EXPECT_EQ(path.shares.at("h1 and the network to it"), Milliseconds(7));
  EXPECT_EQ(path.shares.at("the mount of h2"), Milliseconds(3));
}

TEST(RequestPath, WhatGoesOnAfterTheAnswerIsNobodysWait) {
  const RequestPath path = PathOf(
      {FileOf("mount", "h1", {{1, 0, 100, 1, "fuse.write"}, {2, 1, 103, 8, "node.write", "h2"}})});
  EXPECT_THAT(path.parts[1].notes, ElementsAre("its end was not waited for"));
  EXPECT_EQ(path.shares.size(), 1U);
  EXPECT_EQ(path.shares.at("the mount of h1"), Milliseconds(1));
}

}  // namespace
}  // namespace mosa::cli
