// Rings of threads: nothing is lost that Push has not said, whatever threads and texts do.
#include "common/observe/thread_rings.h"

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace mosa {
namespace {

struct Number {
  uint64_t thread;
  uint64_t value;
};
constexpr size_t kRingBytes = 4096;
using Rings = ThreadRings<Number, kRingBytes>;

TEST(ThreadRings, HandOverInOrderAndDropWhatFindsNoRoom) {
  Rings rings;
  uint64_t pushed = 0, popped = 0;
  const auto text_of = [](uint64_t value) { return std::string(value % 90, 'x'); };
  const auto take = [&](const Number& number, const std::string& text) {
    EXPECT_EQ(number.value, popped++);
    EXPECT_EQ(text, text_of(number.value));
    return true;
  };
  // More than once around; heads and texts end in the middle of the ring's end.
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 30; ++i, ++pushed)
      ASSERT_NE(rings.Push({0, pushed}, text_of(pushed)), Pushed::kDropped);
    rings.Drain(take);
    EXPECT_EQ(popped, pushed);
  }
  const uint64_t room = kRingBytes / Rings::kItemBytes;
  uint64_t kept = 0, halves = 0;
  for (uint64_t i = 0; i < 2 * room; ++i) {
    const Pushed outcome = rings.Push({0, i});
    kept += outcome != Pushed::kDropped;
    halves += outcome == Pushed::kYesHalfRing;
  }
  EXPECT_EQ(kept, room);
  EXPECT_GE(halves, 1U);
  uint64_t taken = 0;
  rings.Drain([&](const Number&, const std::string&) { return ++taken > 0; });
  EXPECT_EQ(taken, room);
}

TEST(ThreadRings, LoseNothingOfThreadsThatPushMeanwhileAndEnd) {
  constexpr uint64_t kThreads = 4, kPushes = 50'000;
  Rings rings;
  std::atomic<uint64_t> dropped = 0, ended = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t value = 1; value <= kPushes; ++value)
        if (rings.Push({thread, value}, "text") == Pushed::kDropped) ++dropped;
      ++ended;
    });
  uint64_t taken = 0;
  std::array<uint64_t, kThreads> last{};
  const auto take = [&](const Number& number, const std::string& text) {
    EXPECT_EQ(text, "text");
    EXPECT_LT(std::exchange(last[number.thread], number.value), number.value);
    return ++taken > 0;
  };
  while (ended < kThreads) rings.Drain(take);
  for (std::thread& thread : threads) thread.join();
  rings.Drain(take);
  EXPECT_EQ(taken + dropped, kThreads * kPushes);
}

TEST(ThreadRings, AThreadOutlivesThem) {
  auto first = std::make_unique<Rings>();
  first->Push({0, 1});
  first.reset();
  Rings second;
  second.Push({0, 2});
  second.Push({0, 3});
  // What is not asked for is there the next time.
  std::vector<uint64_t> taken;
  for (int i = 0; i < 3; ++i)
    second.Drain([&](const Number& number, const std::string&) {
      taken.push_back(number.value);
      return false;
    });
  EXPECT_EQ(taken, (std::vector<uint64_t>{2, 3}));
}

TEST(ThreadRings, AThreadsItemsStayInOrderOverSeveralRings) {
  Rings one, other;
  std::thread([&] {
    one.Push({0, 1});
    other.Push({0, 2});
    one.Push({0, 3});
  }).join();
  std::vector<uint64_t> taken;
  const auto take = [&](const Number& number, const std::string&) {
    taken.push_back(number.value);
    return true;
  };
  one.Drain(take);
  other.Drain(take);
  one.Drain(take);
  EXPECT_EQ(taken, (std::vector<uint64_t>{1, 3, 2}));
}

}  // namespace
}  // namespace mosa
