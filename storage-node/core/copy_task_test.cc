#include "storage-node/core/copy_task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/rng.h"
#include "storage-node/core/copy_task_fixture.h"

namespace mosa::node {
namespace {

using ::testing::HasSubstr;

// ---- one source that does not change

TEST(CopyTask, ASlowSourceKeepsNoOtherWaiting) {
  Peer slow;
  slow.Write(0, Of('s', 64));
  Peer fast = slow;
  // Chunks of one block, alternating between both.
  const CopyLimits limits{.fetch_bytes = kBlock};
  Rig rig(OrderOf(64 * kBlock, kBlock, {{0, 2, {NodeId(1), NodeId(2)}}}),
          {{NodeId(1), &slow}, {NodeId(2), &fast}}, limits);
  size_t of_slow = 0;  // Fetches from `slow`, which never answers one.
  while (const auto action = rig.task.Next(rig.now)) {
    const bool stuck = action->kind == CopyAction::Kind::kFetch && action->source == NodeId(1);
    of_slow += stuck ? 1 : 0;
    if (!stuck) rig.Perform(*action);
  }
  EXPECT_EQ(of_slow, limits.fetches_per_source_max);
  EXPECT_EQ(rig.task.fetched_bytes(), 32 * kBlock) << "all of the other one's";
}

TEST(CopyTask, FetchesWhatDiffersAndNothingElse) {
  struct Row {
    std::string name;
    std::string source;
    std::string own;
    uint64_t size_bytes;
    std::string expected;
  };
  const std::string ab = Of('a', 1) + Of('b', 1);
  const std::string tail = Of('a', 1) + "tail";
  const Row rows[] = {
      {"nothing there", "", "", 0, "ask 0-1024@1, cut 0"},
      {"new", ab, "", 2 * kBlock, "ask 0-1024@1, fetch 0-2@1, ask @1, cut 2"},
      {"equal", ab, ab, 2 * kBlock, "ask 0-1024@1, cut 2"},
      {"one block", ab, Of('a', 1) + Of('x', 1), 2 * kBlock,
       "ask 0-1024@1, fetch 1-2@1, ask @1, cut 2"},
      {"a short block", tail, "", tail.size(),
       "ask 0-1024@1, fetch 0-65540B@1, ask @1, cut 65540B"},
      {"a short block is equal to one with zeroes behind", tail, tail + std::string(9, '\0'),
       tail.size(), "ask 0-1024@1, cut 65540B"},
      {"the own object is longer", ab, ab + Of('c', 1), 2 * kBlock,
       "ask 0-1024@1, clear 2-3, ask @1, cut 2"},
      {"the own object is longer in the last block", tail, tail + "junk", tail.size(),
       "ask 0-1024@1, fetch 1-65540B@1, clear 65540B-65544B, ask @1, cut 65540B"},
      {"a hole", Of('a', 1) + Of('\0', 2) + Of('b', 1), Of('a', 2), 4 * kBlock,
       "ask 0-1024@1, clear 1-2, fetch 3-4@1, ask @1, cut 4"},
      {"nothing beyond the file's end is fetched", ab + Of('c', 1), "", kBlock + 5,
       "ask 0-1024@1, fetch 0-65541B@1, ask @1, cut 65541B"},
      {"nothing beyond the file's end is kept", ab, ab, kBlock,
       "ask 0-1024@1, clear 1-2, ask @1, cut 1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Peer source{.bytes = row.source};
    Rig rig(OrderOf(row.size_bytes, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
    rig.own.bytes = row.own;
    rig.Run();
    EXPECT_EQ(rig.log, row.expected);
    EXPECT_TRUE(rig.task.done());
    std::string wanted = row.source.substr(0, row.size_bytes);
    wanted.resize(std::max(wanted.size(), rig.own.bytes.size()), '\0');
    EXPECT_TRUE(rig.own.bytes == wanted);
  }
}

TEST(CopyTask, FetchesInBoundedPartsAndAsksAhead) {
  Peer source{.bytes = Of('a', 10)};
  Rig rig(OrderOf(10 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}},
          {.fetch_bytes = 4 * kBlock, .window_bytes = 6 * kBlock});
  rig.Run();
  EXPECT_EQ(rig.log,
            "ask 0-6@1, fetch 0-4@1, fetch 4-6@1, ask 6-10@1, fetch 6-8@1, fetch 8-10@1, ask @1, "
            "cut 10");
  EXPECT_EQ(rig.task.fetched_bytes(), 10 * kBlock);
}

TEST(CopyTask, TouchesOnlyWhatItHasASourceFor) {
  // Chunks of one block on two positions, the first of which is not copied; then one page less than
  // a block on another node.
  Peer a{.bytes = Of('a', 6)};
  Peer b{.bytes = Of('b', 8)};
  Rig rig(
      OrderOf(8 * kBlock, kBlock, {{0, 2, {kNoNode, kA}}, {6 * kBlock - kSegmentUnit, 1, {kB}}}),
      {{kA, &a}, {kB, &b}});
  rig.own.bytes = Of('m', 8);
  rig.Run();
  EXPECT_TRUE(rig.task.done());
  std::string wanted = Of('m', 8);
  for (const uint64_t block : {1U, 3U, 5U}) wanted.replace(block * kBlock, kBlock, Of('a', 1));
  wanted.replace(6 * kBlock - kSegmentUnit, 2 * kBlock + kSegmentUnit,
                 std::string(2 * kBlock + kSegmentUnit, 'b'));
  EXPECT_TRUE(rig.own.bytes == wanted);
  EXPECT_THAT(rig.log, ::testing::Not(HasSubstr("cut")));
}

TEST(CopyTask, ChunksSmallerThanABlockAreFetchedWhole) {
  Peer a{.bytes = Of('a', 2)};
  Peer b{.bytes = Of('b', 2)};
  const uint64_t chunk = 3 * 4096;
  Rig rig(OrderOf(2 * kBlock - 100, chunk, {{0, 2, {kA, kB}}}), {{kA, &a}, {kB, &b}});
  rig.Run();
  ASSERT_TRUE(rig.task.done());
  ASSERT_EQ(rig.own.bytes.size(), 2 * kBlock - 100);
  for (uint64_t i = 0; i < rig.own.bytes.size(); ++i)
    ASSERT_EQ(rig.own.bytes[i], i / chunk % 2 == 0 ? 'a' : 'b') << i;
}

// ---- sources that change

TEST(CopyTask, IsNotDoneByWhatASourceSaidBeforeAChange) {
  Peer source{.bytes = Of('a', 2)};
  Rig rig(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
  rig.Perform(*rig.task.Next(rig.now));
  const auto fetch = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*fetch), "fetch 0-2@1");
  rig.Perform(*fetch);
  source.Write(kBlock, "x");
  rig.Run();
  EXPECT_EQ(rig.log, "ask @1, ask 1-2@1, fetch 1-2@1, ask @1, cut 2");
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, AQuestionUnderWayWhenAFetchEndsDoesNotConfirmIt) {
  Peer source{.bytes = Of('a', 2)};
  Rig rig(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}}, {.window_bytes = kBlock});
  rig.Perform(*rig.task.Next(rig.now));
  const auto fetch = rig.task.Next(rig.now);
  const auto ask = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*ask), "ask 1-2@1");
  const BlockSums said = SumsOf(source, ask->range, ask->after_change);
  source.Write(0, "y");  // After the answer left, before the bytes did, or the other way round.
  rig.Perform(*fetch);
  rig.task.OnSums(*ask, said, SumsOf(rig.own, ask->range, 0), rig.now);
  EXPECT_FALSE(rig.task.Settled({0, 2 * kBlock}));
  rig.Run();
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, WaitsWhileLocalProgramsMayWriteUnseen) {
  Peer source{.bytes = Of('a', 1)};
  source.quiet = false;
  Rig rig(OrderOf(kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
  rig.Run();
  EXPECT_EQ(rig.log, "ask 0-1024@1, fetch 0-1@1");
  EXPECT_FALSE(rig.task.done());
  const auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*hold), "hold @1");
  source.bytes[7] = 'x';  // A change that nobody has seen.
  source.SetQuiet(true);
  rig.Perform(*hold);
  rig.Run();
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

// What it was not quiet about may have been reported with an earlier answer.
TEST(CopyTask, IsDoneWhenASourceIsQuietAgainAndReportsNoChange) {
  Peer source{.bytes = Of('a', 2)};
  source.quiet = false;
  Rig rig(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
  rig.Run();
  EXPECT_FALSE(rig.task.done());
  const auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*hold), "hold @1");
  source.quiet = true;
  rig.Perform(*hold);
  rig.Run();
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, AHeldQuestionIsAboutWhatComesFromThatSource) {
  // It copies two positions of a stripe over three nodes.
  Peer source{.bytes = Of('a', 6)};
  CopyOrder order = OrderOf(6 * kBlock, kBlock, {{0, 3, {kA, kB, kNoNode}}});
  Peer other{.bytes = Of('b', 6)};
  source.quiet = other.quiet = false;  // So that nothing is settled yet.
  Rig rig(order, {{kA, &source}, {kB, &other}});
  rig.Run();
  std::map<NodeId, std::vector<ByteRange>> about;
  while (const auto hold = rig.task.Next(rig.now)) {
    ASSERT_TRUE(hold->hold);
    about[hold->source] = hold->about;
  }
  const ByteRange end{6 * kBlock, kFileBytesMax};
  EXPECT_EQ(about[kA], (std::vector<ByteRange>{{0, kBlock}, {3 * kBlock, 4 * kBlock}, end}));
  EXPECT_EQ(about[kB],
            (std::vector<ByteRange>{{kBlock, 2 * kBlock}, {4 * kBlock, 5 * kBlock}, end}));
}

