#include "predictor/run/copies_forecast.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

using manager::CopiesForBytes;

// The mean over clusters that the forecast did not use.
double SecondsWith(const Platform& platform, uint32_t hosts, uint64_t bytes, uint32_t copies) {
  WorkflowMaker maker;
  maker.File("all", bytes, {{"pattern", "broadcast:" + std::to_string(copies)}});
  maker.Task("write", {}, {"all"});
  for (uint32_t i = 0; i < hosts; ++i) maker.Task("read_" + std::to_string(i), {"all"}, {});
  double sum = 0;
  for (const int seed : {11, 12, 13, 14}) {
    const Prediction prediction = MustPredict(
        maker.Build(), platform,
        "hosts=" + std::to_string(hosts) + ",slots=1,manager=apart,seed=" + std::to_string(seed));
    EXPECT_FALSE(prediction.failure);
    sum += static_cast<double>(prediction.turnaround.ns) / 1e9;
  }
  return sum / 4;
}

TEST(CopiesForecast, NoCountIsPredictedToBeMuchFasterThanTheOneThatIsNamed) {
  for (const uint32_t hosts : {1U, 4U, 7U}) {
    const auto forecast = ForecastCopies(BusyPlatform(), hosts);
    ASSERT_TRUE(forecast.ok()) << forecast.status();
    ASSERT_EQ(forecast->size(), 4U);
    for (const CopiesForBytes& row : *forecast) {
      ASSERT_GE(row.copies, 1U);
      ASSERT_LE(row.copies, hosts);
      const double chosen = SecondsWith(BusyPlatform(), hosts, row.bytes, row.copies);
      for (uint32_t copies = 1; copies <= hosts; ++copies)
        EXPECT_LE(chosen, 1.1 * SecondsWith(BusyPlatform(), hosts, row.bytes, copies))
            << row.copies << " against " << copies << " copies of " << row.bytes << " B on "
            << hosts << " hosts";
    }
  }
}

TEST(CopiesForecast, IsTheSameForTheSamePlatformAndNotForAnother) {
  const auto slow = ForecastCopies(BusyPlatform(), 8);
  const auto again = ForecastCopies(BusyPlatform(), 8);
  ASSERT_TRUE(slow.ok() && again.ok());
  EXPECT_EQ(*slow, *again);
  // Half a megabyte passes through a chain of sixteen nodes one after the other. With a long file
  // all are busy at once.
  const auto wide = ForecastCopies(BusyPlatform(), 16);
  ASSERT_TRUE(wide.ok());
  EXPECT_LT((*wide)[1].copies, 16U);
  EXPECT_EQ(wide->back().copies, 16U);
  // All share one core, and links cost nothing: another copy is only more work.
  Platform shared = BusyPlatform();
  shared.shared_cores = 1;
  shared.host.in_bytes_per_second = shared.host.out_bytes_per_second = 1'000'000'000'000;
  const auto busy = ForecastCopies(shared, 8);
  ASSERT_TRUE(busy.ok());
  EXPECT_NE(*busy, *slow);
}

TEST(CopiesForecast, LeavesOutWhatNoNodeHasRoomFor) {
  Platform platform = BusyPlatform();
  platform.host.store_bytes = 8 * kMiB;
  const auto forecast = ForecastCopies(platform, 2);
  ASSERT_TRUE(forecast.ok());
  EXPECT_LT(forecast->back().bytes, 32 * kMiB);
  platform.host.store_bytes = 1;
  EXPECT_EQ(ForecastCopies(platform, 2).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace mosa::predict
