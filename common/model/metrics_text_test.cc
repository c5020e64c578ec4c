// Tests the text that monitoring systems read.
#include "common/model/metrics_text.h"

#include <map>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ResidenceSnapshot Some() {
  ResidenceSnapshot snapshot{.component = "storage",
                             .started = {1'700'000'000'500'000'000},
                             .taken = {},
                             .rows = {{"read", "h1", {}}, {"read", "a\"b\\c\nd", {}}},
                             .amounts = {{"used_bytes", 4096, false}, {"bytes_read", 12, true}}};
  for (const Duration time : {Microseconds(5), Microseconds(100), Milliseconds(30), Seconds(200)})
    snapshot.rows[0].times.Add(time);
  snapshot.rows[1].times.Add(Seconds(1));
  return snapshot;
}

// Parses "NAME{LABELS}" -> value.
std::map<std::string, double> Samples(const std::string& text) {
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second)
        << "twice: " << line;
  }
  return samples;
}

TEST(MetricsText, BucketsAreCumulativeAndEndWithAll) {
  const std::string text = MetricsText(Some());
  auto samples = Samples(text);
  const std::string name = "mosa_storage_request_seconds";
  const std::string labels = "class=\"read\",peer=\"h1\"";
  const auto bucket = [&](const std::string& limit) {
    return samples.at(name + "_bucket{" + labels + ",le=\"" + limit + "\"}");
  };
  EXPECT_EQ(bucket("1.6384e-05"), 1);
  EXPECT_EQ(bucket("6.5536e-05"), 1);
  EXPECT_EQ(bucket("0.000262144"), 2);
  EXPECT_EQ(bucket("0.016777216"), 2);
  EXPECT_EQ(bucket("0.067108864"), 3);
  EXPECT_EQ(bucket("68.719476736"), 3);
  EXPECT_EQ(bucket("+Inf"), 4);
  EXPECT_EQ(samples.at(name + "_count{" + labels + "}"), 4);
  EXPECT_NEAR(samples.at(name + "_sum{" + labels + "}"), 200.030105, 1e-9);
  EXPECT_THAT(text, HasSubstr("# TYPE mosa_storage_request_seconds histogram\n"));
}

TEST(MetricsText, AmountsAreCountersAndGauges) {
  const std::string text = MetricsText(Some());
  EXPECT_THAT(text,
              HasSubstr("# TYPE mosa_storage_used_bytes gauge\nmosa_storage_used_bytes 4096\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE mosa_storage_bytes_read_total counter\n"
                              "mosa_storage_bytes_read_total 12\n"));
  EXPECT_THAT(text, HasSubstr("mosa_storage_start_time_seconds 1700000000.500\n"));
}

TEST(MetricsText, LimitsAreTwoGaugesAndWhatHasNoLimitIsOne) {
  const std::string text =
      MetricsText("manager", {{"names of user 7", 12, 100}, {"requests waiting", 3, 0}});
  EXPECT_THAT(text, HasSubstr("mosa_manager_limit_used{limit=\"names of user 7\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("mosa_manager_limit_max{limit=\"names of user 7\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("mosa_manager_limit_used{limit=\"requests waiting\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("limit_max{limit=\"requests waiting\"}")));
}

TEST(MetricsText, LabelsAreEscapedAndAlwaysText) {
  ResidenceSnapshot snapshot = Some();
  EXPECT_THAT(MetricsText(snapshot), HasSubstr(R"(peer="a\"b\\c\nd")"));
  snapshot.rows[1].peer = "h\xc3\xbc";
  EXPECT_THAT(MetricsText(snapshot), HasSubstr("peer=\"h\xc3\xbc\""));
  snapshot.rows[1].peer = "h\xff";
  EXPECT_THAT(MetricsText(snapshot), HasSubstr("peer=\"h?\""));
  EXPECT_THAT(MetricsText(snapshot), Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace mosa
