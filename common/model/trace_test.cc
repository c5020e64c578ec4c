#include "common/model/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace mosa {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TraceRecord ReadAt(uint64_t offset, int64_t start_ns) {
  TraceRecord record;
  record.kind = TraceKind::kRead;
  record.file = FileId{300};
  record.handle = 7;
  record.offset = offset;
  record.size_bytes = 131072;
  record.start = {start_ns};
  record.end = {start_ns + 1500};
  return record;
}

std::vector<TraceRecord> Records() {
  TraceRecord open;
  open.kind = TraceKind::kCreate;
  open.flags = kTraceForReading | kTraceForWriting | kTracePassthrough;
  open.file = FileId{300};
  open.handle = 7;
  open.start = {1'700'000'000'000'000'000};
  open.end = {1'700'000'000'000'050'000};
  open.pid = 4711;
  open.process_start = 99;
  open.text = std::string("r1/sort\0sort", 12);
  TraceRecord extreme;
  extreme.kind = TraceKind::kRename;
  extreme.offset = std::numeric_limits<uint64_t>::max();
  extreme.start = {std::numeric_limits<int64_t>::min()};
  extreme.end = {std::numeric_limits<int64_t>::max()};
  extreme.parent = FileId{1};
  extreme.target = FileId{2};
  extreme.text = std::string("\xff\n\0x", 4);
  return {open, ReadAt(0, open.start.ns + 9), extreme, ReadAt(131072, open.start.ns - 5)};
}

// Builds a file of two blocks: all records but the last, and the last.
std::string FileOf(const std::vector<TraceRecord>& records, TraceFoot foot) {
  std::string text = EncodeTraceHead({"h1", "/mnt/mosa", false, {12}});
  TraceBlock block;
  std::string blocks;
  for (size_t i = 0; i < records.size(); ++i) {
    if (i + 1 == records.size()) blocks += block.Take();
    block.Add(records[i]);
  }
  blocks += block.Take();
  foot.records = records.size();
  foot.bytes = kTraceHeadBytes + kTraceFootBytes + blocks.size();
  return text + EncodeTraceFoot(foot) + blocks;
}

TEST(Trace, WhatIsWrittenIsRead) {
  const auto file = ParseTrace(FileOf(Records(), {.reason = "stopped", .stats = 3, .lookups = 4}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->fault, IsEmpty());
  EXPECT_EQ(file->records, Records());
  EXPECT_EQ(file->head, (TraceHead{"h1", "/mnt/mosa", false, {12}}));
  EXPECT_EQ(file->foot->stats, 3U);
  EXPECT_EQ(file->foot->lookups, 4U);
}

TEST(Trace, ARecordOfAReadIsSmall) {
  TraceBlock block;
  block.Add(ReadAt(1 << 30, 1'700'000'000'000'000'000));
  const size_t first = block.bytes();
  block.Add(ReadAt((1 << 30) + 131072, 1'700'000'000'000'200'000));
  EXPECT_LE(block.bytes() - first, 24U);
}

TEST(Trace, CutAnywhereItSaysWhereAndKeepsWhatIsWhole) {
  const std::string whole = FileOf(Records(), {.reason = "stopped"});
  size_t most = 0;
  for (size_t bytes = kTraceHeadBytes; bytes < whole.size(); ++bytes) {
    const auto file = ParseTrace(std::string_view(whole).substr(0, bytes));
    ASSERT_TRUE(file.ok());
    EXPECT_THAT(file->fault, HasSubstr("cut short")) << bytes;
    most = std::max(most, file->records.size());
    if (file->records.size() == 3) {
      EXPECT_THAT(file->fault, HasSubstr("record 3 of 4"));
    }
  }
  EXPECT_EQ(most, 3U);
}

TEST(Trace, DamageEndsItBeforeTheBlock) {
  std::string damaged = FileOf(Records(), {.reason = "stopped"});
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const auto file = ParseTrace(damaged);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records.size(), 3U);
  EXPECT_THAT(file->fault, HasSubstr("damaged after record 3 of 4"));
}

TEST(Trace, SaysWhyItHoldsLessThanItShould) {
  const auto full = ParseTrace(FileOf(Records(), {.reason = "no room on /t (ENOSPC)"}));
  EXPECT_THAT(full->fault, HasSubstr("ends after record 4: no room on /t"));
  const auto dropped = ParseTrace(FileOf(Records(), {.reason = "stopped", .dropped = 12}));
  EXPECT_THAT(dropped->fault, HasSubstr("lacks 12 records"));
  std::string endless = FileOf(Records(), {.reason = "stopped"});
  endless.replace(kTraceHeadBytes, kTraceFootBytes, kTraceFootBytes, '\n');
  EXPECT_THAT(ParseTrace(endless)->fault, HasSubstr("was killed; the file holds 4 whole records"));
}

TEST(Trace, IsReadWithinBounds) {
  const std::string whole = FileOf(Records(), {.reason = "stopped"});
  EXPECT_THAT(ParseTrace(whole, 4)->fault, IsEmpty());
  const auto part = ParseTrace(whole, 3);
  EXPECT_EQ(part->records.size(), 3U);
  EXPECT_THAT(part->fault, HasSubstr("only up to record 3: at most 3 records are supported"));
  // No mount writes such a block.
  TraceRecord record = Records().front();
  record.text.assign(kTraceBlockBytesMax, 'x');
  const auto large = ParseTrace(FileOf({record}, {.reason = "stopped"}));
  EXPECT_TRUE(large->records.empty());
  EXPECT_THAT(large->fault, HasSubstr("damaged after record 0"));
}

TEST(Trace, RefusesWhatIsNone) {
  EXPECT_THAT(MessageOf(ParseTrace("hello").status()), HasSubstr("not a trace"));
  EXPECT_THAT(MessageOf(ParseTrace("mosa-trace 2\nhost=h1\n").status()),
              HasSubstr("version 2, but this program reads only version 1"));
}

}  // namespace
}  // namespace mosa
