#include "storage-node/core/connection_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/base/rng.h"

namespace mosa::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Time kNow{1'000'000'000};

class ConnectionBookTest : public ::testing::Test {
 protected:
  ConnectionId Accept(const std::string& host, Time now = kNow) {
    return book_.Accept(host, now, displaced_);
  }
  ConnectionId Proven(const std::string& client) {
    const ConnectionId id = Accept("h");
    const Status status = book_.Prove(id, client, parting_, kNow);
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    return id;
  }

  ConnectionBook book_{{.unproven_max = 4,
                        .proven_max = 6,
                        .per_client_max = 3,
                        .threads_max = 3,
                        .threads_per_client_max = 2,
                        .proof_wait = Seconds(2),
                        .parting_wait = Seconds(2)}};
  std::optional<ConnectionId> displaced_;
  std::vector<ConnectionId> parting_;

  enum class State { kUnproven, kIdle, kServed, kParting };
  void CheckCounts(const std::map<ConnectionId, State>& model) const {
    const auto count = [&](State state) {
      return static_cast<size_t>(
          std::count_if(model.begin(), model.end(), [&](auto& m) { return m.second == state; }));
    };
    ASSERT_EQ(book_.unproven(), count(State::kUnproven));
    ASSERT_EQ(book_.served(), count(State::kServed));
    ASSERT_EQ(book_.proven(), count(State::kIdle) + count(State::kServed));
    ASSERT_LE(book_.unproven(), 4U);
    ASSERT_LE(book_.proven(), 6U);
    ASSERT_LE(book_.served(), 3U);
  }
};

TEST_F(ConnectionBookTest, WhoSaysNothingGoesAfterTwoSeconds) {
  const ConnectionId first = Accept("a");
  Accept("b", kNow + Seconds(1));
  EXPECT_EQ(book_.next_expiry(), kNow + Seconds(2));
  EXPECT_THAT(book_.Expired(kNow + Seconds(2) - Nanoseconds(1)), IsEmpty());
  EXPECT_THAT(book_.Expired(kNow + Seconds(2)), ElementsAre(first));
  book_.Remove(first);
  EXPECT_EQ(book_.unproven(), 1U);
}

TEST_F(ConnectionBookTest, AFloodFromOneHostDisplacesItsOwn) {
  const ConnectionId honest = Accept("honest");
  std::vector<ConnectionId> flood;
  for (int i = 0; i < 3; ++i) flood.push_back(Accept("flood"));
  EXPECT_FALSE(displaced_);
  for (size_t i = 0; i < 100; ++i) {
    flood.push_back(Accept("flood"));
    EXPECT_EQ(displaced_, flood[i]);  // The oldest of the flood.
  }
  EXPECT_EQ(book_.unproven(), 4U);
  EXPECT_EQ(book_.turned_away(), 100U);
  EXPECT_TRUE(book_.Prove(honest, "c", parting_, kNow).ok());
}

TEST_F(ConnectionBookTest, OfManyHostsTheOldestGoes) {
  std::vector<ConnectionId> flood;
  for (int i = 0; i < 10; ++i) {
    flood.push_back(Accept("host" + std::to_string(9 - i)));
    if (i < 4) continue;
    EXPECT_EQ(displaced_, flood[static_cast<size_t>(i) - 4]);
  }
}

TEST_F(ConnectionBookTest, AClientsLongestIdleConnectionMakesRoomForItsNext) {
  const ConnectionId a = Proven("c");
  const ConnectionId b = Proven("c");
  Proven("c");
  book_.Queue(a);
  EXPECT_EQ(book_.Next(), a);
  Proven("c");
  EXPECT_THAT(parting_, ElementsAre(b));
  EXPECT_TRUE(book_.IsParting(b));
  EXPECT_EQ(book_.proven(), 3U);
  EXPECT_THAT(book_.Expired(kNow + Seconds(2)), ElementsAre(b));
}

TEST_F(ConnectionBookTest, WhenAllAreInUseTheNewcomerIsRefusedWithTheNumbers) {
  for (int i = 0; i < 3; ++i) book_.Queue(Proven("c"));
  const ConnectionId late = Accept("h");
  const Status refused = book_.Prove(late, "c", parting_, kNow);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("3 connections to this node, its limit is 3"));
  EXPECT_THAT(parting_, IsEmpty());
  book_.Part(late, kNow);
  for (int i = 0; i < 3; ++i) book_.Queue(Proven("d"));
  const ConnectionId later = Accept("h");
  const Status full = book_.Prove(later, "e", parting_, kNow);
  EXPECT_EQ(full.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(full), HasSubstr("already serves 6 connections, its limit is 6"));
}

