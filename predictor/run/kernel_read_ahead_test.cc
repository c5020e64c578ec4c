#include "predictor/run/kernel_read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kKiB = 1024;

// The requests made while `part` is read in calls of at most `call_bytes`.
std::vector<ByteRange> AskedFor(ByteRange part, uint64_t call_bytes) {
  KernelReadAhead kernel(2 * kMiB);
  std::vector<ByteRange> asked;
  for (uint64_t at = part.begin; at < part.end; at += call_bytes) {
    const uint64_t end = std::min(at + call_bytes, part.end);
    for (uint64_t now = at; now < end; now = std::min(end, kernel.NextQuestion(now)))
      if (const ByteRange pages = kernel.ComeTo({now, end}); !pages.empty()) asked.push_back(pages);
    kernel.HasRead(end);
  }
  return asked;
}

using Ranges = std::vector<ByteRange>;

// Each of these was observed in the trace of a mount (Linux 6.18).
TEST(KernelReadAhead, OfAWholeFileIsOneWindowAheadOfThatWhichIsRead) {
  EXPECT_EQ(AskedFor({0, 4 * kMiB}, kMiB),
            (Ranges{{0, 2 * kMiB}, {2 * kMiB, 4 * kMiB}, {4 * kMiB, 6 * kMiB}}));
}

TEST(KernelReadAhead, AFirstReadElsewhereBringsItselfAlone) {
  EXPECT_EQ(AskedFor({8 * kMiB, 9 * kMiB}, kMiB), (Ranges{{8 * kMiB, 9 * kMiB}}));
  EXPECT_EQ(AskedFor({8 * kMiB, 12 * kMiB}, kMiB), (Ranges{{8 * kMiB, 9 * kMiB},
                                                           {9 * kMiB, 11 * kMiB},
                                                           {11 * kMiB, 13 * kMiB},
                                                           {13 * kMiB, 15 * kMiB}}));
}

TEST(KernelReadAhead, SmallReadsBeginWithSmallWindows) {
  EXPECT_EQ(AskedFor({0, 100 * kKiB}, kMiB), (Ranges{{0, 256 * kKiB}}));
  EXPECT_EQ(AskedFor({0, 4 * kKiB}, 4 * kKiB), (Ranges{{0, 16 * kKiB}}));
  EXPECT_EQ(AskedFor({0, 32 * kKiB}, 4 * kKiB),
            (Ranges{{0, 16 * kKiB}, {16 * kKiB, 80 * kKiB}, {80 * kKiB, 336 * kKiB}}));
}

// From the source of mm/readahead.c.
TEST(KernelReadAhead, AReadLongerThanAWindowBringsWindows) {
  EXPECT_EQ(AskedFor({4 * kMiB, 7 * kMiB}, 3 * kMiB),
            (Ranges{{4 * kMiB, 6 * kMiB}, {6 * kMiB, 8 * kMiB}, {8 * kMiB, 10 * kMiB}}));
}

TEST(KernelReadAhead, AReadBehindMorePagesThanItsOwnBringsAWindow) {
  const auto behind = [](uint64_t bytes) {
    KernelReadAhead kernel(2 * kMiB);
    kernel.ComeTo({0, kMiB});
    kernel.HasRead(kMiB);
    return kernel.ComeTo({2 * kMiB, 2 * kMiB + bytes});
  };
  EXPECT_EQ(behind(kMiB), (ByteRange{2 * kMiB, 4 * kMiB}));
  EXPECT_EQ(behind(2 * kMiB), (ByteRange{2 * kMiB, 4 * kMiB})) << "as many";
  // Elsewhere there are few: present pages count once, and the window's last page is marked.
  KernelReadAhead kernel(2 * kMiB);
  kernel.AskAlone({8 * kMiB, 8 * kMiB + 64 * kKiB});
  EXPECT_EQ(kernel.ComeTo({8 * kMiB + 64 * kKiB, 8 * kMiB + 80 * kKiB}),
            (ByteRange{8 * kMiB + 64 * kKiB, 8 * kMiB + 144 * kKiB}));
  EXPECT_EQ(kernel.NextQuestion(8 * kMiB + 80 * kKiB), 8 * kMiB + 140 * kKiB);
}

TEST(KernelReadAhead, AsksForWholePages) {
  EXPECT_EQ(AskedFor({kMiB + 100, kMiB + 5000}, kMiB), (Ranges{{kMiB, kMiB + 8 * kKiB}}));
}

TEST(KernelReadAhead, WhatWasForgottenIsAskedForAgain) {
  KernelReadAhead kernel(2 * kMiB);
  kernel.ComeTo({0, kMiB});
  kernel.HasRead(kMiB);
  EXPECT_TRUE(kernel.ComeTo({kMiB / 2, kMiB}).empty());
  kernel.Forget();
  EXPECT_EQ(kernel.ComeTo({kMiB / 2, kMiB}), (ByteRange{kMiB / 2, kMiB}));
}

}  // namespace
}  // namespace mosa::predict
