// Tests the buckets of duration counts, the error of quantiles, and that concurrent additions lose
// nothing.
#include "common/observe/duration_table.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <tuple>
#include <vector>

#include "common/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa {
namespace {

using ::testing::ElementsAre;

TEST(DurationCounts, BucketsCoverAllDurationsWithoutGapOrOverlap) {
  EXPECT_EQ(DurationBucketBegin(0), Duration{});
  for (size_t bucket = 0; bucket + 1 < kDurationBuckets; ++bucket) {
    const Duration limit = DurationBucketLimit(bucket);
    EXPECT_EQ(DurationBucketBegin(bucket + 1), limit);
    EXPECT_EQ(DurationBucketOf(limit - Nanoseconds(1)), bucket);
    EXPECT_EQ(DurationBucketOf(limit), bucket + 1);
    // An eighth of the bucket's begin.
    if (bucket > 0) {
      EXPECT_LE((limit - DurationBucketBegin(bucket)).ns * 8, limit.ns);
    }
  }
  EXPECT_EQ(DurationBucketOf(Nanoseconds(-5)), 0U);
  EXPECT_LT(DurationBucketOf(Seconds(100)), kDurationBuckets - 1);
  EXPECT_EQ(DurationBucketOf({std::numeric_limits<int64_t>::max()}), kDurationBuckets - 1);
}

TEST(DurationCounts, QuantilesAreWithinAnEighthOfTheTrueOnes) {
  Rng rng(7);
  DurationCounts counts;
  std::vector<int64_t> sorted;
  for (int i = 0; i < 20'000; ++i) {
    // Evenly over the magnitudes from microseconds to tens of seconds.
    const int64_t ns =
        static_cast<int64_t>((uint64_t{1} << (10 + rng.Below(25))) * 3 / 2 + rng.Below(1 << 10));
    sorted.push_back(ns);
    counts.Add(Duration{ns});
  }
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(counts.Count(), sorted.size());
  EXPECT_EQ(counts.max_ns, static_cast<uint64_t>(sorted.back()));
  for (const uint32_t per_mille : {1U, 100U, 500U, 900U, 990U, 999U, 1000U}) {
    const size_t rank = std::max<size_t>(1, sorted.size() * per_mille / 1000);
    const auto truth = static_cast<double>(sorted[rank - 1]);
    EXPECT_NEAR(static_cast<double>(counts.Quantile(per_mille).ns), truth, truth / 8)
        << per_mille << " per mille";
  }
}

TEST(DurationCounts, NoneHasNoMeanAndNoQuantile) {
  const DurationCounts none;
  EXPECT_EQ(none.Mean(), Duration{});
  EXPECT_EQ(none.Quantile(500), Duration{});
}

TEST(DurationCounts, TheOnlyDurationIsItsOwnQuantile) {
  DurationCounts one;
  one.Add(Milliseconds(3));
  for (const uint32_t per_mille : {0U, 500U, 1000U})
    EXPECT_EQ(one.Quantile(per_mille), Milliseconds(3));
  EXPECT_EQ(one.Mean(), Milliseconds(3));
}

TEST(DurationCounts, WhatWasAddedSinceIsTheDifference) {
  DurationCounts earlier;
  earlier.Add(Seconds(2));
  earlier.Add(Microseconds(50));
  DurationCounts later = earlier;
  DurationCounts between;
  for (const Duration duration : {Microseconds(50), Milliseconds(1), Milliseconds(7)}) {
    later.Add(duration);
    between.Add(duration);
  }
  EXPECT_TRUE(later.Contains(earlier));
  EXPECT_FALSE(earlier.Contains(later));
  const DurationCounts since = later.Since(earlier);
  EXPECT_EQ(since.counts, between.counts);
  EXPECT_EQ(since.sum_ns, between.sum_ns);
  // The two seconds came earlier: at most the limit of the bucket of 7 ms remains.
  EXPECT_GE(since.max_ns, between.max_ns);
  EXPECT_LE(since.max_ns, between.max_ns * 9 / 8);
  DurationCounts both = earlier;
  both.Add(since);
  EXPECT_EQ(both.counts, later.counts);
  EXPECT_EQ(both.sum_ns, later.sum_ns);
  EXPECT_EQ(later.Since(later), DurationCounts());
}

using Row = std::tuple<std::string, std::string, uint64_t>;

std::vector<Row> RowsOf(const DurationTable& table) {
  std::vector<Row> rows;
  table.Visit([&](const std::string& kind, const std::string& peer, const DurationCounts& counts) {
    rows.emplace_back(kind, peer, counts.Count());
  });
  return rows;
}

TEST(DurationTable, PeersBeyondTheLimitShareARow) {
  DurationTable table({"read", "write"}, 2);
  using Kind = DurationTable::ClassId;
  for (const char* peer : {"a", "b", "c", "d", "a"})
    table.Add(Kind{1}, table.PeerOf(peer), Microseconds(5));
  table.Add(Kind{0}, DurationTable::kNoPeer, Microseconds(5));
  table.Add(Kind{0}, table.PeerOf("b"), Microseconds(5));
  EXPECT_THAT(RowsOf(table),
              ElementsAre(Row("read", "", 1), Row("read", "b", 1), Row("write", "a", 2),
                          Row("write", "b", 1), Row("write", DurationTable::kOtherPeers, 2)));
}

TEST(DurationHistogram, NoMeanIsAboveTheLongestWhileOthersAdd) {
  DurationHistogram histogram;
  std::atomic<bool> end = false;
  std::thread adder([&] {
    while (!end) histogram.Add(Milliseconds(1));
  });
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const DurationCounts read = histogram.Read();
    if (read.sum_ns > read.Count() * read.max_ns) ++wrong;
  }
  end = true;
  adder.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DurationTable, WhatSeveralThreadsAddAtOnceIsAllThere) {
  constexpr int kThreads = 8;
  constexpr int kEach = 20'000;
  DurationTable table({"read"}, 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&table, t] {
      const auto peer = table.PeerOf(t % 2 == 0 ? "even" : "odd");
      for (int i = 1; i <= kEach; ++i) table.Add(DurationTable::ClassId{0}, peer, Microseconds(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  DurationCounts all;
  table.Visit([&](const std::string&, const std::string&, const DurationCounts& counts) {
    EXPECT_EQ(counts.Count(), uint64_t{kThreads} / 2 * kEach);
    all.Add(counts);
  });
  EXPECT_EQ(all.Count(), uint64_t{kThreads} * kEach);
  EXPECT_EQ(all.sum_ns, uint64_t{kThreads} * kEach * (kEach + 1) / 2 * 1000);
  EXPECT_EQ(all.max_ns, uint64_t{kEach} * 1000);
}

TEST(TimedRequest, CountsItsOwnLifeIfThereIsATable) {
  DurationTable table({"read"}, 0);
  { const TimedRequest timed(&table, DurationTable::ClassId{0}); }
  { const TimedRequest nowhere(nullptr, DurationTable::ClassId{0}); }
  EXPECT_THAT(RowsOf(table), ElementsAre(Row("read", "", 1)));
}

}  // namespace
}  // namespace mosa
