#include "predictor/model/cost.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

TEST(Cost, CountsEveryHostForTheWholeRun) {
  const struct {
    const char* configuration;
    Duration time;
    uint32_t hosts;
    double node_hours;
  } rows[] = {
      {"hosts=1", Seconds(3600), 1, 1},
      {"hosts=4", Seconds(1800), 4, 2},
      {"hosts=4,manager=apart", Seconds(1800), 5, 2.5},
      // Provisioning, section 3.3: 11 nodes, eight for the application, two for storage.
      {"hosts=8,storage=2,manager=apart", Seconds(900), 11, 2.75},
      {"hosts=9999,storage=1", Seconds(1'000'000), 10'000, 10'000 * 1e6 / 3600},
      {"hosts=3", Seconds(0), 3, 0},
  };
  for (const auto& row : rows) {
    const auto configuration = ParseConfiguration(row.configuration);
    ASSERT_TRUE(configuration.ok()) << configuration.status();
    EXPECT_EQ(HostsInAll(*configuration), row.hosts) << row.configuration;
    EXPECT_DOUBLE_EQ(NodeHours(row.hosts, row.time), row.node_hours) << row.configuration;
  }
}

}  // namespace
}  // namespace mosa::predict
