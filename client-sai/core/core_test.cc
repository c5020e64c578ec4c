#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client-sai/core/block_index.h"
#include "client-sai/core/read_ahead.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/size_in_kernel.h"
#include "client-sai/core/write_buffer.h"
#include "common/base/rng.h"
#include "common/model/session.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(ReadAhead, OpensItsWindowForStreamsOnly) {
  struct Row {
    ByteRange read;
    ByteRange fetch;
  };
  const uint64_t file = 100 * kMiB;
  const uint64_t k128 = 128 << 10;
  const std::vector<std::vector<Row>> streams = {
      // A single read of the beginning prefetches nothing.
      {{{0, 4096}, {}}},
      // The second consecutive read opens a window of 1 MiB; later ones double it up to the limit.
      {{{0, k128}, {}},
       {{k128, 2 * k128}, {k128, 2 * k128 + kMiB}},
       {{2 * k128, 3 * k128}, {}},
       {{6 * k128, 7 * k128}, {2 * k128 + kMiB, 7 * k128 + 2 * kMiB}}},
      // The disorder of the kernel's own read-ahead is tolerated.
      {{{0, k128}, {}},
       {{k128, 2 * k128}, {k128, 2 * k128 + kMiB}},
       {{3 * k128, 4 * k128}, {}},
       {{2 * k128, 3 * k128}, {}}},
      // So is that of its largest reads.
      {{{0, kMiB}, {}},
       {{kMiB, 2 * kMiB}, {kMiB, 3 * kMiB}},
       {{3 * kMiB, 4 * kMiB}, {3 * kMiB, 6 * kMiB}},
       {{2 * kMiB, 3 * kMiB}, {}},
       {{4 * kMiB, 5 * kMiB}, {6 * kMiB, 9 * kMiB}}},
      // Random reads, and a jump out of a stream.
      {{{50 * kMiB, 51 * kMiB}, {}}, {{10 * kMiB, 11 * kMiB}, {}}, {{90 * kMiB, 91 * kMiB}, {}}},
      // The file's end is a limit.
      {{{99 * kMiB, 99 * kMiB + k128}, {}},
       {{99 * kMiB + k128, 99 * kMiB + 2 * k128}, {99 * kMiB + k128, 100 * kMiB}},
       {{99 * kMiB + 2 * k128, 99 * kMiB + 3 * k128}, {}}},
  };
  for (size_t s = 0; s < streams.size(); ++s) {
    ReadAhead machine;
    for (size_t i = 0; i < streams[s].size(); ++i) {
      const ByteRange got = machine.OnRead(streams[s][i].read, file, 4 * kMiB);
      const ByteRange want = streams[s][i].fetch;
      EXPECT_TRUE(want.empty() ? got.empty() : got == want)
          << "stream " << s << " read " << i << ": " << got.begin << "-" << got.end;
    }
  }
}

TEST(ReadAhead, OfAPartOfAFileGrowsWithWhatWasRead) {
  const uint64_t begin = 100 * kMiB;
  ReadAhead machine;
  uint64_t asked_end = begin;
  for (uint64_t read = kMiB; read <= 128 * kMiB; read += kMiB) {
    const uint64_t end = begin + read;
    asked_end =
        std::max({asked_end, end, machine.OnRead({end - kMiB, end}, 1000 * kMiB, 24 * kMiB).end});
    const uint64_t ahead = asked_end - end;
    EXPECT_LE(ahead, std::max(2 * kMiB, std::min(read / 4, 24 * kMiB))) << read;
    if (read >= 2 * kMiB) {
      EXPECT_GE(ahead, std::min(read / 4, 24 * kMiB) / 2) << read;
    }
  }
}

