#include "manager/service/default_limits.h"

#include <gtest/gtest.h>

#include "common/base/units.h"

namespace mosa::manager {
namespace {

TEST(DefaultLimits, ASmallDirectoryBoundsWhatLiesInIt) {
  const QuotaOptions quotas = LimitsFor({64 * kGiB, kGiB, 75}, {}).quotas;
  EXPECT_EQ(quotas.all.names, uint64_t{1} << 20);
  EXPECT_EQ(quotas.all.inline_bytes, 256 * kMiB);
  EXPECT_EQ(quotas.all.attribute_bytes, 128 * kMiB);
  EXPECT_EQ(quotas.per_user.inline_bytes, 192 * kMiB);
}

TEST(DefaultLimits, OnALargeDiskMemoryBoundsWhatIsKeptInIt) {
  const QuotaOptions quotas = LimitsFor({8 * kGiB, 4096 * kGiB, 100}, {}).quotas;
  EXPECT_EQ(quotas.all.names, 2 * kGiB / kNameMemoryBytes);
  EXPECT_EQ(quotas.all.attribute_bytes, 512 * kMiB);
  EXPECT_EQ(quotas.per_user, quotas.all);
}

TEST(DefaultLimits, WhatWasChosenHolds) {
  const QuotaOptions quotas =
      LimitsFor({8 * kGiB, kGiB, 50}, {.names = 7, .inline_bytes = 0, .attribute_bytes = 100})
          .quotas;
  EXPECT_EQ(quotas.all, (Amounts{7, 0, 100}));
  EXPECT_EQ(quotas.per_user, (Amounts{3, 0, 50}));
}

TEST(DefaultLimits, ConnectionsLeaveDescriptorsForTheDatabase) {
  struct Row {
    uint64_t descriptors = 0;
    size_t connections = 0, of_one_address = 0;
  };
  for (const Row& row : {Row{256, 128, 128}, Row{1024, 512, 256}, Row{4096, 3584, 896},
                         Row{20'000, 17'500, 4375}, Row{uint64_t{1} << 30, 32'768, 8192}}) {
    const DoorLimits limits = DoorLimitsFor(row.descriptors);
    EXPECT_EQ(limits.connections_max, row.connections) << row.descriptors;
    EXPECT_EQ(limits.per_address_max, row.of_one_address) << row.descriptors;
  }
}

}  // namespace
}  // namespace mosa::manager
