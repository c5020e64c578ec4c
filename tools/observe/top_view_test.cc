#include "tools/observe/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace mosa::cli {
namespace {

using ::testing::HasSubstr;

ResidenceRow RowOf(const std::string& name, const std::string& peer,
                   const std::vector<Duration>& times) {
  ResidenceRow row{.name = name, .peer = peer, .times = {}};
  for (const Duration time : times) row.times.Add(time);
  return row;
}

DaemonResidence DaemonOf(const std::string& component, const std::string& host, Time started,
                         std::vector<ResidenceRow> rows) {
  DaemonResidence daemon{.component = component,
                         .host = host,
                         .id = host == "-" ? "" : "7" + host,
                         .failure = {},
                         .since_start = false,
                         .between = {},
                         .snapshot = {}};
  daemon.snapshot = {.component = component,
                     .started = started,
                     .taken = started + Seconds(5),
                     .rows = std::move(rows),
                     .amounts = {}};
  return daemon;
}

TEST(TopView, RatesAreOfTheSecondsBetween) {
  ClusterResidence since{.cluster = "c", .names = {}, .daemons = {}};
  since.daemons = {
      DaemonOf("manager", "-", {1}, {RowOf("open", "", {Milliseconds(9)})}),
      DaemonOf("storage", "h10", {2},
               {RowOf("read", "h2", {Seconds(1)}), RowOf("read", "h3", {Seconds(1)}),
                RowOf("write.object", "", {Microseconds(5)})}),
      DaemonOf("mount", "h10", {3}, {RowOf("fuse.read", "", {Milliseconds(1), Milliseconds(3)})}),
      DaemonOf("mount", "h2", {4}, {}), DaemonOf("mount", "h3", {5}, {})};
  since.daemons[1].snapshot.amounts = {{"bytes_read_remote", 600, true}, {"used_bytes", 7, false}};
  since.daemons[2].snapshot.amounts = {{"bytes_read_local", 100, true},
                                       {"bytes_read_remote", 300, true},
                                       {"bytes_written_passthrough", 50, true}};
  // Answered late, so its work took longer.
  since.daemons[1].between = Seconds(4);
  since.daemons[3].since_start = true;
  since.daemons[0].snapshot.is_truncated = true;
  since.daemons[4].failure = "it is gone";
  const TopView view = MakeTopView(since, 2.0);
  ASSERT_EQ(view.hosts.size(), 1U);
  EXPECT_EQ(view.hosts[0].read.sum(), 200.0);
  EXPECT_EQ(view.hosts[0].kernel_requests, 1.0);
  EXPECT_EQ(view.hosts[0].node_requests, 0.5);  // Without their parts.
  ASSERT_EQ(view.classes.size(), 4U);
  EXPECT_EQ(view.classes[0].name, "read");  // Sum of both peers.
  EXPECT_EQ(view.classes[0].times.Count(), 2U);
  ASSERT_EQ(view.notes.size(), 3U);
  EXPECT_THAT(view.notes[0], HasSubstr("the manager: it has more classes"));
  EXPECT_EQ(view.notes[2], "the mount of h3: it is gone");
  const nlohmann::json json = ToJson(view);
  const nlohmann::json& host = json.at("hosts").at(0);
  EXPECT_EQ(host.at("name"), "h10");
  EXPECT_EQ(host.at("read_bytes_per_second").at("network"), 150.0);
  EXPECT_EQ(host.at("written_bytes_per_second").at("kernel"), 25.0);
  EXPECT_EQ(host.at("node_served_bytes_per_second"), 150.0);
  EXPECT_EQ(host.at("node_used_bytes"), 7U);
  EXPECT_EQ(json.at("classes").at(0).at("per_second"), 0.5);
}

}  // namespace
}  // namespace mosa::cli
