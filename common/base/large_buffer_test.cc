#include "common/base/large_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace mosa {
namespace {

TEST(LargeBuffer, TheLastOneGivenBackIsTheFirstHandedOut) {
  LargeBuffer first = LargeBuffer::Take();
  LargeBuffer second = LargeBuffer::Take();
  std::byte* const at_first = first.data();
  std::byte* const at_second = second.data();
  first = LargeBuffer();
  second = LargeBuffer();
  EXPECT_TRUE(second.bytes().empty());
  LargeBuffer third = LargeBuffer::Take();
  EXPECT_EQ(third.data(), at_second);
  const LargeBuffer moved = std::move(third);
  EXPECT_EQ(moved.data(), at_second);
  EXPECT_EQ(LargeBuffer::Take().data(), at_first);
}

TEST(LargeBuffer, NobodyTouchesWhatAnotherHolds) {
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([id] {
      for (int round = 0; round < 20; ++round) {
        std::vector<LargeBuffer> held;
        for (int i = 0; i < 10; ++i) {
          held.push_back(LargeBuffer::Take());
          std::memset(held.back().data(), id, LargeBuffer::kBytes);
        }
        for (const LargeBuffer& buffer : held) {
          EXPECT_EQ(std::to_integer<int>(buffer.bytes().front()), id);
          EXPECT_EQ(std::to_integer<int>(buffer.bytes().back()), id);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LargeBuffer, MemoryOfMoreThanSixteenUnusedOnesGoesBack) {
  std::vector<LargeBuffer> held;
  std::set<std::byte*> filled;
  for (int i = 0; i < 40; ++i) {
    held.push_back(LargeBuffer::Take());
    std::memset(held.back().data(), 'x', LargeBuffer::kBytes);
    filled.insert(held.back().data());
  }
  EXPECT_EQ(filled.size(), 40U);
  held.clear();
  int kept = 0;
  for (int i = 0; i < 40; ++i) {
    held.push_back(LargeBuffer::Take());
    if (!filled.contains(held.back().data())) continue;
    kept += held.back().bytes()[LargeBuffer::kBytes / 2] == std::byte{'x'} ? 1 : 0;
  }
  EXPECT_EQ(kept, 16);
}

}  // namespace
}  // namespace mosa