TEST(CopyTask, WhatOthersSendToASourceKeepsNoQuestionWaiting) {
  Peer source{.bytes = Of('a', 4)};
  Rig rig(Following(OrderOf(0, kBlock, {{0, 2, {kA, kNoNode}}})), {{kA, &source}});
  rig.Run();
  const auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*hold), "hold @1");
  source.Write(0, "x");
  source.Write(kBlock, "y");  // At a position that is not copied from there.
  rig.Perform(*hold);
  const auto fetch = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*fetch), "fetch 0-1@1");
  const auto again = rig.task.Next(rig.now);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(Show(*again), "hold @1");
  source.Write(kBlock, "z");
  EXPECT_FALSE(EndsTheWait(source, *again));
  source.Write(2 * kBlock, "z");
  EXPECT_TRUE(EndsTheWait(source, *again));
}

TEST(CopyTask, AQuestionAboutTooManyRangesIsAboutAllBehindThem) {
  const uint64_t blocks = 4 * kAboutRangesMax;
  CopyOrder order = Following(OrderOf(blocks * kBlock, kBlock, {{0, 2, {kA, kNoNode}}}));
  Peer source{.bytes = Of('a', blocks)};
  Rig rig(order, {{kA, &source}});
  rig.Run();
  const auto hold = rig.task.Next(rig.now);
  ASSERT_TRUE(hold && hold->hold);
  ASSERT_EQ(hold->about.size(), kAboutRangesMax);
  EXPECT_EQ(hold->about.front(), (ByteRange{0, kBlock}));
  EXPECT_EQ(hold->about.back(), (ByteRange{2 * (kAboutRangesMax - 1) * kBlock, kFileBytesMax}));
}