// Reading a little of every fourth MiB fetches little.
TEST(ReadAhead, OfAPartWithGapsGrowsWithWhatWasReadToo) {
  ReadAhead machine;
  const uint64_t k128 = 128 << 10;
  const auto read = [&](uint64_t at) {
    return machine.OnRead({at, at + k128}, 1000 * kMiB, 24 * kMiB);
  };
  read(100 * kMiB);
  uint64_t asked_bytes = read(100 * kMiB + k128).size();
  for (uint64_t i = 1; i <= 40; ++i) asked_bytes += read((100 + 4 * i) * kMiB).size();
  EXPECT_LE(asked_bytes, 41 * 3 * kMiB);
}

void Store(const Extent& extent, std::string& file) {
  const std::span<const std::byte> bytes = extent.bytes();
  file.replace(extent.offset, bytes.size(), reinterpret_cast<const char*>(bytes.data()),
               bytes.size());
}

TEST(WriteBuffer, HoldsWhatAFileWouldHold) {
  const uint64_t seed = 77;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  constexpr uint64_t kChunk = 64;
  WriteBuffer buffer;
  std::string model(512, '.');
  std::string stored(512, '.');
  std::vector<std::shared_ptr<const Extent>> taken;
  for (int step = 0; step < 20000; ++step) {
    const uint64_t what = rng.Below(10);
    if (what < 7) {
      const uint64_t offset = rng.Below(512);
      const uint64_t limit = WriteBuffer::BoundaryAfter(offset, kChunk) - offset;
      std::string data(1 + rng.Below(limit), static_cast<char>('a' + rng.Below(26)));
      if (buffer.OverlapsTaken({offset, offset + data.size()})) continue;
      buffer.Put(offset, std::as_bytes(std::span(data)), kChunk);
      model.replace(offset, data.size(), data);
    } else if (what < 8) {
      for (auto& extent : buffer.Take(rng.Chance(500), kChunk)) taken.push_back(extent);
    } else if (!taken.empty()) {
      const auto extent = taken.back();
      taken.pop_back();
      if (rng.Chance(200)) {
        buffer.PutBack(*extent);
      } else {
        Store(*extent, stored);
        buffer.Finish(*extent);
      }
    }
  }
  for (auto& extent : buffer.Take(true, kChunk)) taken.push_back(extent);
  for (const auto& extent : taken) {
    Store(*extent, stored);
    buffer.Finish(*extent);
  }
  EXPECT_EQ(stored, model);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.bytes(), 0u);
}

