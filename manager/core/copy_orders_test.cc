#include "manager/core/copy_orders.h"

#include <gtest/gtest.h>

namespace mosa::manager {
namespace {

constexpr NodeId kTarget{1}, kSource{2};

CopyTask Task(uint64_t order, bool follow = false) {
  CopyTask task{.order = order, .data_version = 1, .follow = follow};
  task.sources = {4096, {{0, 1, {kSource}}}, ""};
  return task;
}

TEST(CopyOrders, ANodeWorksOnAFewAndTheRestWaits) {
  CopyOrders orders;
  for (uint64_t file = 1; file <= kCopyOrdersPerNode; ++file) {
    EXPECT_TRUE(orders.MayStart(FileId(file), kTarget));
    orders.Start(FileId(file), kTarget, Task(file));
  }
  EXPECT_FALSE(orders.MayStart(FileId(9), kTarget));
  EXPECT_TRUE(orders.MayStart(FileId(1), kTarget)) << "what it works on may be ordered anew";
  orders.Start(FileId(8), kTarget, Task(8, true));
  EXPECT_EQ(orders.running(kTarget), kCopyOrdersPerNode) << "followers do not count";
  orders.Enqueue(FileId(9), kTarget, 2);
  orders.Enqueue(FileId(10), kTarget, 1);
  orders.Enqueue(FileId(11), kTarget, 1);
  EXPECT_FALSE(orders.TakeNext());
  orders.Finish(FileId(1), kTarget);
  EXPECT_EQ(orders.TakeNext(), FileId(10)) << "fewest live copies first";
  EXPECT_EQ(orders.TakeNext(), FileId(11));
  EXPECT_EQ(orders.TakeNext(), FileId(9));
  EXPECT_FALSE(orders.TakeNext());
}

TEST(CopyOrders, AFailureMakesRoomAndIsRemembered) {
  CopyOrders orders;
  orders.Start(FileId(1), kTarget, Task(1));
  orders.SetProgress(FileId(1), kTarget, 17);
  EXPECT_EQ(orders.Find(FileId(1), kTarget)->copied_bytes, 17U);
  orders.Fail(FileId(1), kTarget, "no room", Time{5});
  EXPECT_EQ(orders.running(kTarget), 0U);
  ASSERT_NE(orders.Find(FileId(1), kTarget), nullptr);
  EXPECT_FALSE(orders.Find(FileId(1), kTarget)->running());
  EXPECT_EQ(orders.Find(FileId(1), kTarget)->failure, "no room");
  orders.Start(FileId(1), kTarget, Task(2));
  EXPECT_EQ(orders.Find(FileId(1), kTarget)->failure, "");
  orders.ForgetFile(FileId(1));
  EXPECT_EQ(orders.Find(FileId(1), kTarget), nullptr);
  EXPECT_EQ(orders.running(kTarget), 0U);
}

TEST(CopyOrders, WhoFetchesFromARelayIsTriedAnewWhenTheRelayHasFailed) {
  CopyOrders orders;
  CopyTask relayed = Task(2);
  relayed.relays = {kTarget};
  orders.Start(FileId(1), kTarget, Task(1));
  orders.Start(FileId(1), NodeId(3), relayed);
  EXPECT_FALSE(orders.Find(FileId(1), NodeId(3))->relay_ended);
  orders.Fail(FileId(1), kTarget, "no answer", Time{5});
  EXPECT_TRUE(orders.Find(FileId(1), NodeId(3))->relay_ended);
}

TEST(CopyOrders, ANodeThatIsGoneIsForgottenAsTargetAndNamedAsSource) {
  CopyOrders orders;
  orders.Start(FileId(1), kTarget, Task(1));
  orders.Start(FileId(2), NodeId(3), Task(2));
  orders.Enqueue(FileId(4), kTarget, 1);
  EXPECT_EQ(orders.ForgetNode(kTarget), (std::vector<FileId>{FileId(1), FileId(4)}));
  EXPECT_FALSE(orders.IsQueued(FileId(4), kTarget));
  EXPECT_EQ(orders.Find(FileId(1), kTarget), nullptr);
  EXPECT_EQ(orders.ForgetNode(kSource), (std::vector<FileId>{FileId(2)}));
  EXPECT_TRUE(orders.Find(FileId(2), NodeId(3))->running()) << "until it is ordered anew";
  EXPECT_FALSE(orders.Find(FileId(2), NodeId(3))->sources.bound());
}

}  // namespace
}  // namespace mosa::manager
