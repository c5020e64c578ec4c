// Parts whose own time shows that they are slow, with synthetic requests.
#include "predictor/compare/own_times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mosa::predict {
namespace {

constexpr uint64_t kCount = 100;
constexpr double kEach_s = 0.02;
constexpr size_t kRuns = 3;

// Requests among `count` hosts, and their nodes' own work; all take as long as predicted.
struct RequestsAmong {
  std::vector<std::string> hosts;
  std::vector<RequestCell> cells;
  std::vector<SeenRun> runs;
  std::vector<size_t> asked_runs;
  std::map<std::string, TaskTimes> tasks;
  std::vector<Blame> blamed;

  explicit RequestsAmong(size_t count) {
    for (size_t i = 1; i <= count; ++i) hosts.push_back(fmt::format("h{}", i));
    runs.resize(kRuns);
    for (size_t run = 0; run < kRuns; ++run) asked_runs.push_back(run);
    for (const std::string& host : hosts) {
      tasks[host] = {10, 5};
      for (const char* name : {"node.read", "node.write"})
        for (const std::string& peer : hosts)
          if (peer != host) Add({"mount", name, host, peer});
      for (const char* name : {"read.object", "write.object"}) Add({"storage", name, host, ""});
      Add({"mount", "manager.open", host, ""});
    }
    Add({"manager", "open.core", "-", ""});
    blamed = {{{Part::kComputing, ""}, 0.6, 1, std::nullopt, ""}};
  }
  void Add(const RequestClass& which) {
    RequestCell& cell = cells.emplace_back();
    cell.which = which;
    cell.predicted = {kCount, kEach_s, kEach_s, kEach_s};
    for (size_t run = 0; run < kRuns; ++run) {
      // No two are exactly alike.
      const double mean_s =
          kEach_s * (1 + 0.02 * std::sin(static_cast<double>(cells.size() + run)));
      runs[run].requests[which] = {kCount, mean_s * kCount, mean_s, mean_s};
      cell.tested.push_back({run, kCount, (mean_s - kEach_s) * kCount});
    }
  }
  // Multiplies the time of the requests that `is_its` picks, and makes them anomalies.
  template <typename IsIts>
  void Slow(double times, const IsIts& is_its) {
    for (RequestCell& cell : cells) {
      if (!is_its(cell.which)) continue;
      cell.verdict = RequestVerdict::kAnomaly;
      for (RequestsInRun& in_run : cell.tested) {
        SeenRequests& seen = runs[in_run.run].requests[cell.which];
        seen.seconds *= times;
        in_run.more_s = seen.seconds - kEach_s * kCount;
        cell.more_s = in_run.more_s;
        cell.measured.mean_s = MeanOf(seen);
      }
    }
  }
  std::optional<OwnTime> Find() const {
    return FindOwnTime({cells, runs, asked_runs}, tasks, blamed);
  }
};

bool AskedOf(const RequestClass& which, const std::string& host) {
  return which.component == "mount" && which.peer == host;
}
bool AskedBy(const RequestClass& which, const std::string& host) {
  return which.component == "mount" && which.host == host && which.name.starts_with("node.");
}
bool OwnOf(const RequestClass& which, const std::string& host) {
  return which.component == "storage" && which.host == host;
}

TEST(OwnTimes, NobodyIsSlow) {
  for (const size_t hosts : {2U, 3U, 4U, 8U}) EXPECT_FALSE(RequestsAmong(hosts).Find()) << hosts;
}

TEST(OwnTimes, TellAHostFromItsLinkAndItsNode) {
  const struct {
    bool asking, own;
    Part part;
    bool is_told;
    const char* evidence;
  } rows[] = {{false, false, Part::kNode, true, "its node, not its link"},
              {true, false, Part::kLink, true, "but not its node's own work: its link"},
              {true, true, Part::kHost, true, "everything that runs there"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.evidence);
    RequestsAmong requests(4);
    requests.Slow(3, [&row](const RequestClass& which) {
      return AskedOf(which, "h2") || (row.asking && AskedBy(which, "h2")) ||
             (row.own && OwnOf(which, "h2"));
    });
    for (RequestCell& cell : requests.cells)
      if (IsOwnWork(cell.which)) cell.verdict = RequestVerdict::kAsPredicted;
    const auto own = requests.Find();
    ASSERT_TRUE(own);
    EXPECT_EQ(own->suspect, (Suspect{row.part, "h2"}));
    EXPECT_EQ(own->is_told, row.is_told);
    EXPECT_NE(own->evidence.find(row.evidence), std::string::npos) << own->evidence;
    ASSERT_TRUE(own->beside_p);
    EXPECT_LT(*own->beside_p, 0.001);
  }
}

// A slow link is slow in both directions, so both together are surer than one alone; but only if
// they are alike.
TEST(OwnTimes, BothWaysAreSurerThanOneIfTheyAreAlike) {
  struct Row {
    double asked, asking, scatter;  // Logarithms.
    bool is_found;
  };
  const Row rows[] = {{0.5, 0.5, 0.2, true},    // Each direction is sure.
                      {0.5, 0.5, 0.5, true},    // Both together are sure.
                      {0.5, 0, 0.5, false},     // One direction is not sure.
                      {0.3, 1.5, 0.5, false},   // A slow mount says nothing of its node,
                      {0.3, -1.5, 0.5, false},  // nor does a fast one.
                      {0.1, 0.1, 0.5, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    RequestsAmong requests(4);
    size_t number = 0;
    for (const RequestCell& cell : requests.cells) {
      const bool is_asked = AskedOf(cell.which, "h2"), is_asking = AskedBy(cell.which, "h2");
      if (!is_asked && !is_asking) continue;
      for (SeenRun& run : requests.runs)
        run.requests[cell.which].seconds *= std::exp((is_asked ? row.asked : row.asking) +
                                                     (++number % 2 == 0 ? 1 : -1) * row.scatter);
    }
    const auto own = requests.Find();
    ASSERT_EQ(own.has_value(), row.is_found);
    if (own) {
      EXPECT_EQ(own->suspect, (Suspect{Part::kLink, "h2"}));
    }
  }
}

TEST(OwnTimes, SaysWhichSideOfALinkIsSlow) {
  const struct {
    bool arriving, leaving;
    const char* side;
  } rows[] = {{true, false, "(in-cast)"}, {false, true, "sending is slow"}, {true, true, ""}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.side);
    RequestsAmong requests(4);
    requests.Slow(4, [&row](const RequestClass& which) {
      const bool is_write = which.name == "node.write";
      if (!is_write && which.name != "node.read") return false;
      const bool arrives = which.peer == "h2" ? is_write : which.host == "h2" && !is_write;
      const bool leaves = which.peer == "h2" ? !is_write : which.host == "h2" && is_write;
      return (arrives && row.arriving) || (leaves && row.leaving);
    });
    const auto own = requests.Find();
    ASSERT_TRUE(own);
    EXPECT_EQ(own->suspect, (Suspect{Part::kLink, "h2"}));
    EXPECT_NE(own->evidence.find(row.side), std::string::npos) << own->evidence;
    EXPECT_EQ(own->evidence.find("is slow, but not") != std::string::npos, row.side[0] != 0)
        << own->evidence;
  }
}

// Two hosts have no others to compare with; three have only one other pair.
TEST(OwnTimes, WantOtherHosts) {
  for (const size_t hosts : {2U, 3U, 4U}) {
    RequestsAmong requests(hosts);
    requests.Slow(
        3, [](const RequestClass& which) { return AskedOf(which, "h2") || AskedBy(which, "h2"); });
    EXPECT_EQ(requests.Find().has_value(), hosts > 2) << hosts;
  }
}

// A link that cannot be told from the rest of its host ranks after a host that explains half.
TEST(OwnTimes, AHostStandsBeforeALinkThatIsNotTold) {
  RequestsAmong requests(4);
  requests.Slow(
      3, [](const RequestClass& which) { return AskedOf(which, "h2") || AskedBy(which, "h2"); });
  for (SeenRun& run : requests.runs)
    std::erase_if(run.requests, [](const auto& row) { return row.first.component == "storage"; });
  auto own = requests.Find();
  ASSERT_TRUE(own);
  EXPECT_FALSE(own->is_told);
  EXPECT_NE(own->evidence.find("its link, or everything that runs there"), std::string::npos);
  requests.blamed = {{{Part::kHost, "h2"}, 0.7, 1, std::nullopt, ""}};
  EXPECT_FALSE(requests.Find());
  requests.blamed[0].suspect.host = "h3";
  EXPECT_TRUE(requests.Find());
}

TEST(OwnTimes, OwnWorkMustBeWaitedForAndExplain) {
  const auto slow = [](bool is_waited_for, double explained) {
    RequestsAmong requests(4);
    requests.Slow(6, [is_waited_for](const RequestClass& which) {
      return which.component == "manager" || (is_waited_for && which.name == "manager.open");
    });
    requests.blamed.push_back({{Part::kManager, ""}, explained, 1, std::nullopt, ""});
    return requests.Find();
  };
  const auto own = slow(true, 0.5);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->suspect, (Suspect{Part::kManager, ""}));
  EXPECT_FALSE(own->beside_p);
  EXPECT_FALSE(slow(false, 0.5));
  // Mounts waited for all of the tasks' excess: how tasks used the part need not confirm it.
  EXPECT_TRUE(slow(true, 0.1));
}