TEST(WriteBuffer, LentMemoryIsKeptForAWholeExtentAndNeverChanged) {
  constexpr uint64_t kChunk = 4 * kMiB;
  const auto memory = std::make_shared<const std::string>(kMiB, 'm');
  const auto lent = std::as_bytes(std::span(*memory));
  const std::string patch = "patch";
  const auto patched = std::as_bytes(std::span(patch));
  WriteBuffer buffer;
  std::string stored(4 * kMiB, '.');
  // Sent without a copy.
  EXPECT_EQ(buffer.Put(0, lent, kChunk, {memory, 0}), kMiB);
  auto taken = buffer.Take(false, kChunk);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->bytes().data(), lent.data());
  buffer.PutBack(*taken[0]);
  // Overwritten while it waits: copied.
  EXPECT_EQ(buffer.Put(100, patched, kChunk), 0u);
  taken = buffer.Take(false, kChunk);
  ASSERT_EQ(taken.size(), 1u);
  Store(*taken[0], stored);
  buffer.Finish(*taken[0]);
  EXPECT_EQ(stored.substr(98, 9), "mmpatchmm");
  // Truncated.
  EXPECT_EQ(buffer.Put(kMiB, lent, kChunk, {memory, 0}), kMiB);
  EXPECT_EQ(buffer.Cut(kMiB + 10), kMiB - 10);
  EXPECT_EQ(buffer.bytes(), 10u);
  // Not borrowed: part of this extent is open already, and the other is not whole.
  EXPECT_EQ(buffer.Put(kMiB, lent, kChunk, {memory, 0}), kMiB - 10);
  EXPECT_EQ(buffer.Put(3 * kMiB, lent.first(kMiB - 1), kChunk, {memory, 0}), kMiB - 1);
  for (const auto& extent : buffer.Take(true, kChunk)) {
    EXPECT_NE(extent->bytes().data(), lent.data());
    buffer.Finish(*extent);
  }
  taken.clear();
  EXPECT_EQ(*memory, std::string(kMiB, 'm'));
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(WriteBuffer, TheRestOfAnExtentGoesBehindTheLentBytes) {
  constexpr uint64_t kChunk = 4 * kMiB;
  const auto memory = std::make_shared<std::string>(kMiB, 'm');
  const auto lent = std::as_bytes(std::span(*memory)).first(kMiB - 16);
  const std::string rest = "the last sixteen";
  const auto rest_bytes = std::as_bytes(std::span(rest));
  WriteBuffer buffer;
  std::string stored(2 * kMiB, '.');
  EXPECT_EQ(buffer.Put(0, lent, kChunk, {memory, 16}), kMiB - 16);
  EXPECT_TRUE(buffer.Take(false, kChunk).empty());
  EXPECT_EQ(buffer.Put(kMiB - 16, rest_bytes, kChunk), 16u);
  // Too little spare room behind it: copied.
  EXPECT_EQ(buffer.Put(kMiB, lent, kChunk, {memory, 15}), kMiB - 16);
  EXPECT_EQ(buffer.Put(2 * kMiB - 16, rest_bytes, kChunk), 16u);
  auto taken = buffer.Take(false, kChunk);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0]->bytes().data(), lent.data());
  EXPECT_NE(taken[1]->bytes().data(), lent.data());
  for (const auto& extent : taken) {
    Store(*extent, stored);
    buffer.Finish(*extent);
  }
  EXPECT_EQ(buffer.bytes(), 0u);
  const std::string whole = std::string(kMiB - 16, 'm') + rest;
  // The rest is laid over bytes that are already there.
  EXPECT_EQ(buffer.Put(0, lent, kChunk, {memory, 16}), kMiB - 16);
  EXPECT_EQ(buffer.Put(kMiB - 4, std::as_bytes(std::span(whole)).first(4), kChunk), 4u);
  EXPECT_EQ(buffer.Put(kMiB - 16, rest_bytes, kChunk), 12u);
  taken = buffer.Take(true, kChunk);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->bytes().size(), kMiB);
  EXPECT_EQ(std::memcmp(taken[0]->bytes().data(), whole.data(), kMiB), 0);
  EXPECT_EQ(stored, whole + whole);
}

TEST(WriteBuffer, TakesAnExtentWhenItReachesItsBoundary) {
  WriteBuffer buffer;
  const std::string half(32, 'x');
  const auto bytes = std::as_bytes(std::span(half));
  EXPECT_EQ(buffer.Put(0, bytes, 64), 32u);
  EXPECT_TRUE(buffer.Take(false, 64).empty());
  EXPECT_EQ(buffer.Put(16, bytes, 64), 16u);
  EXPECT_EQ(buffer.Put(32, bytes, 64), 16u);
  EXPECT_EQ(buffer.Take(false, 64).size(), 1u);
  EXPECT_TRUE(buffer.OverlapsTaken({63, 64}));
  EXPECT_FALSE(buffer.OverlapsTaken({64, 65}));
}

TEST(WriteBuffer, CutsWhatATruncateRemoves) {
  WriteBuffer buffer;
  const std::string data(40, 'x');
  buffer.Put(0, std::as_bytes(std::span(data)), 64);
  buffer.Put(64, std::as_bytes(std::span(data)), 64);
  EXPECT_EQ(buffer.Cut(10), 70u);
  EXPECT_EQ(buffer.bytes(), 10u);
  EXPECT_FALSE(buffer.Overlaps({10, 200}));
}