// ---- failures

TEST(CopyTask, ASourceThatDoesNotAnswerIsGivenUpAfterAWhile) {
  struct Row {
    StatusCode code;
    int64_t seconds;  // Until it is given up; 0: at once.
    StatusCode reported;
  };
  const Row rows[] = {
      {StatusCode::kUnavailable, 9, StatusCode::kUnavailable},
      {StatusCode::kDeadlineExceeded, 9, StatusCode::kUnavailable},
      {StatusCode::kPermissionDenied, 9, StatusCode::kPermissionDenied},
      {StatusCode::kResourceExhausted, 0, StatusCode::kResourceExhausted},
      {StatusCode::kDataLoss, 0, StatusCode::kDataLoss},
  };
  for (const Row& row : rows) {
    Peer source{.bytes = Of('a', 1)};
    Rig rig(OrderOf(kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
    const Time begun = rig.now;
    int tries = 0;
    while (!rig.task.finished() && ++tries < 100) {
      const auto action = rig.task.Next(rig.now);
      if (action) {
        rig.task.OnFailed(*action, Status(row.code, "no"), rig.now);
      } else {
        ASSERT_TRUE(rig.task.next_time(rig.now));
        rig.now = *rig.task.next_time(rig.now);
      }
    }
    ASSERT_TRUE(rig.task.failure());
    EXPECT_EQ(rig.task.failure()->code, row.reported);
    EXPECT_GE((rig.now - begun).ns, Seconds(row.seconds).ns);
    EXPECT_LT((rig.now - begun).ns, Seconds(row.seconds + 2).ns);
    EXPECT_LT(tries, 40);
  }
}

TEST(CopyTask, WhatFailedIsTriedAgainInTimeThoughAQuestionIsHeld) {
  Peer source{.bytes = Of('a', 2)};
  Rig rig(Following(OrderOf(0, kBlock, {{0, 1, {kA}}})), {{kA, &source}}, {.fetch_bytes = kBlock});
  rig.Perform(*rig.task.Next(rig.now));
  const auto fetch = rig.task.Next(rig.now);
  const auto second = rig.task.Next(rig.now);
  const auto hold = rig.task.Next(rig.now);
  ASSERT_EQ(Show(*fetch) + ", " + Show(*second) + ", " + Show(*hold),
            "fetch 0-1@1, fetch 1-2@1, hold @1");
  rig.task.OnFailed(*fetch, UnavailableError("gone"), rig.now);
  EXPECT_TRUE(rig.task.next_time(rig.now));
  rig.Perform(*second);
  rig.Perform(*hold);
  EXPECT_FALSE(rig.task.Next(rig.now));
  ASSERT_TRUE(rig.task.next_time(rig.now));
  rig.now = *rig.task.next_time(rig.now);
  rig.Run();
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, GoesOnWhenTheSourceAnswersAgain) {
  Peer source{.bytes = Of('a', 3)};
  Rig rig(OrderOf(3 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}}, {.fetch_bytes = kBlock});
  Rng rng(7);
  for (int i = 0; i < 1000 && !rig.task.done(); ++i) {
    const auto action = rig.task.Next(rig.now);
    if (!action) {
      ASSERT_TRUE(rig.task.next_time(rig.now));
      rig.now = *rig.task.next_time(rig.now);
    } else if (rng.Chance(400)) {
      rig.task.OnFailed(*action, UnavailableError("gone"), rig.now);
    } else {
      rig.Perform(*action);
    }
  }
  EXPECT_TRUE(rig.task.done());
  EXPECT_TRUE(rig.own.bytes == source.bytes);
}

TEST(CopyTask, ASourceThatOnlyAnswersQuestionsIsGivenUpToo) {
  Peer source{.bytes = Of('a', 1)};
  Rig rig(OrderOf(kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
  for (int i = 0; i < 1000 && !rig.task.finished(); ++i) {
    const auto action = rig.task.Next(rig.now);
    if (!action) {
      ASSERT_TRUE(rig.task.next_time(rig.now));
      rig.now = *rig.task.next_time(rig.now);
    } else if (action->kind == CopyAction::Kind::kFetch) {
      rig.task.OnFailed(*action, DeadlineExceededError("too slow"), rig.now);
    } else {
      rig.Perform(*action);
    }
  }
  ASSERT_TRUE(rig.task.failure());
  EXPECT_EQ(rig.task.failure()->code, StatusCode::kUnavailable);
}

TEST(CopyTask, DoesNotTakeAnEmptyRestartedNodeForTheSource) {
  Peer source{.bytes = Of('a', 2)};
  Rig rig(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &source}});
  rig.Perform(*rig.task.Next(rig.now));
  source = Peer{.incarnation = 2};
  rig.Run();
  ASSERT_TRUE(rig.task.failure());
  EXPECT_EQ(rig.task.failure()->code, StatusCode::kUnavailable);
  EXPECT_THAT(rig.task.failure()->message, HasSubstr("has restarted"));
}

// ---- relays

TEST(CopyTask, ARelayCountsOnceItHasTheVersionForGood) {
  Peer primary{.bytes = Of('a', 2)};
  Rig relay(OrderOf(2 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &primary}});
  CopyOrder order = OrderOf(2 * kBlock, kBlock, {{0, 1, {kB}}});
  order.relays = {{kB, relay.task.order().order}};
  Rig last(order, {{kB, &relay.own}});
  relay.own.bytes = last.own.bytes = Of('o', 2);  // Their content before the file was rewritten.
  last.Run();
  EXPECT_FALSE(last.task.done());  // The relay has not received its order.
  relay.own.task = &relay.task;
  for (int i = 0; i < 10 && !last.task.finished(); ++i) {
    relay.Run();
    const auto hold = last.task.Next(last.now);
    ASSERT_TRUE(hold.has_value());
    EXPECT_TRUE(EndsTheWait(relay.own, *hold));
    last.Perform(*hold);
    last.Run();
  }
  EXPECT_TRUE(last.task.done());
  EXPECT_TRUE(last.own.bytes == primary.bytes);
}

