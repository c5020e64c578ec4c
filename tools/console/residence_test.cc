// Differences of residence times, and their JSON.
#include "tools/console/residence.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

ClusterResidence Earlier() {
  ClusterResidence all{.cluster = "c", .names = {}, .daemons = {}};
  all.daemons = {DaemonOf("manager", "-", {1}, {RowOf("open", "", {Milliseconds(1)})}),
                 DaemonOf("storage", "h1", {2}, {RowOf("read", "h2", {Milliseconds(4)})}),
                 DaemonOf("mount", "h1", {3}, {})};
  all.daemons[1].snapshot.amounts = {{"bytes_read", 100, true}, {"used_bytes", 50, false}};
  return all;
}

TEST(Residence, SinceLeavesWhatCameBetween) {
  const ClusterResidence earlier = Earlier();
  ClusterResidence later = earlier;
  auto& storage = later.daemons[1].snapshot;
  storage.taken = storage.taken + Seconds(3);
  storage.rows[0].times.Add(Milliseconds(2));
  storage.rows.push_back(RowOf("write", "h3", {Microseconds(9)}));
  storage.amounts = {{"bytes_read", 130, true}, {"used_bytes", 20, false}};
  const ClusterResidence since = Since(later, earlier);
  ASSERT_EQ(since.daemons.size(), 3U);
  EXPECT_TRUE(since.daemons[0].snapshot.rows.empty());
  const auto& rows = since.daemons[1].snapshot.rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "read");
  EXPECT_EQ(rows[0].times.Count(), 1U);
  EXPECT_EQ(rows[0].times.sum_ns, static_cast<uint64_t>(Milliseconds(2).ns));
  EXPECT_TRUE(rows[1] == storage.rows[1]);
  // Totals are differences; amounts are as of now.
  EXPECT_EQ(since.daemons[1].snapshot.amounts[0].value, 30U);
  EXPECT_EQ(since.daemons[1].snapshot.amounts[1].value, 20U);
  EXPECT_FALSE(since.daemons[1].since_start);
  EXPECT_EQ(since.daemons[1].between, Seconds(3));
}

TEST(Residence, AnotherProcessCountsFromItsStart) {
  const ClusterResidence earlier = Earlier();
  ClusterResidence later = earlier;
  later.daemons[1] = DaemonOf("storage", "h1", {99}, {RowOf("read", "h2", {Microseconds(3)})});
  later.daemons.push_back(DaemonOf("mount", "h2", {5}, {RowOf("fuse.open", "", {Seconds(1)})}));
  const ClusterResidence since = Since(later, earlier);
  EXPECT_TRUE(since.daemons[1].since_start);
  EXPECT_EQ(since.daemons[1].snapshot.rows[0].times.Count(), 1U);
  EXPECT_TRUE(since.daemons[3].since_start);
  EXPECT_FALSE(since.daemons[0].since_start);
}

TEST(Residence, PeersAreComparedByAddressThoughTheirNamesChange) {
  ClusterResidence earlier = Earlier();
  ResidenceRow& row = earlier.daemons[1].snapshot.rows[0];
  row.peer = "10.0.0.2";
  ClusterResidence later = earlier;
  later.names = {{"10.0.0.2", "h2"}};
  ClusterResidence since = Since(later, earlier);
  EXPECT_TRUE(since.daemons[1].snapshot.rows.empty());
  later.daemons[1].snapshot.rows[0].times.Add(Milliseconds(2));
  since = Since(later, earlier);
  NamePeers(since);
  ASSERT_EQ(since.daemons[1].snapshot.rows.size(), 1U);
  EXPECT_EQ(since.daemons[1].snapshot.rows[0].peer, "h2");
  EXPECT_EQ(since.daemons[1].snapshot.rows[0].times.Count(), 1U);
  EXPECT_EQ(ResidenceOfRun(earlier, later)["daemons"][1]["requests"][0]["peer"], "h2");
}

TEST(Residence, RowsOfWhichTheDifferenceIsNotKnownAreLeftOut) {
  ClusterResidence earlier = Earlier();
  ClusterResidence later = earlier;
  auto& rows = later.daemons[1].snapshot.rows;
  rows.push_back(RowOf("write", "h3", {Microseconds(9)}));
  EXPECT_EQ(Since(later, earlier).daemons[1].snapshot.rows.size(), 1U);
  earlier.daemons[1].snapshot.is_truncated = true;
  EXPECT_TRUE(Since(later, earlier).daemons[1].snapshot.rows.empty());
  rows[0] = RowOf("read", "h2", {Seconds(1)});  // Changed, but not empty.
  EXPECT_TRUE(Since(later, earlier).daemons[1].snapshot.rows.empty());
}

