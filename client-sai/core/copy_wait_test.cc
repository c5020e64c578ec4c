#include "client-sai/core/copy_wait.h"

#include <gtest/gtest.h>

namespace mosa::sai {
namespace {

class CopyWaitTest : public ::testing::Test {
 protected:
  void Begin(Duration patience) { wait_ = CopyWait(now_, patience); }
  // Answers come every 100 ms for this long. Returns true if the wait ends meanwhile.
  bool EndsWithin(Duration time) {
    for (const Time end = now_ + time; now_ < end;) {
      now_ = now_ + Milliseconds(100);
      if (wait_.IsOverdue(now_) || wait_.EndsWith(reply_, now_)) return true;
    }
    return false;
  }
  // Copying moves all the time.
  bool EndsWithinMoving(Duration time) {
    for (const Time end = now_ + time; now_ < end;) {
      ++reply_.copied_bytes;
      if (EndsWithin(Milliseconds(100))) return true;
    }
    return false;
  }

  Time now_;
  CopyWait wait_{Time(), Duration()};
  AwaitCopiesReply reply_{.copies_valid = 1, .more = true, .copies_wanted = 2};
};

TEST_F(CopyWaitTest, EndsWhenItsPatienceIsSpentIfNothingMoves) {
  for (const Duration patience : {Milliseconds(500), Seconds(6), Seconds(12)}) {
    Begin(patience);
    EXPECT_FALSE(EndsWithin(patience - Milliseconds(100))) << patience.ns;
    EXPECT_TRUE(EndsWithin(Milliseconds(100))) << patience.ns;
  }
}

TEST_F(CopyWaitTest, CopyingThatStopsNearTheEndOfThePatienceExtendsItByThreeSeconds) {
  for (const Duration patience : {Milliseconds(500), Seconds(6), Seconds(12)}) {
    Begin(patience);
    EXPECT_FALSE(EndsWithinMoving(patience));
    EXPECT_FALSE(EndsWithin(Milliseconds(2'900))) << patience.ns;
    EXPECT_TRUE(EndsWithin(Milliseconds(100))) << patience.ns;
  }
}

TEST_F(CopyWaitTest, AShortPatienceOutlivesANodeThatIsLostWhileItCopies) {
  Begin(Seconds(6));
  EXPECT_FALSE(EndsWithinMoving(Seconds(1)));
  EXPECT_FALSE(EndsWithin(Milliseconds(7'800)));
  EXPECT_TRUE(EndsWithin(Milliseconds(300)));
}

TEST_F(CopyWaitTest, ALongCopyMayStallForAsLongAsALostNodeTakesToBeReplaced) {
  Begin(Seconds(12));
  EXPECT_FALSE(EndsWithinMoving(Seconds(60)));
  EXPECT_FALSE(EndsWithin(Milliseconds(7'800)));
  EXPECT_TRUE(EndsWithin(Milliseconds(300)));
}

TEST_F(CopyWaitTest, ACopyThatIsLostMayBeMadeAnewTwice) {
  Begin(Seconds(6));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(EndsWithinMoving(Seconds(60))) << i;
    reply_.copied_bytes = 0;
  }
  EXPECT_FALSE(EndsWithinMoving(Seconds(7)));
  EXPECT_TRUE(EndsWithinMoving(Seconds(2)));
}

TEST_F(CopyWaitTest, ACopyThatGetsFurtherThanEverMayBeLostAgain) {
  Begin(Seconds(6));
  for (uint64_t i = 0; i < 10; ++i) {
    reply_.copied_bytes = 0;
    EXPECT_FALSE(EndsWithinMoving(Seconds(static_cast<int64_t>(7 + i)))) << i;
  }
}

TEST_F(CopyWaitTest, NodesThatLoseEachNewCopyDoNotExtendItForEver) {
  Begin(Seconds(12));
  EXPECT_FALSE(EndsWithin(Seconds(11)));
  bool ended = false;
  for (int i = 0; i < 40 && !ended; ++i) {
    reply_.copies_valid = i % 2;
    ended = EndsWithin(Seconds(1));
  }
  EXPECT_TRUE(ended);
}

TEST_F(CopyWaitTest, AWriterElsewhereHasTwoSecondsToReleaseTheFile) {
  Begin(Seconds(12));
  reply_.open_for_writing = true;
  EXPECT_FALSE(EndsWithin(Milliseconds(1'900)));
  reply_.open_for_writing = false;
  EXPECT_FALSE(EndsWithin(Milliseconds(200)));
  reply_.open_for_writing = true;
  EXPECT_FALSE(EndsWithin(Seconds(2)));
  EXPECT_TRUE(EndsWithin(Milliseconds(100)));
}

TEST_F(CopyWaitTest, EndsAtOnceWhenThereAreEnoughCopiesOrNoMoreWillCome) {
  Begin(Seconds(12));
  reply_.more = false;
  EXPECT_TRUE(wait_.EndsWith(reply_, now_));
  Begin(Seconds(12));
  reply_.copies_valid = 2;
  EXPECT_TRUE(wait_.EndsWith(reply_, now_));
}

}  // namespace
}  // namespace mosa::sai
