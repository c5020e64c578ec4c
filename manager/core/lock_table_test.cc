#include "manager/core/lock_table.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "common/base/rng.h"

namespace mosa::manager {
namespace {

using Outcome = LockTable::Outcome;
constexpr FileId kFile{10};
constexpr FileId kOtherFile{11};
constexpr ClientId kA{1};
constexpr ClientId kB{2};
constexpr ClientId kC{3};

Lock Range(LockType type, uint64_t begin, uint64_t last, uint64_t owner = 1) {
  return {.type = type, .begin = begin, .last = last, .owner = owner};
}
Lock Flock(LockType type, uint64_t owner = 1) {
  return {.type = type, .owner = owner, .whole_file = true};
}

class LockTableTest : public ::testing::Test {
 protected:
  Outcome Set(FileId file, ClientId client, const Lock& lock) {
    return table_.Set(file, client, lock, std::nullopt, granted_);
  }
  Outcome Wait(FileId file, ClientId client, const Lock& lock, uint64_t request) {
    return table_.Set(file, client, lock, RequestId(request), granted_);
  }
  LockTable table_;
  std::vector<LockTable::Waiting> granted_;
};

TEST_F(LockTableTest, SharedLocksLiveTogetherAndExclusiveOnesAlone) {
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kShared, 0, 9)), Outcome::kDone);
  EXPECT_EQ(Set(kFile, kB, Range(LockType::kShared, 5, 14)), Outcome::kDone);
  EXPECT_EQ(Set(kFile, kB, Range(LockType::kExclusive, 5, 14)), Outcome::kConflict);
  EXPECT_EQ(Set(kFile, kB, Range(LockType::kExclusive, 10, 14)), Outcome::kDone);
  const auto conflict = table_.ConflictWith(kFile, kC, Range(LockType::kShared, 12, 12));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(*conflict, Range(LockType::kExclusive, 10, 14));
}

TEST_F(LockTableTest, FlockAndRangesDoNotSeeEachOther) {
  EXPECT_EQ(Set(kFile, kA, Flock(LockType::kExclusive)), Outcome::kDone);
  EXPECT_EQ(Set(kFile, kB, Range(LockType::kExclusive, 0, UINT64_MAX)), Outcome::kDone);
  EXPECT_EQ(Set(kFile, kB, Flock(LockType::kShared)), Outcome::kConflict);
}

TEST_F(LockTableTest, OwnersOfOneClientExcludeEachOther) {
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kExclusive, 0, 9, 1)), Outcome::kDone);
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kExclusive, 0, 9, 2)), Outcome::kConflict);
}

TEST_F(LockTableTest, WaitersAreGrantedInOrderWhenTheHolderLetsGo) {
  Set(kFile, kA, Range(LockType::kExclusive, 0, 9));
  EXPECT_EQ(Wait(kFile, kB, Range(LockType::kExclusive, 0, 4), 7), Outcome::kWaiting);
  EXPECT_EQ(Wait(kFile, kC, Range(LockType::kShared, 0, 9), 8), Outcome::kWaiting);
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kUnlock, 0, 4)), Outcome::kDone);
  EXPECT_EQ(granted_, (std::vector<LockTable::Waiting>{{kB, RequestId(7)}}));
  granted_.clear();
  table_.Release(kA, true, granted_);
  EXPECT_TRUE(granted_.empty());
  Set(kFile, kB, Range(LockType::kUnlock, 0, UINT64_MAX));
  EXPECT_EQ(granted_, (std::vector<LockTable::Waiting>{{kC, RequestId(8)}}));
}

TEST_F(LockTableTest, ACancelledWaiterIsNotGranted) {
  Set(kFile, kA, Range(LockType::kExclusive, 0, 9));
  Wait(kFile, kB, Range(LockType::kExclusive, 0, 9), 7);
  EXPECT_FALSE(table_.Cancel(kB, RequestId(6)));
  EXPECT_TRUE(table_.Cancel(kB, RequestId(7)));
  table_.Release(kA, true, granted_);
  EXPECT_TRUE(granted_.empty());
  EXPECT_EQ(table_.held(), 0U);
}

TEST_F(LockTableTest, AWaitThatCouldNeverEndIsRefused) {
  Set(kFile, kA, Range(LockType::kExclusive, 0, 0));
  Set(kOtherFile, kB, Range(LockType::kExclusive, 0, 0));
  Set(kOtherFile, kC, Range(LockType::kExclusive, 1, 1));
  EXPECT_EQ(Wait(kFile, kC, Range(LockType::kShared, 0, 0), 1), Outcome::kWaiting);
  EXPECT_EQ(Wait(kOtherFile, kA, Range(LockType::kShared, 0, 0), 2), Outcome::kWaiting);
  EXPECT_EQ(Wait(kFile, kB, Range(LockType::kShared, 0, 0), 3), Outcome::kDeadlock);
  EXPECT_EQ(Wait(kOtherFile, kB, Range(LockType::kShared, 1, 1), 4), Outcome::kDeadlock);
}

