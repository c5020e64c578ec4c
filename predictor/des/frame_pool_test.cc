#include "predictor/des/frame_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace mosa::des {
namespace {

constexpr size_t kLargest = 4032;  // The largest frame with a free list, in bytes.

struct Frame {
  void* memory;
  size_t bytes;
};

bool HoldsOnly(const Frame& frame, int value) {
  const std::vector<unsigned char> expected(frame.bytes, static_cast<unsigned char>(value));
  return std::memcmp(frame.memory, expected.data(), frame.bytes) == 0;
}

TEST(FramePool, SharesNoMemoryBetweenLiveFrames) {
  FramePool& pool = FramePool::OfThread();
  // The second round reuses returned frames, in another order.
  for (int round = 0; round < 2; ++round) {
    std::vector<Frame> frames;
    for (const size_t bytes :
         {8UL, 64UL, 65UL, 128UL, 129UL, 4000UL, kLargest, kLargest + 1, 9000UL})
      for (int i = 0; i < 3; ++i) frames.push_back({pool.Take(bytes), bytes});
    for (size_t i = 0; i < frames.size(); ++i)
      std::memset(frames[i].memory, static_cast<int>(i + 1), frames[i].bytes);
    for (size_t i = 0; i < frames.size(); ++i)
      EXPECT_TRUE(HoldsOnly(frames[i], static_cast<int>(i + 1))) << i << " in round " << round;
    for (const Frame& frame : frames) pool.Give(frame.memory, frame.bytes);
  }
}

// With AddressSanitizer no frame is reused.
#ifndef __SANITIZE_ADDRESS__

TEST(FramePool, TakesAFrameAgainForItsSizeOnly) {
  FramePool& pool = FramePool::OfThread();
  struct Row {
    size_t given;
    size_t taken;
    bool is_same;
  };
  const Row rows[] = {
      {100, 100, true},
      {65, 128, true},
      {128, 65, true},
      {128, 64, false},
      {128, 129, false},
      {kLargest, kLargest - 63, true},
      {kLargest, kLargest - 64, false},
      {kLargest, kLargest + 1, false},
  };
  for (const Row& row : rows) {
    void* const given = pool.Take(row.given);
    pool.Give(given, row.given);
    void* const taken = pool.Take(row.taken);
    EXPECT_EQ(taken == given, row.is_same) << row.given << " B, then " << row.taken << " B";
    pool.Give(taken, row.taken);
  }
}

TEST(FramePool, KeepsNothingAboveTheLargestSize) {
  FramePool& pool = FramePool::OfThread();
  pool.Give(pool.Take(kLargest + 1), kLargest + 1);
  // The heap has it back. Frames of the largest size are still reused.
  void* const listed = pool.Take(kLargest);
  pool.Give(listed, kLargest);
  void* const above = pool.Take(kLargest + 1);
  EXPECT_NE(above, listed);
  pool.Give(above, kLargest + 1);
  void* const again = pool.Take(kLargest);
  EXPECT_EQ(again, listed);
  pool.Give(again, kLargest);
}

TEST(FramePool, GivesNoThreadTheFramesOfAnother) {
  constexpr size_t kBytes = 200;
  FramePool& pool = FramePool::OfThread();
  void* const here = pool.Take(kBytes);
  pool.Give(here, kBytes);
  std::thread([here] {
    FramePool& other = FramePool::OfThread();
    void* const there = other.Take(kBytes);
    EXPECT_NE(there, here);
    other.Give(there, kBytes);
    EXPECT_EQ(other.Take(kBytes), there);
    other.Give(there, kBytes);
  }).join();
  void* const again = pool.Take(kBytes);
  EXPECT_EQ(again, here);
  pool.Give(again, kBytes);
}

#endif

}  // namespace
}  // namespace mosa::des
