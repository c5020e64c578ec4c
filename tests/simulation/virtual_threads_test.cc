// The scheduler of virtual threads, and the names of common/base/sync.h on it.
#include "tests/simulation/virtual_threads.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/sync.h"

namespace mosa::simulation {
namespace {

class VirtualThreads : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "virtual threads are not for ThreadSanitizer";
#endif
  }
};

TEST_F(VirtualThreads, WaitsTakeVirtualTimeAndEndWithTheirCondition) {
  Scheduler scheduler(1);
  EXPECT_TRUE(scheduler.Run(
      [&] {
        Mutex mutex;
        CondVar changed;
        bool told = false;
        Thread teller([&] {
          SleepFor(Seconds(2));
          const MutexLock lock(mutex);
          told = true;
          changed.notify_all();
        });
        {
          MutexLock lock(mutex);
          EXPECT_FALSE(changed.wait_for(lock, Seconds(1), [&] { return told; }));
          EXPECT_FALSE(changed.wait_for(lock, Seconds(-1)));
          EXPECT_TRUE(changed.wait_for(lock, Seconds(10), [&] { return told; }));
          EXPECT_FALSE(changed.wait_until(lock, SteadyNow()));
        }
        teller.join();
      },
      Time{Seconds(60).ns}))
      << scheduler.problem();
  EXPECT_GE(scheduler.now(), Time{Seconds(2).ns});
  EXPECT_LT(scheduler.now(), Time{Seconds(3).ns});
}

// Its wait may have ended by time long before it can run and notice.
TEST_F(VirtualThreads, WhoTimedOutOnAPausedHostRunsOnce) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Scheduler scheduler(seed);
    WaitList list;
    std::vector<Time> rounds;
    ASSERT_TRUE(scheduler.Run(
        [&] {
          scheduler.Start(
              [&] {
                list.Wait(scheduler.now() + Milliseconds(10));
                for (int i = 0; i < 3; ++i) {
                  SleepFor(Seconds(1));
                  rounds.push_back(scheduler.now());
                }
              },
              2);
          SleepFor(Milliseconds(1));
          scheduler.Pause(2);
          SleepFor(Seconds(1));
          list.WakeAll();
          list.WakeOne();
          scheduler.Resume(2);
          SleepFor(Seconds(10));
        },
        Time{Seconds(60).ns}))
        << scheduler.problem();
    ASSERT_EQ(rounds.size(), 3U);
    EXPECT_GE(rounds[2] - rounds[0], Seconds(2)) << "no sleep ends early";
  }
}

TEST_F(VirtualThreads, WhatCanNeverGoOnIsNamed) {
  WaitList never;
  Scheduler stuck(1);
  EXPECT_FALSE(stuck.Run([&never] { never.Wait(kNever); }, Time{Seconds(60).ns}));
  EXPECT_NE(stuck.problem().find("no thread can ever run again"), std::string::npos);
  Scheduler busy(1);
  EXPECT_FALSE(busy.Run(
      [] {
        for (;;) Scheduler::Current()->MayYield();
      },
      Time{Milliseconds(10).ns}));
  EXPECT_NE(busy.problem().find("it takes too long"), std::string::npos);
}

TEST_F(VirtualThreads, EachThreadHasItsOwnValues) {
  for (int run = 0; run < 2; ++run) {
    Scheduler scheduler(1);
    EXPECT_TRUE(scheduler.Run(
        [] {
          EXPECT_EQ(OfThread<int>(), 0) << "of an earlier scheduler's thread";
          OfThread<int>() = 7;
          Thread other([] { EXPECT_EQ(OfThread<int>(), 0); });
          other.join();
          EXPECT_EQ(OfThread<int>(), 7);
        },
        Time{Seconds(1).ns}));
  }
}

}  // namespace
}  // namespace mosa::simulation
