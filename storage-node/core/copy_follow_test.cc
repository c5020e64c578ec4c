// CopyTask while a file is written, and at its close.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "storage-node/core/copy_task_fixture.h"

namespace mosa::node {
namespace {

TEST(CopyTask, FollowsAGrowingFileAndIsNeverDone) {
  Peer source;
  CopyOrder order = OrderOf(0, kBlock, {{0, 1, {kA}}});
  order.follow = true;
  Rig rig(std::move(order), {{kA, &source}});
  for (int i = 0; i < 5; ++i) {
    source.Write(source.bytes.size(), std::string(50'000, static_cast<char>('a' + i)));
    rig.Run();
    const auto hold = rig.task.Next(rig.now);
    ASSERT_TRUE(hold && hold->hold) << rig.log;
    rig.Perform(*hold);
    rig.Run();
    EXPECT_TRUE(rig.own.bytes == source.bytes) << i;
    source.Write(10, std::string(1, static_cast<char>('A' + i)));
    rig.Perform(*rig.task.Next(rig.now));
    rig.Run();
    EXPECT_TRUE(rig.own.bytes == source.bytes) << i;
    EXPECT_FALSE(rig.task.finished());
    EXPECT_FALSE(rig.task.Settled({0, 1}));
  }
  // Little more than was written has arrived: only the blocks that grew.
  EXPECT_LT(rig.task.fetched_bytes(), 3 * source.bytes.size() + 6 * kBlock);
}

TEST(CopyTask, WhatItsWriterHasJustWrittenIsFetchedWithoutAQuestion) {
  Peer source;
  source.Write(0, Of('a', 1));
  // Chunks of two blocks, of which it copies every other one.
  Rig rig(Following(OrderOf(0, 2 * kBlock, {{0, 2, {kA, kNoNode}}})), {{kA, &source}},
          {.fetch_bytes = 4 * kBlock, .change_bytes = 4 * kBlock});
  rig.Run();
  auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*hold), "hold @1");
  rig.log.clear();
  source.Write(kBlock, Of('b', 2));
  source.Write(4 * kBlock + 5, "cc");
  rig.Perform(*hold);
  rig.Run();
  EXPECT_EQ(rig.log, "fetch 1-2@1, fetch 4-262151B@1");
  // It asks before it fetches a long range that may have changed.
  hold = rig.task.Next(rig.now);
  rig.log.clear();
  source.Write(4 * kBlock, std::string(8 * kBlock + 7, 'd'));
  rig.Perform(*hold);
  rig.Run();
  EXPECT_EQ(rig.log.substr(0, 4), "ask ") << rig.log;
  std::string wanted = source.bytes;
  for (const uint64_t block : {2U, 3U, 6U, 7U, 10U, 11U})
    wanted.replace(std::min(wanted.size(), block * kBlock), kBlock, Of('\0', 1));
  wanted.resize(rig.own.bytes.size());
  EXPECT_TRUE(rig.own.bytes == wanted);
}

TEST(CopyTask, NoFetchIsLongerThanItMayBeWhereverTheWritesBegin) {
  Peer source{.bytes = Of('a', 1)};
  // Everything on one node: adjacent bytes without a boundary.
  Rig rig(Following(OrderOf(0, kBlock, {{0, 1, {kA}}})), {{kA, &source}},
          {.fetch_bytes = 4 * kBlock});
  rig.Run();
  auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*hold), "hold @1");
  rig.log.clear();
  const uint64_t step = 4 * kBlock - 1000;
  for (uint64_t i = 0; i < 4; ++i)
    source.Write(i * step, std::string(step, static_cast<char>('b' + i)));
  rig.Perform(*hold);
  rig.Run();
  const std::string fetched = "fetch 0-4@1, fetch 4-8@1, fetch 8-12@1, fetch 12-1044576B@1";
  EXPECT_EQ(rig.log, fetched + ", ask 3-4@1, ask 7-8@1, ask 11-12@1") << "where two writes meet";
  EXPECT_TRUE(rig.own.bytes == source.bytes);
  // One write, which touches one block more than it fills.
  hold = rig.task.Next(rig.now);
  rig.log.clear();
  source.Write(kBlock + 1, Of('z', 4));
  rig.Perform(*hold);
  rig.Run();
  EXPECT_EQ(rig.log, "fetch 1-4@1, fetch 4-6@1");
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, WhatIsUnderWayAtTheCloseIsNotFetchedTwice) {
  Peer source{.bytes = Of('a', 4)};
  const CopyOrder last = After(OrderOf(4 * kBlock, kBlock, {{0, 1, {kA}}}));
  CopyOrder first = Following(last);
  first.order = 1;
  Rig rig(first, {{kA, &source}}, {.fetch_bytes = 2 * kBlock});
  rig.Perform(*rig.task.Next(rig.now));
  const auto fetch = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*fetch), "fetch 0-2@1");
  ASSERT_TRUE(rig.task.GoesOnAs(last));
  rig.task.GoOnAs(last);
  rig.Run();
  EXPECT_EQ(rig.log, "ask 2-1026@1, fetch 2-4@1") << "not what is being fetched";
  EXPECT_FALSE(rig.task.done());
  EXPECT_FALSE(rig.task.Settled({0, kBlock}));
  rig.Perform(*fetch);
  EXPECT_FALSE(rig.task.Settled({0, kBlock})) << "it was fetched before the close";
  rig.log.clear();
  rig.Run();
  EXPECT_EQ(rig.log, "ask 0-2@1, cut 4");
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
  EXPECT_EQ(rig.task.fetched_bytes(), 4 * kBlock);
  EXPECT_EQ(rig.task.copied_bytes(), 4 * kBlock);
}

