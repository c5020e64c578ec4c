#include "client-sai/fuse/parked_requests.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "client-sai/fuse/killed_askers.h"

namespace mosa::sai {
namespace {

ParkedRequest RequestOf(size_t bytes) {
  ParkedRequest request;
  request.small.resize(bytes);
  request.size_bytes = bytes;
  return request;
}

TEST(ParkedRequests, TheOldestGoesFirstWhenATurnEnds) {
  ParkedRequests parked(2, 1 << 20);
  EXPECT_TRUE(parked.TakeTurn());
  EXPECT_TRUE(parked.TakeTurn());
  EXPECT_FALSE(parked.TakeTurn());
  for (const size_t bytes : {10U, 20U}) {
    ParkedRequest request = RequestOf(bytes);
    EXPECT_TRUE(parked.Park(request));
  }
  EXPECT_FALSE(parked.NextWithTurn());
  parked.EndTurn();
  EXPECT_EQ(parked.NextWithTurn()->size_bytes, 10u);
  EXPECT_FALSE(parked.NextWithTurn());
  parked.EndTurn();
  EXPECT_EQ(parked.NextWithTurn()->size_bytes, 20u);
  EXPECT_EQ(parked.count(), 0u);
}

TEST(ParkedRequests, WithoutRoomTheRequestStaysItsOwners) {
  ParkedRequests parked(0, 4096);
  ParkedRequest request = RequestOf(3000);
  EXPECT_TRUE(parked.Park(request));
  request = RequestOf(3000);
  EXPECT_FALSE(parked.Park(request));
  EXPECT_EQ(request.small.size(), 3000u);
}

TEST(ParkedRequests, NoneIsForgotten) {
  ParkedRequests parked(3, 1 << 20);
  constexpr int kEach = 20'000;
  std::atomic<int> served = 0;
  std::atomic<int> at_once = 0;
  const auto serve = [&] {
    EXPECT_LE(++at_once, 3);
    ++served;
    --at_once;
    parked.EndTurn();
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 6; ++i)
    workers.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) {
        ParkedRequest request = RequestOf(10);
        if (parked.TakeTurn()) {
          serve();
        } else if (!parked.Park(request)) {
          ++served;
        }
        while (parked.NextWithTurn()) serve();
      }
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(served, 6 * kEach);
}

TEST(KilledAskers, OnlyWhoIsKilledIsAnswered) {
  std::atomic<uint64_t> answered = 0;
  KilledAskers askers([&](uint64_t request) {
    answered = request;
    askers.End(request);
  });
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  askers.Begin(2, static_cast<uint32_t>(getpid()));
  askers.Begin(4, static_cast<uint32_t>(child));
  askers.Interrupted(2);
  askers.Interrupted(4);
  askers.Interrupted(6);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(answered, 0u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (answered == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(answered, 4u);
  EXPECT_FALSE(IsBeingKilled(static_cast<uint32_t>(getpid())));
  EXPECT_FALSE(IsBeingKilled(0));
}

}  // namespace
}  // namespace mosa::sai