// Otherwise it would learn of the end only when its question ends, after a second.
TEST(CopyTask, WhoWaitsForARelaysEndIsToldOfIt) {
  for (const uint64_t size : {2 * kBlock, kBlock + 5}) {
    SCOPED_TRACE(size);
    Peer primary{.bytes = std::string(size, 'a')};
    Rig relay(OrderOf(size, kBlock, {{0, 1, {kA}}}), {{kA, &primary}});
    uint64_t change_before = 0;
    for (int i = 0; i < 100 && !relay.task.done(); ++i) {
      const auto step = relay.task.Next(relay.now);
      ASSERT_TRUE(step.has_value());
      change_before = relay.own.change;
      relay.Perform(*step);
    }
    ASSERT_TRUE(relay.task.done());
    EXPECT_GT(relay.own.change, change_before);
    // Not for bytes that it has already: these would be compared again.
    const auto changed = relay.own.log.Since(change_before);
    ASSERT_TRUE(changed.has_value());
    for (const ByteRange& range : *changed) EXPECT_GE(range.begin, size);
  }
}

// It cannot announce what becomes settled, since it has no object.
TEST(CopyTask, ARelayThatNeverHasTheObjectComesToAnEnd) {
  Peer primary;
  primary.Drop();
  Rig relay(OrderOf(9 * kBlock, kBlock, {{0, 1, {kA}}}), {{kA, &primary}});
  relay.own.Drop();
  relay.own.task = &relay.task;
  CopyOrder order = OrderOf(9 * kBlock, kBlock, {{0, 1, {kB}}});
  order.relays = {{kB, relay.task.order().order}};
  Rig last(order, {{kB, &relay.own}}, {.window_bytes = 2 * kBlock});
  last.own.bytes = Of('o', 7);
  last.Run();
  EXPECT_FALSE(last.task.done());
  EXPECT_EQ(last.own.bytes, Of('o', 7)) << "what a relay has not got yet is no hole";
  relay.Run();
  ASSERT_TRUE(relay.task.done());
  const auto hold = last.task.Next(last.now);
  ASSERT_TRUE(hold && hold->hold);
  last.Perform(*hold);
  last.Run();
  EXPECT_TRUE(last.task.done());
  EXPECT_EQ(last.own.bytes.find_first_not_of('\0'), std::string::npos);
}

