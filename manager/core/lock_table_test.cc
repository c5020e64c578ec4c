#include "manager/core/lock_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "common/base/rng.h"

namespace mosa::manager {
namespace {

using SetResult = LockTable::SetResult;
constexpr FileId kFile{7};
constexpr ClientId kA{1};
constexpr ClientId kB{2};
constexpr ClientId kC{3};

Lock Range(LockType type, uint64_t begin, uint64_t last, uint64_t owner = 1) {
  Lock lock;
  lock.type = type;
  lock.begin = begin;
  lock.last = last;
  lock.owner = owner;
  return lock;
}
Lock Flock(LockType type) {
  Lock lock = Range(type, 0, UINT64_MAX);
  lock.whole_file = true;
  return lock;
}

class LockTableTest : public ::testing::Test {
 protected:
  SetResult Set(ClientId client, const Lock& lock, bool wait = false, FileId file = kFile) {
    granted_.clear();
    return table_.Set(file, client, RequestId(++request_), lock, wait, granted_);
  }
  LockTable table_;
  std::vector<LockTable::Granted> granted_;
  uint64_t request_ = 0;
};

TEST_F(LockTableTest, SharedLocksGoTogetherAndExclusiveOnesDoNot) {
  EXPECT_EQ(Set(kA, Range(LockType::kShared, 0, 9)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Range(LockType::kShared, 5, 20)), SetResult::kGranted);
  EXPECT_EQ(Set(kC, Range(LockType::kExclusive, 9, 9)), SetResult::kWouldBlock);
  EXPECT_EQ(Set(kC, Range(LockType::kExclusive, 21, UINT64_MAX)), SetResult::kGranted);
}

TEST_F(LockTableTest, AnOwnerReplacesWhatItHadAndTheRestIsSplit) {
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 99)), SetResult::kGranted);
  EXPECT_EQ(Set(kA, Range(LockType::kUnlock, 40, 59)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Range(LockType::kExclusive, 40, 59)), SetResult::kGranted);
  EXPECT_EQ(table_.FindConflict(kFile, kB, Range(LockType::kShared, 0, 59))->last, 39U);
  EXPECT_EQ(table_.FindConflict(kFile, kB, Range(LockType::kShared, 50, 99))->begin, 60U);
}

TEST_F(LockTableTest, DifferentOwnersOfOneClientConflict) {
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 0, 1)), SetResult::kGranted);
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 0, 2)), SetResult::kWouldBlock);
}

TEST_F(LockTableTest, FlockAndPosixLocksDoNotSeeEachOther) {
  EXPECT_EQ(Set(kA, Flock(LockType::kExclusive)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Range(LockType::kExclusive, 0, UINT64_MAX)), SetResult::kGranted);
  EXPECT_EQ(Set(kC, Flock(LockType::kShared)), SetResult::kWouldBlock);
}

TEST_F(LockTableTest, WaitersAreGrantedInOrderOfArrival) {
  EXPECT_EQ(Set(kA, Flock(LockType::kExclusive)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Flock(LockType::kExclusive), true), SetResult::kWaiting);
  const RequestId b(request_);
  EXPECT_EQ(Set(kC, Flock(LockType::kExclusive), true), SetResult::kWaiting);
  const RequestId c(request_);
  EXPECT_EQ(Set(kA, Flock(LockType::kUnlock)), SetResult::kGranted);
  ASSERT_EQ(granted_.size(), 1U);
  EXPECT_EQ(granted_[0], (LockTable::Granted{kB, b}));
  granted_.clear();
  table_.ReleaseClient(kB, granted_);
  ASSERT_EQ(granted_.size(), 1U);
  EXPECT_EQ(granted_[0], (LockTable::Granted{kC, c}));
}

TEST_F(LockTableTest, ACancelledWaitIsNeverGranted) {
  EXPECT_EQ(Set(kA, Flock(LockType::kExclusive)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Flock(LockType::kExclusive), true), SetResult::kWaiting);
  EXPECT_TRUE(table_.Cancel(kB, RequestId(request_), granted_));
  EXPECT_FALSE(table_.Cancel(kB, RequestId(request_), granted_));
  Set(kA, Flock(LockType::kUnlock));
  EXPECT_TRUE(granted_.empty());
  EXPECT_FALSE(table_.HasLocks(kFile));
}

TEST_F(LockTableTest, ACircleOfPosixWaitsIsADeadlockAlsoOverTwoFiles) {
  constexpr FileId kOther{8};
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 0)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Range(LockType::kExclusive, 0, 0), false, kOther), SetResult::kGranted);
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 0), true, kOther), SetResult::kWaiting);
  EXPECT_EQ(Set(kB, Range(LockType::kExclusive, 0, 0), true), SetResult::kDeadlock);
}

TEST_F(LockTableTest, DowngradingLetsSharedWaitersIn) {
  EXPECT_EQ(Set(kA, Range(LockType::kExclusive, 0, 9)), SetResult::kGranted);
  EXPECT_EQ(Set(kB, Range(LockType::kShared, 0, 9), true), SetResult::kWaiting);
  EXPECT_EQ(Set(kA, Range(LockType::kShared, 0, 9)), SetResult::kGranted);
  EXPECT_EQ(granted_.size(), 1U);
}

// Against a table with one entry per byte.
TEST(LockTableModel, AgreesWithOneEntryPerByte) {
  constexpr uint64_t kBytes = 24;
  Rng rng(20240611);
  LockTable table;
  std::map<std::tuple<uint64_t, uint64_t>, LockType> model;  // (byte, owner) -> type
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t owner = 1 + rng.Below(4);
    const uint64_t begin = rng.Below(kBytes);
    const uint64_t last = begin + rng.Below(kBytes - begin);
    const auto type = static_cast<LockType>(1 + rng.Below(3));
    bool conflict = false;
    for (const auto& [key, held] : model) {
      const auto [byte, other] = key;
      conflict |= other != owner && byte >= begin && byte <= last && type != LockType::kUnlock &&
                  (held == LockType::kExclusive || type == LockType::kExclusive);
    }
    std::vector<LockTable::Granted> granted;
    const SetResult result =
        table.Set(kFile, kA, RequestId(1), Range(type, begin, last, owner), false, granted);
    ASSERT_EQ(result, conflict ? SetResult::kWouldBlock : SetResult::kGranted) << "step " << step;
    if (conflict) continue;
    for (uint64_t byte = begin; byte <= last; ++byte) {
      if (type == LockType::kUnlock) {
        model.erase({byte, owner});
      } else {
        model[{byte, owner}] = type;
      }
    }
  }
}

}  // namespace
}  // namespace mosa::manager