TEST_F(ConnectionBookTest, TheLongestIdleOfAllGoesWhenTheNodeIsFull) {
  std::vector<ConnectionId> ids;
  for (const char* client : {"a", "a", "b", "b", "c", "c"}) ids.push_back(Proven(client));
  book_.Queue(ids[0]);
  ASSERT_EQ(book_.Next(), ids[0]);
  book_.Idle(ids[0]);  // Used just now.
  Proven("d");
  EXPECT_THAT(parting_, ElementsAre(ids[1]));
}

TEST_F(ConnectionBookTest, RequestsAreServedInOrderButNoClientTakesAllThreads) {
  const ConnectionId a1 = Proven("a");
  const ConnectionId a2 = Proven("a");
  const ConnectionId a3 = Proven("a");
  const ConnectionId b1 = Proven("b");
  const ConnectionId b2 = Proven("b");
  for (const ConnectionId id : {a1, a2, a3, b1, b2}) book_.Queue(id);
  EXPECT_EQ(book_.Next(), a1);
  EXPECT_EQ(book_.Next(), a2);
  EXPECT_EQ(book_.Next(), b1);  // a3 waits: its client has two threads.
  EXPECT_EQ(book_.Next(), std::nullopt);
  EXPECT_EQ(book_.served(), 3U);
  book_.Idle(a1);
  EXPECT_EQ(book_.Next(), b2);
  book_.Remove(b1);
  EXPECT_EQ(book_.Next(), a3);
  book_.Queue(a1);
  book_.Queue(a1);  // A repeated call has no effect.
  EXPECT_EQ(book_.queued(), 1U);
}

TEST_F(ConnectionBookTest, ThoseToldToGoAreFew) {
  std::vector<ConnectionId> refused;
  for (int i = 0; i < 6; ++i) {
    refused.push_back(Accept("h"));
    book_.Part(refused.back(), kNow);
  }
  EXPECT_THAT(book_.Expired(kNow), ElementsAre(refused[0], refused[1]));
  EXPECT_EQ(book_.unproven(), 0U);
}

TEST_F(ConnectionBookTest, SomebodyGoesWhenDescriptorsAreShort) {
  EXPECT_EQ(book_.Spare(), std::nullopt);
  const ConnectionId idle = Proven("a");
  EXPECT_EQ(book_.Spare(), idle);
  const ConnectionId silent = Accept("h");
  EXPECT_EQ(book_.Spare(), silent);
}

// For any order of events, counts are consistent and limits are kept.
TEST_F(ConnectionBookTest, KeepsItsLimitsInRandomOrders) {
  const char* const given = std::getenv("MOSA_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 7;
  SCOPED_TRACE("MOSA_SEED=" + std::to_string(seed));
  Rng rng(seed);
  std::map<ConnectionId, State> model;
  const auto pick = [&](State state) -> std::optional<ConnectionId> {
    std::vector<ConnectionId> found;
    for (const auto& [id, is] : model)
      if (is == state) found.push_back(id);
    if (found.empty()) return std::nullopt;
    return found[rng.Below(found.size())];
  };
  Time now = kNow;
  for (int i = 0; i < 20'000; ++i) {
    now = now + Milliseconds(static_cast<int64_t>(rng.Below(50)));
    switch (rng.Below(7)) {
      case 0: {
        const ConnectionId id = Accept("h" + std::to_string(rng.Below(3)), now);
        model[id] = State::kUnproven;
        if (displaced_) model.erase(*displaced_);
        break;
      }
      case 1:
        if (const auto id = pick(State::kUnproven)) {
          parting_.clear();
          const Status status = book_.Prove(*id, "c" + std::to_string(rng.Below(4)), parting_, now);
          for (const ConnectionId gone : parting_) model[gone] = State::kParting;
          if (status.ok()) {
            model[*id] = State::kIdle;
          } else {
            book_.Part(*id, now);
            model[*id] = State::kParting;
          }
        }
        break;
      case 2:
      case 3:
        if (const auto id = pick(State::kIdle)) {
          book_.Queue(*id);
          if (const auto next = book_.Next()) model[*next] = State::kServed;
        }
        break;
      case 4:
        if (const auto id = pick(State::kServed)) {
          book_.Idle(*id);
          model[*id] = State::kIdle;
        }
        break;
      case 5:
        if (const auto id = pick(rng.Chance(500) ? State::kServed : State::kIdle)) {
          book_.Remove(*id);
          model.erase(*id);
        }
        break;
      default:
        for (const ConnectionId id : book_.Expired(now)) {
          ASSERT_NE(model.at(id), State::kServed);
          book_.Remove(id);
          model.erase(id);
        }
    }
    ASSERT_NO_FATAL_FAILURE(CheckCounts(model));
  }
}

}  // namespace
}  // namespace mosa::node