// Under the earlier order the relay fetched other parts of the file.
TEST(CopyTask, WhatARelayHasDoneByAnEarlierOrderDoesNotCount) {
  Peer primary{.bytes = Of('a', 2)};
  Rig relay(OrderOf(2 * kBlock, kBlock, {{0, 2, {kA, kNoNode}}}), {{kA, &primary}});
  relay.own.task = &relay.task;
  relay.Run();
  ASSERT_TRUE(relay.task.done());
  CopyOrder order = OrderOf(2 * kBlock, kBlock, {{0, 2, {kNoNode, kB}}});
  order.relays = {{kB, relay.task.order().order + 1}};
  Rig last(order, {{kB, &relay.own}});
  last.Run();
  EXPECT_FALSE(last.task.finished());
}

TEST(CopyTask, ARelayThatNeverHearsOfItsOrderIsGivenUp) {
  Peer stale{.bytes = Of('a', 2)};
  CopyOrder order = OrderOf(2 * kBlock, kBlock, {{0, 1, {kB}}});
  order.relays = {{kB, 7}};
  Rig rig(order, {{kB, &stale}});
  for (int i = 0; i < 30 && !rig.task.finished(); ++i) {
    rig.Run();
    if (const auto hold = rig.task.Next(rig.now)) rig.Perform(*hold);
    rig.now = rig.now + Seconds(1);
  }
  ASSERT_TRUE(rig.task.failure());
  EXPECT_THAT(rig.task.failure()->message, HasSubstr("has had no copy order for it for 10 s"));
}

