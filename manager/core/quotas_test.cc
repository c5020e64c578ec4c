#include "manager/core/quotas.h"

#include <gtest/gtest.h>

namespace mosa::manager {
namespace {

constexpr uint32_t kRoot = 0;
constexpr uint32_t kUser = 1000;
constexpr uint32_t kOtherUser = 1001;

Quotas Small() {
  return Quotas({.all = {.names = 160, .inline_bytes = 1600, .attribute_bytes = 1600},
                 .per_user = {.names = 32, .inline_bytes = 320, .attribute_bytes = 320}});
}

ErrorReason ReasonOf(const std::optional<Failure>& failure) {
  return failure ? failure->reason : ErrorReason::kNone;
}

TEST(Quotas, AUserIsRefusedAtHisOwnLimitAndOthersAreNot) {
  Quotas quotas = Small();
  Charge charged;
  quotas.Recharge(charged, {.uid = kUser, .names = 32});
  EXPECT_EQ(ReasonOf(quotas.Check(kUser, {.names = 1})), ErrorReason::kQuota);
  EXPECT_EQ(ReasonOf(quotas.Check(kOtherUser, {.names = 1})), ErrorReason::kNone);
  EXPECT_EQ(ReasonOf(quotas.Check(kRoot, {.names = 100})), ErrorReason::kNone);
  EXPECT_EQ(ReasonOf(quotas.Check(kUser, {.inline_bytes = 320})), ErrorReason::kNone);
}

TEST(Quotas, EverybodyIsRefusedAtTheLimitOfTheStoreRootToo) {
  Quotas quotas = Small();
  Charge charged;
  quotas.Recharge(charged, {.uid = kRoot, .names = 159});
  EXPECT_EQ(ReasonOf(quotas.Check(kOtherUser, {.names = 1})), ErrorReason::kNone);
  EXPECT_EQ(ReasonOf(quotas.Check(kOtherUser, {.names = 2})), ErrorReason::kNoSpace);
  EXPECT_EQ(ReasonOf(quotas.Check(kRoot, {.names = 2})), ErrorReason::kNoSpace);
}

TEST(Quotas, ARefusalSaysWhoHasHowMuchOfWhat) {
  Quotas quotas = Small();
  Charge charged;
  quotas.Recharge(charged, {.uid = kUser, .attribute_bytes = 300});
  const auto failure = quotas.Check(kUser, {.attribute_bytes = 21});
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->message.find("user 1000 has 300 bytes of attributes"), std::string::npos)
      << failure->message;
  EXPECT_NE(failure->message.find("320"), std::string::npos) << failure->message;
}

TEST(Quotas, AChangeOfOwnerMovesTheCharge) {
  Quotas quotas = Small();
  Charge charged;
  quotas.Recharge(charged, {.uid = kUser, .names = 2, .inline_bytes = 10, .attribute_bytes = 5});
  quotas.Recharge(charged,
                  {.uid = kOtherUser, .names = 2, .inline_bytes = 10, .attribute_bytes = 5});
  EXPECT_EQ(quotas.Of(kUser), Amounts{});
  EXPECT_EQ(quotas.Of(kOtherUser), (Amounts{2, 10, 5}));
  EXPECT_EQ(quotas.all(), (Amounts{2, 10, 5}));
  quotas.Recharge(charged, {});
  EXPECT_EQ(quotas.all(), Amounts{});
  EXPECT_TRUE(quotas.users().empty());
}

TEST(Quotas, NothingGrowsWhileGrowthIsRefused) {
  Quotas quotas = Small();
  quotas.RefuseGrowth("the disk is full");
  const auto failure = quotas.Check(kRoot, {.names = 1});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "the disk is full");
  EXPECT_FALSE(quotas.Check(kUser, {}));
  EXPECT_TRUE(quotas.IsNearLimit(kUser));
  quotas.AllowGrowth();
  EXPECT_FALSE(quotas.Check(kUser, {.names = 1}));
}

TEST(Quotas, NearALimitIsItsLastSixteenth) {
  Quotas quotas = Small();
  Charge charged;
  quotas.Recharge(charged, {.uid = kUser, .names = 29});
  EXPECT_FALSE(quotas.IsNearLimit(kUser));
  quotas.Recharge(charged, {.uid = kUser, .names = 30});
  EXPECT_TRUE(quotas.IsNearLimit(kUser));
  EXPECT_FALSE(quotas.IsNearLimit(kOtherUser));
  EXPECT_FALSE(quotas.IsNearLimit(kRoot));
}

TEST(Quotas, WithoutLimitsNothingIsRefusedOrNear) {
  Quotas quotas({});
  Charge charged;
  quotas.Recharge(charged, {.uid = kUser, .names = UINT32_MAX, .inline_bytes = UINT32_MAX});
  EXPECT_FALSE(quotas.Check(kUser, {.names = UINT64_MAX / 2, .inline_bytes = UINT64_MAX / 2}));
  EXPECT_FALSE(quotas.IsNearLimit(kUser));
}

}  // namespace
}  // namespace mosa::manager