// A few requests suffice. The own host's mount uses the node without requests.
TEST(OwnTimes, ANodeFarSlowerThanItsHostIsNamed) {
  const auto slow = [](double times, double host_factor) {
    RequestsAmong requests(4);
    requests.Slow(times, [](const RequestClass& which) { return OwnOf(which, "h2"); });
    for (RequestCell& cell : requests.cells) {
      if (cell.which.name != "node.write" || !AskedOf(cell.which, "h2")) continue;
      cell.tested.clear();
      for (SeenRun& run : requests.runs) run.requests[cell.which] = {2, 3};
    }
    requests.tasks["h2"].more_s = 40;
    requests.blamed = {{{Part::kHost, "h2"}, 0.9, host_factor, std::nullopt, ""}};
    const auto own = requests.Find();
    return own && own->suspect == Suspect{Part::kNode, "h2"} &&
           own->evidence.starts_with("its own work");
  };
  EXPECT_TRUE(slow(100, 5));
  EXPECT_FALSE(slow(100, 60));  // As slow as the host.
}

// Each mount connects `to_h2` times to h2's node, and `to_others` times to each other node.
TEST(OwnTimes, ConnectionsThatDoNotLastTell) {
  struct Row {
    uint64_t to_h2 = 12;
    uint64_t to_others = 1;
    size_t runs = kRuns;  // With these counts; else once to each.
    double waited = 3;    // Factor on the time of h2's node.
    bool is_found = false;
  };
  const Row rows[] = {{.is_found = true},
                      {.to_h2 = 8},         // As many as mounts keep.
                      {.to_others = 12},    // The same for all nodes.
                      {.runs = kRuns - 1},  // A pool grew.
                      {.waited = 1}};       // Nothing waited.
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    RequestsAmong requests(4);
    // All requests take longer, those of h2 as well: hosts do not differ.
    requests.Slow(row.waited, [](const RequestClass& which) {
      return which.component == "mount" && which.name.starts_with("node.");
    });
    for (auto& [host, times] : requests.tasks) times.more_s = host == "h2" ? 0.1 : 5;
    for (size_t run = 0; run < kRuns; ++run)
      for (const std::string& host : requests.hosts)
        for (const std::string& peer : requests.hosts) {
          const uint64_t count = run >= row.runs ? 1 : peer == "h2" ? row.to_h2 : row.to_others;
          if (host != peer)
            requests.runs[run].requests[{"mount", "node.connect", host, peer}] = {
                count, 0.1 * static_cast<double>(count), 0.1, 0.1,
                // On h4, most connections are retries; those of h1 waited longest.
                host == "h1"   ? std::optional(Modes{0.3, 0.0002, 1})
                : host == "h4" ? std::optional(Modes{0.9, 0.0002, 0.05})
                               : std::nullopt};
        }
    const auto found = requests.Find();
    ASSERT_EQ(found.has_value(), row.is_found);
    if (!found) continue;
    EXPECT_EQ(found->suspect, (Suspect{Part::kNode, "h2"}));
    EXPECT_EQ(found->or_else, (Suspect{Part::kLink, "h2"}));
    EXPECT_TRUE(found->evidence.starts_with("mounts connected to it at least 36 times"))
        << found->evidence;
    EXPECT_NE(found->evidence.find("from one mount, 30 % took about 1 s, the others about 0.2 ms"),
              std::string::npos)
        << found->evidence;
  }
}