TEST_F(LockTableTest, TwoUpgradesOfFlockDoNotWaitForEachOther) {
  Set(kFile, kA, Flock(LockType::kShared));
  Set(kFile, kB, Flock(LockType::kShared));
  EXPECT_EQ(Wait(kFile, kA, Flock(LockType::kExclusive), 1), Outcome::kWaiting);
  EXPECT_EQ(Wait(kFile, kB, Flock(LockType::kExclusive), 2), Outcome::kDone);
  EXPECT_TRUE(granted_.empty());
  Set(kFile, kB, Flock(LockType::kUnlock));
  EXPECT_EQ(granted_, (std::vector<LockTable::Waiting>{{kA, RequestId(1)}}));
}

TEST_F(LockTableTest, DowngradingLetsSharedWaitersIn) {
  Set(kFile, kA, Range(LockType::kExclusive, 0, 9));
  Wait(kFile, kB, Range(LockType::kShared, 0, 4), 7);
  Wait(kFile, kC, Range(LockType::kShared, 5, 9), 8);
  Set(kFile, kA, Range(LockType::kShared, 0, 9));
  EXPECT_EQ(granted_, (std::vector<LockTable::Waiting>{{kB, RequestId(7)}, {kC, RequestId(8)}}));
}

TEST_F(LockTableTest, AnOwnerReplacesWhatItHadAndTheRestIsSplit) {
  Set(kFile, kA, Range(LockType::kExclusive, 0, 99));
  Set(kFile, kA, Range(LockType::kUnlock, 40, 59));
  EXPECT_EQ(table_.held(), 2U);
  EXPECT_FALSE(table_.ConflictWith(kFile, kB, Range(LockType::kExclusive, 40, 59)));
  EXPECT_TRUE(table_.ConflictWith(kFile, kB, Range(LockType::kShared, 39, 39)));
  EXPECT_TRUE(table_.ConflictWith(kFile, kB, Range(LockType::kShared, 60, 60)));
  Set(kFile, kA, Range(LockType::kExclusive, 40, 59));
  EXPECT_EQ(table_.held(), 1U);
}

TEST_F(LockTableTest, NonsenseIsRefused) {
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kShared, 5, 4)), Outcome::kInvalid);
  EXPECT_EQ(Set(kFile, kA, Range(static_cast<LockType>(9), 0, 4)), Outcome::kInvalid);
  EXPECT_EQ(Set(kFile, kA, Range(LockType::kUnlock, 0, 4)), Outcome::kDone);
}

TEST_F(LockTableTest, OneClientHoldsUpToALimitAndOthersGoOn) {
  const ClientId client(1);
  for (uint64_t i = 0; i < kLocksPerClientMax; ++i)
    ASSERT_EQ(Set(FileId(1000 + i), client, Range(LockType::kExclusive, 0, 1)), Outcome::kDone);
  EXPECT_EQ(table_.held(), kLocksPerClientMax);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kShared, 0, 1)), Outcome::kTooMany);
  EXPECT_EQ(Set(FileId(10), ClientId(2), Range(LockType::kShared, 0, 1)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(1000), client, Range(LockType::kUnlock, 0, 1)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kShared, 0, 1)), Outcome::kDone);
  std::vector<LockTable::Waiting> granted;
  table_.Release(client, true, granted);
  EXPECT_EQ(table_.held(), 1U);
  table_.Forget(FileId(10), granted);
  EXPECT_EQ(table_.held(), 0U);
}

TEST_F(LockTableTest, AnUnlockThatSplitsIsALockMore) {
  const ClientId client(1);
  for (uint64_t i = 1; i < kLocksPerClientMax; ++i)
    ASSERT_EQ(Set(FileId(1000 + i), client, Range(LockType::kExclusive, 0, 1)), Outcome::kDone);
  ASSERT_EQ(Set(FileId(10), client, Range(LockType::kExclusive, 0, 9)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kUnlock, 4, 5)), Outcome::kTooMany);
  EXPECT_EQ(table_.held(), kLocksPerClientMax);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kUnlock, 0, 2)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kUnlock, 8, 9)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(1001), client, Range(LockType::kUnlock, 0, 1)), Outcome::kDone);
  EXPECT_EQ(Set(FileId(10), client, Range(LockType::kUnlock, 4, 5)), Outcome::kDone);
}

TEST_F(LockTableTest, AgreesWithAnArrayOfBytes) {
  const uint64_t seed = 20240611;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  std::array<std::map<uint64_t, LockType>, 16> bytes;
  for (int step = 0; step < 20000; ++step) {
    const ClientId client(1 + rng.Below(3));
    const auto type = static_cast<LockType>(1 + rng.Below(3));
    const uint64_t begin = rng.Below(16);
    const uint64_t last = begin + rng.Below(16 - begin);
    bool conflict = false;
    for (uint64_t i = begin; i <= last && type != LockType::kUnlock; ++i) {
      for (const auto& [holder, held] : bytes[i])
        conflict |= holder != client.value &&
                    (held == LockType::kExclusive || type == LockType::kExclusive);
    }
    ASSERT_EQ(Set(kFile, client, Range(type, begin, last)),
              conflict ? Outcome::kConflict : Outcome::kDone)
        << "seed " << seed << " step " << step;
    if (conflict) continue;
    for (uint64_t i = begin; i <= last; ++i) {
      bytes[i].erase(client.value);
      if (type != LockType::kUnlock) bytes[i].emplace(client.value, type);
    }
    ASSERT_LE(table_.held(), 48U);
  }
}

}  // namespace
}  // namespace mosa::manager
