#include "manager/core/interests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::manager {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class InterestsTest : public testing::Test {
 protected:
  Session Begin(uint64_t client) {
    Session session;
    session.start.client = ClientId{client};
    session.slot = interests_.TakeSlot(ClientId{client}, [this](uint64_t bits) {
      inode_.interest &= ~bits;
      ++cleared_;
    });
    return session;
  }
  std::vector<ClientId> All() const { return interests_.Of(kFile, inode_, ClientId{}); }

  static constexpr FileId kFile{7};
  Interests interests_;
  Inode inode_;
  int cleared_ = 0;
};

TEST_F(InterestsTest, CountsEachInterestOnce) {
  Session anna = Begin(1), ben = Begin(2);
  for (int i = 0; i < 2; ++i) interests_.Add(anna, kFile, inode_);
  interests_.Add(ben, kFile, inode_);
  EXPECT_EQ(anna.interests, 1U);
  EXPECT_THAT(All(), ElementsAre(ClientId{1}, ClientId{2}));
  EXPECT_THAT(interests_.Of(kFile, inode_, ClientId{1}), ElementsAre(ClientId{2}));
  for (int i = 0; i < 2; ++i) interests_.Drop(anna, kFile, inode_);
  EXPECT_EQ(anna.interests, 0U);
  EXPECT_THAT(All(), ElementsAre(ClientId{2}));
}

TEST_F(InterestsTest, ManySessionsAreAllNamed) {
  std::vector<Session> sessions;
  for (uint64_t i = 1; i <= 70; ++i) {
    sessions.push_back(Begin(i));
    interests_.Add(sessions.back(), kFile, inode_);
  }
  EXPECT_EQ(All().size(), 70U);
  for (int i = 0; i < 2; ++i) interests_.Drop(sessions[69], kFile, inode_);
  EXPECT_EQ(sessions[69].interests, 0U);
  EXPECT_EQ(All().size(), 69U);
  interests_.RetireSlot(sessions[68].slot);
  EXPECT_EQ(All().size(), 68U) << "a later session that ended";
}

TEST_F(InterestsTest, WhoEndedIsNotNamedAndNobodyInheritsItsInterests) {
  for (uint64_t i = 1; i <= 200; ++i) {
    Session session = Begin(i);
    EXPECT_THAT(All(), IsEmpty()) << "session " << i << " has an earlier one's interest";
    interests_.Add(session, kFile, inode_);
    EXPECT_THAT(All(), UnorderedElementsAre(ClientId{i}));
    interests_.RetireSlot(session.slot);
    EXPECT_LT(session.slot, 64U);
  }
  EXPECT_EQ(cleared_, 3) << "bits are cleared once in 64 sessions";
}

}  // namespace
}  // namespace mosa::manager