TEST(Rules, PassthroughWritesNeedAmpleRoom) {
  struct Row {
    uint64_t free_mib, limit_mib;
    bool allowed;
  };
  const Row rows[] = {{0, 0, false},        {64, 64, false},     {1023, 1024, false},
                      {1024, 1024, true},   {1024, 4096, true},  {1024, 4100, false},
                      {4095, 16384, false}, {4096, 16384, true}, {16384, 16384, true}};
  for (const Row& row : rows)
    EXPECT_EQ(PassthroughWriteAllowed(row.free_mib * kMiB, row.limit_mib * kMiB), row.allowed)
        << row.free_mib << " of " << row.limit_mib;
}

TEST(Rules, GrantsDoubleUpToTheirLimit) {
  EXPECT_EQ(GrantWish(1, 0), 4 * kMiB);
  EXPECT_EQ(GrantWish(1, 4 * kMiB), 8 * kMiB);
  EXPECT_EQ(GrantWish(1, 64 * kMiB), 64 * kMiB);
  EXPECT_EQ(GrantWish(100 * kMiB, 0), 100 * kMiB);
  EXPECT_TRUE(GrantIsLow(kMiB, 4 * kMiB));
  EXPECT_FALSE(GrantIsLow(2 * kMiB, 4 * kMiB));
}

TEST(Rules, AFullStoreIsAskedThreeTimesMore) {
  EXPECT_EQ(NoSpaceDelay(0), Milliseconds(50));
  EXPECT_EQ(NoSpaceDelay(2), Milliseconds(400));
  EXPECT_EQ(NoSpaceDelay(3), std::nullopt);
}

TEST(Rules, ReadsAheadFromAllNodesOfAStripe) {
  Layout one{
      .chunk_bytes = 4 * kMiB, .segments = {{.width = 1, .nodes = {NodeId{1}}}}, .reason = {}};
  Layout three{.chunk_bytes = 256 << 10,
               .segments = {{.width = 3, .nodes = {NodeId{1}, NodeId{2}, NodeId{3}}}},
               .reason = {}};
  EXPECT_EQ(LaneOf(one, 5 * kMiB), 0U);
  EXPECT_EQ(LaneOf(three, kMiB - 1), 0U) << "a block comes from several nodes";
  EXPECT_EQ(LaneOf(three, 5 * kMiB), 2U);
  three.chunk_bytes = 2 * kMiB;
  EXPECT_EQ(LaneOf(three, 3 * kMiB), 1U) << "the node that has the block";
  EXPECT_EQ(FetchesPerLane(one), 4U);
  EXPECT_EQ(FetchesPerLane(three), 1U);
  EXPECT_EQ(CacheShare(48 * kMiB, 0), 48 * kMiB);
  EXPECT_EQ(CacheShare(48 * kMiB, 100), kMiB) << "one block at least";
  EXPECT_EQ(ReadWindow(one, 64 * kMiB, 48 * kMiB), 8 * kMiB);
  EXPECT_EQ(ReadWindow(three, 64 * kMiB, 48 * kMiB), 24 * kMiB);
  EXPECT_EQ(ReadWindow(three, 4 * kMiB, 48 * kMiB), 4 * kMiB);
  EXPECT_EQ(ReadWindow(three, 64 * kMiB, kMiB), kMiB);
}

TEST(Rules, RetriesAreBoundedAndEndWithTheNode) {
  EXPECT_EQ(RetryDelay(1, Seconds(0), true), Milliseconds(20));
  EXPECT_EQ(RetryDelay(2, Seconds(0), true), Milliseconds(40));
  EXPECT_EQ(RetryDelay(30, Seconds(1), true), Milliseconds(1000));
  EXPECT_EQ(RetryDelay(1, Seconds(10), true), std::nullopt);
  EXPECT_EQ(RetryDelay(1, Seconds(0), false), std::nullopt);
}