TEST(CopyTask, AShortBlockUnderWayAtTheCloseIsNotFetchedTwiceEither) {
  Peer source{.bytes = Of('a', 1) + "tail"};
  const uint64_t size = source.bytes.size();
  const CopyOrder last = After(OrderOf(size, kBlock, {{0, 1, {kA}}}));
  CopyOrder first = Following(last);
  first.order = 1;
  Rig rig(first, {{kA, &source}});
  rig.Perform(*rig.task.Next(rig.now));
  const auto fetch = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*fetch), "fetch 0-65540B@1");
  rig.task.GoOnAs(last);
  rig.Run();
  rig.Perform(*fetch);
  rig.log.clear();
  rig.Run();
  EXPECT_EQ(rig.log, "ask 0-2@1, cut 65540B");
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
  EXPECT_EQ(rig.task.fetched_bytes(), size);
  EXPECT_EQ(rig.task.copied_bytes(), size) << "each byte is counted once";
}

TEST(CopyTask, AnAnswerToTheOrderBeforeConfirmsNothing) {
  Peer source{.bytes = Of('a', 2)};
  const CopyOrder last = After(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}));
  CopyOrder first = Following(last);
  first.order = 1;
  Rig rig(first, {{kA, &source}});
  rig.Run();
  const auto hold = rig.task.Next(rig.now);
  ASSERT_TRUE(hold && hold->hold);
  rig.task.GoOnAs(last);
  const auto ask = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*ask), "ask 0-1024@1") << "while the other question is held";
  source.Write(0, "x");
  rig.Perform(*hold);
  EXPECT_FALSE(rig.task.Next(rig.now).has_value());
  EXPECT_FALSE(rig.task.Settled({0, 2 * kBlock}));
  rig.task.OnFailed(*hold, UnavailableError("it is over"), rig.now);
  rig.Perform(*ask);
  rig.Run();
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, OnlyWhatFollowsTheSameSourcesGoesOn) {
  const CopyOrder last = After(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}));
  CopyOrder first = Following(last);
  first.order = 1;
  EXPECT_TRUE(CopyTask(first).GoesOnAs(last));
  EXPECT_FALSE(CopyTask(last).GoesOnAs(After(last))) << "it may cut the object at any moment";
  CopyOrder other = After(OrderOf(2 * kBlock, kBlock, {{0, 1, {kB}}}));
  EXPECT_FALSE(CopyTask(first).GoesOnAs(other));
  other = last;
  other.nodes[0].incarnation = 2;
  EXPECT_FALSE(CopyTask(first).GoesOnAs(other));
  CopyTask failed(first);
  failed.OnFailed(*failed.Next(Time{1}), DataLossError("gone"), Time{1});
  EXPECT_FALSE(failed.GoesOnAs(last));
}

}  // namespace
}  // namespace mosa::node
