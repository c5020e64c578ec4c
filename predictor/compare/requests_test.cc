#include "predictor/compare/requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

// Every mount reads from every other host; what crosses the link of h2 takes `times` as long.
RequestTimes Reads(double times, uint64_t count = 100) {
  RequestTimes all;
  for (int from = 1; from <= 4; ++from) {
    const std::string host = fmt::format("h{}", from);
    for (int to = 1; to <= 4; ++to) {
      if (from == to) continue;
      const bool slow = from == 2 || to == 2;
      all[{"mount", "node.read", host, fmt::format("h{}", to)}] = {
          count, 0.01 * static_cast<double>(count) * (slow ? times : 1)};
    }
    all[{"mount", "manager.open", host, ""}] = {count, 0.001 * static_cast<double>(count)};
  }
  all[{"manager", "open", "-", ""}] = {4 * count, 0.5};
  return all;
}

TEST(SlowRequestsTest, AreThoseThatAreSlowerThanElsewhere) {
  const auto slow = FindSlowRequests({Reads(8), Reads(8), Reads(8)}, 0.1);
  ASSERT_EQ(slow.size(), 6U);
  for (const SlowRequests& requests : slow) {
    EXPECT_EQ(requests.which.name, "node.read");
    EXPECT_TRUE(requests.which.host == "h2" || requests.which.peer == "h2");
    EXPECT_EQ(requests.runs, 3U);
    EXPECT_NEAR(requests.mean_s, 0.08, 1e-9);
    // Half of the others cross that link as well.
    EXPECT_NEAR(requests.elsewhere_s, 0.01, 1e-9);
    EXPECT_NEAR(requests.more_s, 7, 1e-6);
  }
}

TEST(SlowRequestsTest, AreManyAndSlowTwice) {
  const struct {
    std::vector<RequestTimes> runs;
    double more_s_min;
    size_t found;
  } rows[] = {
      {{Reads(1), Reads(1), Reads(1)}, 0, 0},
      {{Reads(8)}, 0.1, 6},
      {{Reads(1), Reads(8), Reads(1)}, 0, 0},
      {{Reads(1), Reads(8), Reads(8)}, 0, 6},
      {{Reads(8)}, 8, 0},
      {{Reads(8, 4)}, 0, 0},
      {{Reads(1.5)}, 0, 0},
      {{}, 0, 0},
      {{RequestTimes()}, 0, 0},
  };
  for (const auto& row : rows)
    EXPECT_EQ(FindSlowRequests(row.runs, row.more_s_min).size(), row.found)
        << &row - rows << " at least " << row.more_s_min;
}

}  // namespace
}  // namespace mosa::predict