// Three copies of a striped file, each on the next node of the stripe: every node is a relay for
// another, in a circle, and receives its order at some time. Events happen in random order, several
// at once.
void RunCircles(bool has_bytes) {
  const uint64_t seed = 20251121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (const uint64_t chunk : {kBlock, kBlock + 4096, 5 * kBlock}) {
    constexpr uint32_t kWidth = 4;
    const uint64_t size = 41 * kBlock + 777;
    std::string file(size, '\0');
    for (uint64_t i = 0; i < size; ++i) file[i] = static_cast<char>('a' + i / 1000 % 26);
    const auto position = [&](uint64_t at) { return at / chunk % kWidth; };
    std::vector<std::unique_ptr<Rig>> rigs;
    for (uint32_t n = 0; n < kWidth; ++n) {
      Segment segment{0, kWidth, {}};
      CopyOrder order;
      std::vector<CopyRelay> relays;
      for (uint32_t p = 0; p < kWidth; ++p) {
        const uint32_t copy = (n + kWidth - p) % kWidth;  // Node n holds this copy of position p.
        const NodeId before{(n + kWidth - 1) % kWidth + 1};
        segment.nodes.push_back(copy == 1 || copy == 2 ? before : kNoNode);
        if (copy == 2) relays.push_back({before, 1});
      }
      order = OrderOf(size, chunk, {segment});
      order.relays = relays;
      rigs.push_back(
          std::make_unique<Rig>(order, std::map<NodeId, Peer*>{},
                                CopyLimits{.fetch_bytes = 2 * kBlock, .window_bytes = 7 * kBlock}));
      if (!has_bytes) rigs[n]->own.Drop();
      for (uint64_t i = 0; has_bytes && i < size; ++i) {
        if (position(i) == n) {
          rigs[n]->own.bytes.resize(i + 1, '\0');
          rigs[n]->own.bytes[i] = file[i];
        }
      }
    }
    for (uint32_t n = 0; n < kWidth; ++n) {
      rigs[n]->peers[NodeId{(n + kWidth - 1) % kWidth + 1}] = &rigs[(n + kWidth - 1) % kWidth]->own;
    }
    std::vector<std::vector<CopyAction>> under_way(kWidth);
    size_t steps = 0;
    const auto is_done = [](const auto& rig) { return rig->task.done(); };
    while (!std::ranges::all_of(rigs, is_done) && ++steps < 20'000) {
      const auto n = static_cast<uint32_t>(rng.Below(kWidth));
      if (rigs[n]->own.task == nullptr) {
        if (rng.Chance(10)) rigs[n]->own.task = &rigs[n]->task;
      } else if (rng.Chance(500)) {
        if (auto action = rigs[n]->task.Next(rigs[n]->now)) under_way[n].push_back(*action);
      } else if (!under_way[n].empty()) {
        const size_t i = rng.Below(under_way[n].size());
        rigs[n]->Perform(under_way[n][i]);
        under_way[n].erase(under_way[n].begin() + static_cast<int64_t>(i));
      }
    }
    ASSERT_TRUE(std::ranges::all_of(rigs, is_done)) << "chunks of " << chunk;
    for (uint32_t n = 0; n < kWidth; ++n) {
      for (uint64_t i = 0; has_bytes && i < size; ++i) {
        if ((n + kWidth - position(i)) % kWidth <= 2) {
          ASSERT_EQ(rigs[n]->own.bytes[i], file[i]) << n << " at " << i;
        }
      }
    }
  }
}