TEST(OwnTimes, LinkThatLosesPackets) {
  struct Row {
    uint64_t with_h2 = 60;  // Reads and writes with retransmissions, of 200 in each run
    uint64_t others = 10;   // and between other hosts,
    size_t runs = kRuns;    // in this many runs; else as between others.
    double waited = 3;      // Factor on requests to and from h2.
    size_t hosts = 4;
    bool knows_all = true;
    double own = 1;  // Factor on h2's own work.
    Part part = Part::kLink;
    bool is_found = false;
  };
  const Row rows[] = {{.is_found = true},
                      {.hosts = 3, .is_found = true},
                      {.own = 2, .part = Part::kHost, .is_found = true},
                      {.with_h2 = 16, .others = 0},  // All hosts lose some.
                      {.others = 40},                // All links are full.
                      {.runs = kRuns - 1},
                      {.hosts = 2, .is_found = false},  // There are no others.
                      {.knows_all = false},
                      {.waited = 1}};  // Nothing waited.
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    RequestsAmong requests(row.hosts);
    const auto is_with_h2 = [](const RequestClass& which) {
      return AskedOf(which, "h2") || AskedBy(which, "h2");
    };
    // Undone in the last run, so that a difference between hosts shows nothing.
    requests.Slow(row.waited, is_with_h2);
    for (auto& [which, seen] : requests.runs.back().requests)
      if (is_with_h2(which)) seen.seconds /= row.waited * row.waited;
    requests.Slow(row.own, [](const RequestClass& which) { return OwnOf(which, "h2"); });
    for (RequestCell& cell : requests.cells)
      if (IsOwnWork(cell.which)) cell.verdict = RequestVerdict::kAsPredicted;
    for (auto& [host, times] : requests.tasks) times.more_s = host == "h2" ? 9 : 3;
    for (size_t run = 0; run < kRuns; ++run) {
      requests.runs[run].knows_all_requests = row.knows_all;
      for (const std::string& host : requests.hosts)
        for (const std::string& peer : requests.hosts) {
          // Requests of a mount to its own host's node do not count in any share.
          if (host == peer)
            requests.runs[run].requests[{"mount", "node.open_local", host, peer}] = {
                kCount * 9, kEach_s, kEach_s, kEach_s};
          const RequestClass which = {"mount", "node.resent", host, peer};
          const uint64_t count = run < row.runs && is_with_h2(which) ? row.with_h2 : row.others;
          if (host != peer)
            requests.runs[run].requests[which] = {count, 0.1 * static_cast<double>(count), 0.1,
                                                  0.1};
        }
    }
    const auto found = requests.Find();
    ASSERT_EQ(found.has_value(), row.is_found);
    if (!found) continue;
    EXPECT_EQ(found->suspect, (Suspect{row.part, "h2"}));
    EXPECT_TRUE(found->is_told);
    EXPECT_TRUE(found->is_beside_others);
    EXPECT_TRUE(
        found->evidence.starts_with("TCP retransmitted in 30 % of the requests to and from h2, and "
                                    "in 5 % of those between other "
                                    "hosts"))
        << found->evidence;
  }
}

