#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage-node/core/admission.h"
#include "storage-node/core/upkeep.h"

namespace mosa::node {
namespace {

using ::testing::HasSubstr;

TEST(Admission, AdmitsUpToTheLimitAndRefusesWithNumbers) {
  Admission admission(1000);
  EXPECT_TRUE(admission.Reserve(FileId{7}, 600).ok());
  admission.Account(0, 300);
  const Status refused = admission.Reserve(FileId{7}, 101);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("101 more bytes of file 7: 300 of 1000 bytes are used"
                                            " and 600 reserved"));
  EXPECT_TRUE(admission.Reserve(FileId{7}, 100).ok());
  admission.GiveBack(700);
  EXPECT_TRUE(admission.Reserve(FileId{7}, 700).ok());
}

TEST(Admission, LocalWritersMayPassTheLimitAndThenNothingFits) {
  Admission admission(1000);
  admission.Account(0, 1500);
  EXPECT_FALSE(admission.Reserve(FileId{1}, 1).ok());
  EXPECT_TRUE(admission.Reserve(FileId{1}, 0).ok());
  admission.Account(1500, 200);
  EXPECT_EQ(admission.used_bytes(), 200U);
  EXPECT_TRUE(admission.Reserve(FileId{1}, 800).ok());
}

TEST(SealQueue, ServesWhoIsReadyLongestOnce) {
  SealQueue queue;
  queue.Push(FileId{1}, Time{30});
  queue.Push(FileId{2}, Time{20});
  queue.Push(FileId{3}, Time{20});
  EXPECT_EQ(queue.next_ready(), Time{20});
  EXPECT_EQ(queue.Pop(Time{19}), std::nullopt);
  EXPECT_EQ(queue.Pop(Time{100}), FileId{2});
  EXPECT_EQ(queue.Pop(Time{100}), FileId{3});
  EXPECT_EQ(queue.Pop(Time{100}), FileId{1});
  EXPECT_EQ(queue.Pop(Time{100}), std::nullopt);
  EXPECT_EQ(queue.next_ready(), std::nullopt);
}

TEST(SealQueue, AWriteMeanwhilePutsItOff) {
  SealQueue queue;
  queue.Push(FileId{1}, Time{10});
  queue.Push(FileId{1}, Time{50});
  queue.Push(FileId{1}, Time{20});
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.Pop(Time{49}), std::nullopt);
  EXPECT_EQ(queue.Pop(Time{50}), FileId{1});
  queue.Push(FileId{1}, Time{60});
  queue.Remove(FileId{1});
  queue.Remove(FileId{9});
  EXPECT_EQ(queue.Pop(Time{100}), std::nullopt);
}

TEST(Scrub, KeepsItsRate) {
  EXPECT_EQ(ScrubPause(1 << 20, Milliseconds(0), 1 << 20), Seconds(1));
  EXPECT_EQ(ScrubPause(1 << 20, Milliseconds(300), 1 << 20), Milliseconds(700));
  EXPECT_EQ(ScrubPause(1 << 20, Seconds(2), 1 << 20), Seconds(0));
  EXPECT_EQ(ScrubPause(uint64_t{1} << 40, Seconds(0), uint64_t{1} << 40), Seconds(1));
}

}  // namespace
}  // namespace mosa::node