TEST(CopyTask, CirclesOfRelaysComeToAnEnd) { RunCircles(true); }

// If a file is one hole, no node has an object, so none can announce what has become settled.
TEST(CopyTask, CirclesOfRelaysWithoutObjectsComeToAnEnd) { RunCircles(false); }

TEST(CopyTask, EndsEqualWhateverHappensMeanwhile) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Peer source;
    const CopyOrder last = After(OrderOf(20 * kBlock, kBlock, {{0, 1, {kA}}}));
    CopyOrder first = Following(last);
    first.order = 1;
    const bool follows = seed % 2 == 0;
    const uint64_t closed_at = rng.Below(400);
    Rig rig(follows ? first : last, {{kA, &source}},
            {.fetch_bytes = 2 * kBlock, .window_bytes = 5 * kBlock});
    rig.own.bytes = Of('o', rng.Below(25));
    std::vector<CopyAction> under_way;
    std::string when_asked;  // The source at the last question.
    bool lent = false;
    for (uint64_t step = 0; step < 4000 && !rig.task.done(); ++step) {
      const bool changes = step < 300;
      if (follows && step == closed_at && !rig.task.failure()) rig.task.GoOnAs(last);
      const uint64_t at = rng.Below(20 * kBlock - 5000);
      if (changes && rng.Chance(100)) source.Write(at, std::string(rng.Below(5000) + 1, 's'));
      if (changes && rng.Chance(30)) source.Cut(at);
      if (changes && !lent && rng.Chance(10)) source.Drop();
      if (changes ? rng.Chance(20) : lent) source.SetQuiet(std::exchange(lent, !lent));
      if (lent && rng.Chance(200) && at < source.bytes.size()) source.bytes[at] = 'u';
      if (rng.Chance(500)) {
        if (auto action = rig.task.Next(rig.now)) under_way.push_back(*action);
      } else if (!under_way.empty()) {
        const size_t i = rng.Below(under_way.size());
        if (changes && rng.Chance(50)) {
          rig.task.OnFailed(under_way[i], UnavailableError("a fault"), rig.now);
          rig.now = rig.now + Seconds(1);
        } else {
          if (under_way[i].kind == CopyAction::Kind::kAsk) when_asked = source.bytes;
          rig.Perform(under_way[i]);
        }
        under_way.erase(under_way.begin() + static_cast<int64_t>(i));
      }
    }
    ASSERT_TRUE(rig.task.done() || rig.task.failure());
    if (rig.task.failure()) continue;  // A failure of the last step, the cut.
    source.bytes = when_asked;         // Later changes belong to another version.
    // Past the shorter one's end, the other has zeroes.
    const size_t both = std::min(source.bytes.size(), rig.own.bytes.size());
    ASSERT_TRUE(rig.own.bytes.substr(0, both) == source.bytes.substr(0, both));
    ASSERT_TRUE(source.bytes.find_first_not_of('\0', both) == std::string::npos);
    ASSERT_TRUE(rig.own.bytes.find_first_not_of('\0', both) == std::string::npos);
    ++ended;
  }
  EXPECT_GT(ended, 40);
}

}  // namespace
}  // namespace mosa::node