// Requests that wait together are late together: tasks are not late by their sum.
TEST(OwnTimes, OwnWorkIsDividedByHowManyWaitAtOnce) {
  const auto found = [](double moving_s) {
    RequestsAmong requests(4);
    requests.Slow(1.9, [](const RequestClass& which) {
      return OwnOf(which, "h2") || (which.name == "node.write" && AskedOf(which, "h2"));
    });
    for (auto& [host, times] : requests.tasks) times = {moving_s, 4};
    requests.blamed.push_back({{Part::kNode, "h2"}, 0.5, 1, std::nullopt, ""});
    const auto own = requests.Find();
    return own && own->evidence.starts_with("its own work");
  };
  // These requests are predicted to take 6 s in three runs.
  EXPECT_TRUE(found(6));
  EXPECT_FALSE(found(1));
}

TEST(OwnTimes, HostsAreAsOthersOnlyIfThatIsSure) {
  const auto as_others = [](const RequestsAmong& requests) {
    return HostsAsOthers({requests.cells, requests.runs, requests.asked_runs});
  };
  RequestsAmong requests(4);
  EXPECT_EQ(as_others(requests), (std::set<std::string>{"h1", "h2", "h3", "h4"}));
  for (SeenRun& run : requests.runs) {  // What h2 asks is slower by half; what is asked of h3
    double sign = 1;                    // varies, but is as fast as others on the whole.
    for (auto& [which, seen] : run.requests) {
      if (AskedBy(which, "h2")) seen.seconds *= 1.5;
      if (AskedOf(which, "h3")) seen.seconds *= std::exp(0.7 * (sign = -sign));
    }
  }
  const auto some = as_others(requests);
  EXPECT_FALSE(some.contains("h2"));
  EXPECT_FALSE(some.contains("h3"));
  EXPECT_TRUE(as_others(RequestsAmong(2)).empty());
}

TEST(PutLast, KeepsWhatIsNoSuspectBehind) {
  std::vector<Blame> blamed = {{{Part::kLink, "h2"}, 0.9, 1, std::nullopt, ""},
                               {{Part::kHost, "h2"}, 0.8, 1, std::nullopt, ""},
                               {{Part::kNode, "h2"}, 0.7, 1, std::nullopt, ""},
                               {{Part::kLink, "h3"}, 0.5, 1, std::nullopt, ""},
                               {{Part::kManager, ""}, 0.2, 1, std::nullopt, ""}};
  PutLast({"h2"}, blamed);
  const std::vector<double> expected = {0.8, 0.5, 0.9, 0.7, 0.2};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(blamed[i].explained, expected[i]) << i;
}

}  // namespace
}  // namespace mosa::predict
