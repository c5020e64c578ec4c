#include "client-sai/api/wait_budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace mosa::sai {
namespace {

TEST(WaitBudget, LaterQuestionsHaveWhatEarlierOnesHaveLeft) {
  EXPECT_EQ(WaitBudget::ForQuestion(), kWaitMax) << "nobody waits";
  const auto now = std::chrono::steady_clock::now();
  {
    const WaitBudget budget(now - std::chrono::seconds(9));
    EXPECT_TRUE(WaitBudget::ProgramWaits());
    EXPECT_LE(WaitBudget::ForQuestion(), WaitBudget::kAll - Seconds(9));
    EXPECT_FALSE(WaitBudget::IsSpent());
  }
  {
    const WaitBudget budget(now - std::chrono::seconds(60));
    EXPECT_TRUE(WaitBudget::IsSpent());
    EXPECT_EQ(WaitBudget::ForTransfer(), WaitBudget::kTransferMin);
    EXPECT_EQ(WaitBudget::ForQuestion(), WaitBudget::kQuestionMin);
  }
  {
    const WaitBudget budget(now - std::chrono::seconds(60));
    EXPECT_EQ(WaitBudget::ForQuestion(), WaitBudget::kQuestionMin);
    const Duration extra = WaitBudget::kTransferMin + WaitBudget::kQuestionMin * 2;
    std::this_thread::sleep_for(std::chrono::nanoseconds(extra.ns));
    EXPECT_EQ(WaitBudget::ForQuestion(), WaitBudget::kLeast) << "nobody has answered";
    EXPECT_EQ(WaitBudget::Patience(), WaitBudget::kQuestionMin);
    EXPECT_EQ(WaitBudget::ForTransfer(), WaitBudget::kLeast);
  }
  {
    // Two nodes in turn: one answers late, the other not at all.
    const WaitBudget budget(now - std::chrono::seconds(60));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(WaitBudget::ForQuestion(), WaitBudget::kQuestionMin)
          << "the answered ones are free";
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      WaitBudget::NoteAnswer();
    }
    EXPECT_EQ(WaitBudget::ForTransfer(), WaitBudget::kTransferMin);
    std::this_thread::sleep_for(std::chrono::nanoseconds(WaitBudget::kTransferMin.ns));
    EXPECT_EQ(WaitBudget::ForQuestion(), WaitBudget::kQuestionMin);
    WaitBudget::NoteAnswer();
    EXPECT_LE(WaitBudget::ForTransfer(), WaitBudget::kQuestionMin * 2)
        << "what the silent one left";
  }
  EXPECT_FALSE(WaitBudget::ProgramWaits());
  EXPECT_EQ(WaitBudget::ForQuestion(), kWaitMax);
}

// A request may begin a transfer as long as it has any time left, and then ask two questions.
TEST(WaitBudget, WhatBeginsAtTheLastMomentEndsWithinTheLongestWait) {
  for (const Duration left : {WaitBudget::kAll, Seconds(3), Seconds(1), Milliseconds(1)}) {
    Duration passed = WaitBudget::kAll - left;
    const auto spend = [&passed](Duration (*longest)()) {
      const auto now = std::chrono::steady_clock::now();
      const WaitBudget budget(now - std::chrono::nanoseconds(passed.ns));
      passed = passed + longest();
    };
    spend(WaitBudget::ForTransfer);
    spend(WaitBudget::ForQuestion);
    spend(WaitBudget::ForQuestion);
    EXPECT_LE(passed, kWaitMax) << left.ns << " ns were left";
  }
}

TEST(WaitBudget, AStoreHasOneOfItsOwnAndNoProgramWaitsForIt) {
  const WaitBudget spent(std::chrono::steady_clock::now() - std::chrono::seconds(60));
  {
    const WaitBudget store(WaitBudget::ForBackground());
    EXPECT_FALSE(WaitBudget::ProgramWaits());
    EXPECT_FALSE(WaitBudget::IsSpent());
    EXPECT_GT(WaitBudget::ForTransfer(), WaitBudget::kAll - Seconds(5));
  }
  EXPECT_TRUE(WaitBudget::ProgramWaits());
  EXPECT_TRUE(WaitBudget::IsSpent());
}

// Otherwise a read in pieces waits longer for a silent node than its program may wait.
TEST(WaitBudget, APartOnAnotherThreadHasWhatItsAskerHasLeft) {
  const WaitBudget budget(std::chrono::steady_clock::now() - std::chrono::seconds(9));
  std::thread([limit = WaitBudget::OfThisThread()] {
    EXPECT_EQ(WaitBudget::ForQuestion(), kWaitMax);
    const WaitBudget part(limit);
    EXPECT_LE(WaitBudget::ForQuestion(), WaitBudget::kAll - Seconds(9));
  }).join();
}

}  // namespace
}  // namespace mosa::sai