TEST(Rules, ReadsTheNearestCopyFirst) {
  const NodeId a{1}, b{2}, c{3};
  EXPECT_EQ(OrderCopies({{a, false, true}, {b, true, true}, {c, false, false}}, 0),
            (std::vector{b, a, c}));
  EXPECT_EQ(OrderCopies({{a, false, true}, {b, false, true}, {c, false, true}}, 1),
            (std::vector{b, c, a}));
  EXPECT_EQ(OrderCopies({{a, false, false}, {b, false, true}}, 5), (std::vector{b, a}));
}

TEST(Rules, AWriteTakesWhatItsWriterMayNotKeep) {
  for (const auto& [before, after] : {std::pair{0755U, 0755U},
                                      {04755U, 0755U},
                                      {06755U, 0755U},
                                      {02644U, 02644U},
                                      {06644U, 02644U},
                                      {01777U, 01777U}})
    EXPECT_EQ(WithoutPrivileges(before), after) << std::oct << before;
}

TEST(Rules, PagesOfAWriteThatWentPastThemAreKeptOnlyIfNobodyCanHaveFilledOneMeanwhile) {
  using enum PagesAfterWrite;
  struct Row {
    bool kernel_drops, opened_meanwhile, open_now;
    PagesAfterWrite expected;
  };
  for (const Row& row : {Row{true, false, false, kKeep}, Row{true, true, false, kForget},
                         Row{true, false, true, kDrop}, Row{true, true, true, kDrop},
                         Row{false, false, false, kForget}, Row{false, true, false, kForget},
                         Row{false, false, true, kDrop}, Row{false, true, true, kDrop}})
    EXPECT_EQ(PagesAfter({.kernel_drops_pages = row.kernel_drops,
                          .opened_meanwhile = row.opened_meanwhile,
                          .open_by_pages = row.open_now}),
              row.expected)
        << row.kernel_drops << row.opened_meanwhile << row.open_now;
}

TEST(Rules, ACachedRightServesUntilItIsOutdatedOrExpires) {
  const Time now = Time{} + Seconds(1000);
  const CachedRight right{.is_current = true, .has_attributes = true, .serves = true};
  EXPECT_TRUE(MayUseCached(right, true, now));
  for (bool CachedRight::*lacks : {&CachedRight::is_current, &CachedRight::serves}) {
    CachedRight other = right;
    other.*lacks = false;
    EXPECT_FALSE(MayUseCached(other, false, now));
  }
  CachedRight bytes_only = right;
  bytes_only.has_attributes = false;
  EXPECT_TRUE(MayUseCached(bytes_only, false, now));
  EXPECT_FALSE(MayUseCached(bytes_only, true, now));
  CachedRight bound = right;
  bound.bound = true;
  bound.expires = now + kCapabilityMargin;
  EXPECT_FALSE(MayUseCached(bound, false, now));
  bound.expires = bound.expires + Nanoseconds(1);
  EXPECT_TRUE(MayUseCached(bound, false, now));
}

TEST(Rules, ARefusedBindIsRepeatedWhileOthersMoveTheFileOrNodesMayFindRoom) {
  const Time begun = Time{} + Seconds(1000);
  const Failure busy{StatusCode::kAborted, ErrorReason::kBusy, ""};
  const Failure full{StatusCode::kResourceExhausted, ErrorReason::kNoSpace, ""};
  const Failure gone{StatusCode::kNotFound, ErrorReason::kStale, ""};
  BindRetries retries(begun);
  EXPECT_EQ(retries.DelayAfter(busy, begun), kFrozenDelay);
  EXPECT_EQ(retries.DelayAfter(full, begun), NoSpaceDelay(0));
  EXPECT_EQ(retries.DelayAfter(busy, begun + kInlineMoveMax), kFrozenDelay);
  EXPECT_EQ(retries.DelayAfter(busy, begun + kInlineMoveMax + Nanoseconds(1)), std::nullopt);
  EXPECT_EQ(retries.DelayAfter(full, begun), NoSpaceDelay(1));
  EXPECT_EQ(retries.DelayAfter(full, begun), NoSpaceDelay(2));
  EXPECT_EQ(retries.DelayAfter(full, begun), std::nullopt);
  EXPECT_EQ(retries.DelayAfter(gone, begun), std::nullopt);
  EXPECT_TRUE(OpenIsRepeated(busy, 2));
  EXPECT_FALSE(OpenIsRepeated(busy, 3));
  EXPECT_FALSE(OpenIsRepeated(gone, 0));
}