TEST(Residence, WhoDidNotAnswerBeforeIsLeftOut) {
  const ClusterResidence later = Earlier();
  ClusterResidence earlier = later;
  earlier.daemons[1].failure = "it did not answer";
  earlier.daemons[1].snapshot = {};
  const ClusterResidence since = Since(later, earlier);
  EXPECT_TRUE(since.daemons[1].snapshot.rows.empty());
  EXPECT_THAT(since.daemons[1].failure, HasSubstr("it did not answer"));
  EXPECT_FALSE(since.daemons[1].since_start);
}

TEST(Residence, WhoIsGoneOrSilentIsNamed) {
  const ClusterResidence earlier = Earlier();
  ClusterResidence later = earlier;
  later.daemons.pop_back();
  later.daemons[1].failure = "it is not connected to the manager";
  later.daemons[1].snapshot = {};
  const ClusterResidence since = Since(later, earlier);
  ASSERT_EQ(since.daemons.size(), 3U);
  EXPECT_EQ(since.daemons[1].failure, "it is not connected to the manager");
  EXPECT_EQ(since.daemons[2].component, "mount");
  EXPECT_THAT(since.daemons[2].failure, HasSubstr("gone"));
  EXPECT_TRUE(since.daemons[2].snapshot.rows.empty());
}

TEST(Residence, OnlyTheLargestRowsAreKept) {
  ClusterResidence all = Earlier();
  all.daemons[2].snapshot.rows = {RowOf("a", "", {Seconds(3)}), RowOf("b", "", {Microseconds(5)}),
                                  RowOf("c", "", {Milliseconds(4)})};
  ClusterResidence two = all;
  EXPECT_EQ(KeepLargest(two, 2), 3U);  // "a", and one of the two of 4 ms.
  size_t left = 0;
  for (const DaemonResidence& daemon : two.daemons) left += daemon.snapshot.rows.size();
  EXPECT_EQ(left, 2U);
  EXPECT_EQ(two.daemons[2].snapshot.rows[0].name, "a");
  // A row with equal time comes first, and is not kept because of that.
  all.daemons[0].snapshot.rows[0] = RowOf("open", "", {Milliseconds(4)});
  two = all;
  EXPECT_EQ(KeepLargest(two, 2), 3U);
  ASSERT_EQ(two.daemons[2].snapshot.rows.size(), 1U);
  EXPECT_EQ(two.daemons[2].snapshot.rows[0].name, "a");
  EXPECT_EQ(KeepLargest(all, 5), 0U);
  EXPECT_EQ(KeepLargest(all, 0), 5U);
}

TEST(Residence, ItsJsonComesBackUnchanged) {
  ClusterResidence all = Earlier();
  all.daemons[0].snapshot.rows.push_back(
      RowOf("odd", "x", {Nanoseconds(1), Seconds(1000), Milliseconds(7)}));
  all.daemons[2].failure = "it did not answer";
  all.daemons[1].snapshot.is_truncated = true;
  all.names = {{"10.0.0.2", "h2"}};
  const ClusterResidence back =
      ResidenceFromJson(nlohmann::json::parse(ToJson(all).dump())).value();
  EXPECT_EQ(ToJson(back), ToJson(all));
  for (size_t i = 0; i < all.daemons.size(); ++i)
    EXPECT_TRUE(back.daemons[i].snapshot == all.daemons[i].snapshot) << i;
}

TEST(Residence, OtherJsonIsRefused) {
  const nlohmann::json good = ToJson(Earlier());
  EXPECT_TRUE(ResidenceFromJson(good).ok());
  for (const char* text : {"null", "[]", "3", "{}", R"({"cluster": "c", "daemons": [{}]})",
                           R"({"cluster": "c", "daemons": 7})"})
    EXPECT_EQ(ResidenceFromJson(nlohmann::json::parse(text)).status().code(),
              StatusCode::kInvalidArgument)
        << text;
  nlohmann::json spoilt = good;
  // No bucket ends at these limits.
  for (const int64_t limit_ns : {int64_t{12'345}, int64_t{0}, INT64_MIN}) {
    spoilt["daemons"][0]["requests"][0]["buckets"][0][0] = limit_ns;
    EXPECT_FALSE(ResidenceFromJson(spoilt).ok()) << limit_ns;
  }
}

TEST(Residence, ARunWithoutAnAnswerSaysWhy) {
  const Result<ClusterResidence> good = Earlier();
  const Result<ClusterResidence> bad = UnavailableError("nobody is there");
  EXPECT_EQ(ResidenceOfRun(bad, good).dump(), R"({"failure":"nobody is there"})");
  EXPECT_EQ(ResidenceOfRun(good, bad).dump(), R"({"failure":"nobody is there"})");
  EXPECT_EQ(ResidenceOfRun(good, good)["rows_left_out"], 0);
}

}  // namespace
}  // namespace mosa::cli
