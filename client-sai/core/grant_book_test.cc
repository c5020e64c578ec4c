#include "client-sai/core/grant_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "client-sai/core/rules.h"
#include "common/base/rng.h"

namespace mosa::sai {
namespace {

using Next = GrantBook::Next;

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kGib = kMib << 10;
constexpr NodeId kNode{1};

class GrantBookTest : public ::testing::Test {
 protected:
  GrantBook::Step Take(uint64_t bytes) { return book_.Take(kNode, bytes, attempt_, now_); }
  GrantBook::Step Reserve(uint64_t bytes) { return book_.Reserve(kNode, bytes, attempt_, now_); }
  void Grant(uint64_t granted, uint64_t free = 100 * kGib, uint64_t limit = 100 * kGib) {
    const GrantReply reply{granted, free, limit};
    book_.Settle(kNode, &reply, now_, &attempt_);
  }
  uint64_t Held() const { return book_.Held().empty() ? 0 : book_.Held()[0].bytes; }

  GrantBook book_;
  GrantBook::Attempt attempt_;
  Time now_{Seconds(100).ns};
};

TEST_F(GrantBookTest, AsksForMoreThanIsNeededAndThenAheadOfNeed) {
  const GrantBook::Step first = Take(kMib);
  ASSERT_EQ(first.next, Next::kAsk);
  EXPECT_EQ(first.request, (GrantRequest{kNode, 4 * kMib, 0, 0}));
  Grant(4 * kMib);
  const GrantBook::Step taken = Take(kMib);
  EXPECT_EQ(taken.next, Next::kDone);
  EXPECT_EQ(taken.request, std::nullopt) << "three quarters are left";
  Take(kMib);
  const GrantBook::Step low = Take(kMib);
  EXPECT_EQ(low.next, Next::kDone);
  EXPECT_EQ(low.request, (GrantRequest{kNode, 8 * kMib, 3 * kMib, 0})) << "what was used, as well";
}

TEST_F(GrantBookTest, OneQuestionAtATimeGoesToANode) {
  ASSERT_EQ(Take(kMib).next, Next::kAsk);
  GrantBook::Attempt other;
  EXPECT_EQ(book_.Take(kNode, kMib, other, now_).next, Next::kWait);
  EXPECT_EQ(book_.Reserve(kNode, kMib, other, now_).next, Next::kWait);
  EXPECT_EQ(book_.Take(NodeId{2}, kMib, other, now_).next, Next::kAsk);
}

TEST_F(GrantBookTest, WhoseGrantAnotherTookAsksAgainAndAFullNodeRefuses) {
  ASSERT_EQ(Take(kMib).next, Next::kAsk);
  Grant(kMib);
  GrantBook::Attempt other;
  ASSERT_EQ(book_.Take(kNode, kMib, other, now_).next, Next::kDone);
  const GrantReply nothing{0, 4 * kGib, 8 * kGib};
  book_.Settle(kNode, &nothing, now_, nullptr);  // The answer to the question ahead of need.
  ASSERT_EQ(Take(kMib).next, Next::kAsk);
  Grant(0);
  ASSERT_EQ(Take(kMib).next, Next::kRefused);

  attempt_ = {};
  ASSERT_EQ(Take(kMib).next, Next::kAsk);
  Grant(kMib);
  other = {};
  std::optional<GrantRequest> ahead;
  ASSERT_TRUE(book_.TakeHeld(kNode, kMib, now_, ahead));
  if (ahead) book_.Settle(kNode, nullptr, now_, nullptr);
  EXPECT_EQ(Take(kMib).next, Next::kAsk) << "the node had room";
  Grant(0);
  EXPECT_EQ(Take(kMib).next, Next::kRefused);
}

TEST_F(GrantBookTest, TwoMountsDoNotPassTheLastRoomToAndFroForEver) {
  int asked = 0;
  while (asked < 100 && Take(kMib).next == Next::kAsk) {
    ++asked;
    Grant(kMib / 2);
    book_.GiveBack(kNode);  // The other mount wants it.
  }
  EXPECT_EQ(asked, 8);
  attempt_ = {};
  EXPECT_EQ(Take(kMib).next, Next::kAsk) << "later";
}

TEST_F(GrantBookTest, WhoHasWaitedForAnotherAnswerAsksAnew) {
  ASSERT_EQ(Reserve(kMib).next, Next::kAsk);
  Grant(kMib);
  ASSERT_EQ(Reserve(kMib).next, Next::kDone);
  attempt_ = {};
  ASSERT_EQ(Take(2 * kMib).next, Next::kAsk);
  Grant(0);
  book_.Unreserve(kNode, kMib);
  GrantBook::Attempt other;
  ASSERT_EQ(book_.Take(kNode, 3 * kMib, other, now_).next, Next::kAsk);
  ASSERT_EQ(Take(2 * kMib).next, Next::kWait);
  const GrantReply nothing{0, 100 * kGib, 100 * kGib};
  book_.Settle(kNode, &nothing, now_, &other);
  std::optional<GrantRequest> ahead;
  ASSERT_TRUE(book_.TakeHeld(kNode, kMib, now_, ahead));
  if (ahead) book_.Settle(kNode, &nothing, now_, nullptr);
  EXPECT_EQ(Take(2 * kMib).next, Next::kAsk) << "the answer to the first question is old";
}

TEST_F(GrantBookTest, AReservationNeedsFreshKnowledgeAndAmpleRoom) {
  ASSERT_EQ(Reserve(256 * kMib).next, Next::kAsk);
  Grant(256 * kMib);
  EXPECT_EQ(Reserve(256 * kMib).next, Next::kDone);
  EXPECT_EQ(Held(), 256 * kMib) << "a reservation is held";
  EXPECT_TRUE(book_.GiveBack(kNode) == std::nullopt) << "and not given back";

  now_ = now_ + Milliseconds(1'100);
  book_.Unreserve(kNode, 256 * kMib);
  attempt_ = {};
  const GrantBook::Step again = Reserve(256 * kMib);
  ASSERT_EQ(again.next, Next::kAsk) << "what was known is old";
  EXPECT_EQ(again.request->wanted_bytes, 0U);
  Grant(0, kGib);
  EXPECT_EQ(Reserve(256 * kMib).next, Next::kRefused) << "no ample room";
  EXPECT_EQ(Held(), 256 * kMib);
}

TEST_F(GrantBookTest, AManagerThatDoesNotAnswerRefusesAReservation) {
  ASSERT_EQ(Reserve(kMib).next, Next::kAsk);
  book_.Settle(kNode, nullptr, now_, &attempt_);
  EXPECT_EQ(Reserve(kMib).next, Next::kRefused);
}

TEST_F(GrantBookTest, WhatTheKernelUsedIsReportedOnce) {
  Reserve(64 * kMib);
  Grant(64 * kMib);
  ASSERT_EQ(Reserve(64 * kMib).next, Next::kDone);
  book_.Charge(kNode, 10 * kMib, 10 * kMib, now_);
  book_.Unreserve(kNode, 54 * kMib);
  EXPECT_EQ(book_.TakeUnreported(kNode), 10 * kMib);
  EXPECT_EQ(book_.TakeUnreported(kNode), 0U);
  EXPECT_EQ(Held(), 54 * kMib);
}

TEST_F(GrantBookTest, GivesBackWhatLayUnusedForFiveSeconds) {
  Take(kMib);
  Grant(4 * kMib);
  Take(kMib);
  now_ = now_ + Milliseconds(4'900);
  EXPECT_TRUE(book_.Idle(now_).empty());
  now_ = now_ + Milliseconds(100);
  EXPECT_EQ(book_.Idle(now_), std::vector{kNode});
  EXPECT_EQ(book_.GiveBack(kNode), (GrantRequest{kNode, 0, kMib, 3 * kMib}));
  EXPECT_EQ(book_.GiveBack(kNode), std::nullopt);
}

// Takes, reserves, charges and gives back at random, also answers that nobody asked for, beside a
// manager that counts.
class History {
 public:
  explicit History(uint64_t seed) : rng_(seed), node_bytes_(rng_.Below(64 * kMib)) {}

  void Step() {
    now_ = now_ + Milliseconds(static_cast<int64_t>(rng_.Below(2000)));
    switch (rng_.Below(8)) {
      case 0:
        return Take();
      case 1:
        return Reserve();
      case 2:
        return Answer();
      case 3:
        return PutBack(rng_.Below(in_use_ + 1));
      case 4:
        return Charge(rng_.Below(reserved_ + kMib), rng_.Below(reserved_ + 1));
      case 5:
        if (const auto request = book_.GiveBack(kNode)) Report(*request);
        return;
      case 6:
        return Unreserve(rng_.Below(reserved_ + 1));
      default:
        reported_ += book_.TakeUnreported(kNode);
    }
  }
  // Nothing is used twice, and nothing leaks: what was granted is held or in use.
  void Check() const {
    const std::vector<HeldGrant> held = book_.Held();
    EXPECT_EQ(granted_, (held.empty() ? 0 : held[0].bytes) + in_use_);
    EXPECT_LE(reported_ + UnderWay(), in_use_);
  }

 private:
  uint64_t UnderWay() const { return question_ ? question_->consumed_bytes : 0; }
  void Report(const GrantRequest& request) {
    reported_ += request.consumed_bytes;
    granted_ -= request.returned_bytes;
  }
  void Asked(const GrantRequest& request, GrantBook::Attempt* of) {
    EXPECT_FALSE(question_) << "one at a time";
    question_ = request;
    asked_by_ = of;
  }
  void Take() {
    if (question_ && asked_by_ == &attempt_) return;
    if (!attempt_.asked) wanted_ = rng_.Below(8 * kMib);
    const GrantBook::Step step = book_.Take(kNode, wanted_, attempt_, now_);
    if (step.next == Next::kDone) in_use_ += wanted_;
    if (step.request) Asked(*step.request, step.next == Next::kAsk ? &attempt_ : nullptr);
    if (step.next == Next::kDone || step.next == Next::kRefused) attempt_ = {};
  }
  void Reserve() {
    GrantBook::Attempt once;
    const uint64_t bytes = rng_.Below(4 * kMib);
    const GrantBook::Step step = book_.Reserve(kNode, bytes, once, now_);
    if (step.next == Next::kDone) reserved_ += bytes;
    if (step.request) Asked(*step.request, nullptr);
  }
  void Answer() {
    const GrantReply unasked{kGib, kGib, kGib};
    if (!question_) return book_.Settle(kNode, &unasked, now_, nullptr);
    Report(*question_);
    const GrantReply reply{
        std::min(question_->wanted_bytes, node_bytes_ > granted_ ? node_bytes_ - granted_ : 0),
        4 * kGib, 8 * kGib};
    question_.reset();
    if (rng_.Below(5) == 0) return book_.Settle(kNode, nullptr, now_, asked_by_);
    granted_ += reply.granted_bytes;
    book_.Settle(kNode, &reply, now_, asked_by_);
  }
  void PutBack(uint64_t bytes) {
    book_.PutBack(kNode, bytes);
    in_use_ -= std::min(bytes, in_use_ - reported_ - UnderWay());
  }
  void Charge(uint64_t used_bytes, uint64_t reserved_bytes) {
    const std::vector<HeldGrant> held = book_.Held();
    const uint64_t free = held.empty() ? 0 : held[0].bytes - reserved_;
    book_.Charge(kNode, used_bytes, reserved_bytes, now_);
    const uint64_t of_reserved = std::min(used_bytes, reserved_bytes);
    reserved_ -= of_reserved;
    in_use_ += of_reserved + std::min(used_bytes - of_reserved, free);
  }
  void Unreserve(uint64_t bytes) {
    book_.Unreserve(kNode, bytes);
    reserved_ -= bytes;
  }

  Rng rng_;
  const uint64_t node_bytes_;
  Time now_{0};
  GrantBook book_;
  GrantBook::Attempt attempt_;
  uint64_t wanted_ = 0;
  std::optional<GrantRequest> question_;
  GrantBook::Attempt* asked_by_ = nullptr;
  uint64_t granted_ = 0;   // As the manager counts, less what was returned.
  uint64_t reported_ = 0;  // The part of in_use_ that was reported.
  uint64_t in_use_ = 0;
  uint64_t reserved_ = 0;
};

TEST(GrantBook, AccountsForEveryByteInRandomHistories) {
  for (uint64_t seed = 1; seed <= 2000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int step = 0; step < 200 && !::testing::Test::HasFailure(); ++step) {
      history.Step();
      history.Check();
    }
  }
}

TEST(GrantBook, AnImpossibleEventChangesNothingThatCounts) {
  constexpr uint64_t kHuge = UINT64_MAX - 5;
  GrantBook book;
  GrantBook::Attempt attempt;
  book.PutBack(kNode, kHuge);
  book.Charge(kNode, kHuge, kHuge, Time{0});
  book.Unreserve(kNode, kHuge);
  EXPECT_TRUE(book.Held().empty());
  EXPECT_EQ(book.TakeUnreported(kNode), 0U);
  ASSERT_EQ(book.Take(kNode, kHuge, attempt, Time{0}).next, Next::kAsk);
  const GrantReply reply{kHuge, kHuge, kHuge};
  book.Settle(kNode, &reply, Time{0}, &attempt);
  book.Settle(kNode, &reply, Time{0}, &attempt);
  EXPECT_EQ(book.Held()[0].bytes, kHuge);
  EXPECT_EQ(book.Reserve(kNode, kMib, attempt, Time{0}).next, Next::kDone);
  EXPECT_EQ(book.Take(kNode, kHuge - kMib, attempt, Time{0}).next, Next::kDone);
}

}  // namespace
}  // namespace mosa::sai