struct TestBlock {
  ByteRange of;
  ByteRange range() const { return of; }
};

TEST(BlockIndex, AReadTakesBlocksAndFetchesWhatIsBetweenThem) {
  BlockIndex<std::shared_ptr<TestBlock>> blocks(16 * kMiB);
  const auto make = [](ByteRange of) { return std::make_shared<TestBlock>(TestBlock{of}); };
  const FileId file{1};
  EXPECT_EQ(blocks.Add(file, {100, 200}, make).size(), 1u);
  EXPECT_EQ(blocks.Add(file, {300, kMiB + 10}, make).size(), 2u);
  std::vector<std::pair<ByteRange, bool>> steps;
  for (ByteRange left{0, 2 * kMiB}; !left.empty();) {
    const auto step = blocks.Next(file, left);
    steps.emplace_back(step.range, step.block != nullptr);
    left.begin = step.range.end;
  }
  const std::vector<std::pair<ByteRange, bool>> expected = {
      {{0, 100}, false},   {{100, 200}, true},        {{200, 300}, false},
      {{300, kMiB}, true}, {{kMiB, kMiB + 10}, true}, {{kMiB + 10, 2 * kMiB}, false}};
  EXPECT_EQ(steps, expected);
  EXPECT_FALSE(blocks.Next(FileId{2}, {0, 10}).block);
  blocks.DropFile(file);
  EXPECT_EQ(blocks.Next(file, {0, kMiB}).range, (ByteRange{0, kMiB}));
}

// Otherwise a reader that opens a shared log misses a record appended before the open.
TEST(SizeInKernel, MayBeOldAfterTwoTellingsWithoutAnAnswerBetweenThatCameThrough) {
  const auto at = [](int64_t ms) { return Time{} + Seconds(10) + Milliseconds(ms); };
  SizeInKernel size;
  EXPECT_TRUE(size.is_settled());
  size.NoteTelling(at(0));
  size.NoteTold(at(5));
  EXPECT_FALSE(size.is_settled());
  EXPECT_FALSE(size.may_be_old()) << "whoever opens it now asks";
  size.NoteAnswered(at(50), at(51));
  EXPECT_FALSE(size.is_settled()) << "may have been asked before, and have waited";
  size.NoteTelling(at(60));
  EXPECT_TRUE(size.may_be_old());
  size.NoteAnswered(at(200), at(210));
  EXPECT_TRUE(size.is_settled());
  size.NoteTelling(at(250));
  EXPECT_TRUE(size.may_be_old()) << "may have overtaken the answer";
  size.NoteAnswered(at(400), at(401));
  size.NoteTelling(at(600));
  EXPECT_FALSE(size.is_settled());
  EXPECT_FALSE(size.may_be_old());
}

TEST(SizeInKernel, IsKnownToWhoeverWritesAlone) {
  const auto at = [](int64_t ms) { return Time{} + Seconds(10) + Milliseconds(ms); };
  SizeInKernel size;
  for (int i = 0; i < 5; ++i) size.NoteWrite(at(i));
  EXPECT_TRUE(size.is_settled());
  size.NoteTelling(at(200));
  size.NoteWrite(at(201));
  EXPECT_TRUE(size.may_be_old());
  size.NoteAnswered(at(400), at(401));
  size.NoteWrite(at(420));
  EXPECT_TRUE(size.may_be_old()) << "the answer may have been overtaken by it";
}

}  // namespace
}  // namespace mosa::sai
