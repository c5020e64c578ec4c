// Requests compared with their prediction, with simulated clusters instead of real ones.
#include "predictor/compare/request_cells.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "predictor/compare/compare_fixture.h"
#include "predictor/compare/comparison.h"
#include "predictor/compare/sentence.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

const std::vector<std::string> kNamedHosts = {"one", "two", "three", "four"};

// 31 tasks that compute and move bytes in turns.
Workflow Stages() {
  WorkflowMaker maker;
  std::vector<std::string> turned;
  for (uint32_t i = 0; i < 15; ++i) {
    const std::string n = std::to_string(i);
    maker.File("a." + n, 8 * kMiB).File("b." + n, 4 * kMiB);
    maker.Task("make_" + n, {}, {"a." + n}, Milliseconds(300 + 40 * (i % 4)));
    maker.Task("turn_" + n, {"a." + n}, {"b." + n}, Milliseconds(500));
    turned.push_back("b." + n);
  }
  maker.File("sum", kMiB);
  maker.Task("sum", turned, {"sum"}, Milliseconds(900));
  return maker.Build();
}

SeenRun SeenWithResidence(const Workflow& workflow, const Platform& platform,
                          const std::string& deployment, uint64_t placement_seed) {
  auto configuration = ParseConfiguration(deployment);
  EXPECT_TRUE(configuration.ok()) << configuration.status();
  configuration->seed = placement_seed;
  const auto prediction =
      Predict(workflow, platform, *configuration, {.with_layouts = true, .with_residence = true});
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return SeenOf(workflow, *prediction, platform, kNamedHosts);
}

// A run of a cluster with the figures of draw `seed`; `repeat` numbers its runs.
SeenRun DrawnRun(const Workflow& workflow, uint64_t seed, const std::string& more = "",
                 uint64_t repeat = 0) {
  SeenRun run = SeenWithResidence(workflow, Perturbed(Known(), seed), kDeployment + more,
                                  seed + 1000 * repeat);
  run.factor = ModelFactor(Known(), seed);
  run.name = fmt::format("run-{}", repeat + 1);
  return run;
}

std::vector<RequestCell> Off(const Comparison& comparison) {
  std::vector<RequestCell> off;
  for (const RequestCell& cell : comparison.requests)
    if (cell.verdict == RequestVerdict::kAnomaly) off.push_back(cell);
  return off;
}

std::string SaidOfRequests(const Comparison& comparison) {
  std::string said;
  for (const RequestCell& cell : Off(comparison))
    said += cell.sentence + " Open first: " + cell.open_first + "\n";
  for (const Anomaly& anomaly : comparison.anomalies)
    said += anomaly.sentence + " " + anomaly.cause + " Open first: " + anomaly.open_first + "\n";
  for (const Blame& blame : comparison.blamed)
    said += fmt::format("  {} {} {:.3f} {:.3f}\n", ToText(blame.suspect.part), blame.suspect.host,
                        blame.explained, blame.of_requests.value_or(-1));
  return said;
}

class RequestCellsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    workflow_ = new Workflow(Stages());
    draws_ = new std::vector<SeenRun>;
    for (uint64_t seed = 1; seed <= 24; ++seed) draws_->push_back(Drawn(seed));
  }
  static void TearDownTestSuite() {
    delete workflow_;
    delete draws_;
  }

  static SeenRun Drawn(uint64_t seed, const std::string& more = "", uint64_t repeat = 0) {
    return DrawnRun(*workflow_, seed, more, repeat);
  }
  // Three runs of a cluster that is not among the draws.
  static std::vector<SeenRun> Runs(uint64_t seed, const std::string& more = "") {
    std::vector<SeenRun> runs;
    for (uint64_t repeat = 0; repeat < 3; ++repeat) runs.push_back(Drawn(seed, more, repeat));
    return runs;
  }
  static Comparison CompareWith(const std::vector<SeenRun>& runs) {
    return Compare(*workflow_, *draws_, runs, {.slots = 1, .link_bytes_per_second = 100'000'000});
  }

  static Workflow* workflow_;
  static std::vector<SeenRun>* draws_;
};
Workflow* RequestCellsTest::workflow_ = nullptr;
std::vector<SeenRun>* RequestCellsTest::draws_ = nullptr;

TEST_F(RequestCellsTest, AClusterThatIsAsPredictedRaisesNoAlarm) {
  size_t alarms = 0;
  std::string said;
  for (uint64_t seed = 101; seed <= 200; ++seed) {
    const std::vector<SeenRun> runs = {Drawn(seed)};
    const Comparison comparison = CompareWith(runs);
    ASSERT_FALSE(comparison.requests.empty());
    if (Off(comparison).empty()) continue;
    ++alarms;
    said += SaidOfRequests(comparison);
  }
  EXPECT_LE(alarms, 1U) << said;
}

TEST_F(RequestCellsTest, ASlowLinkShowsInWhatCrossesItAndIsBlamed) {
  const Comparison comparison = CompareWith(Runs(77, ",h2.link=12M"));
  const std::vector<RequestCell> off = Off(comparison);
  ASSERT_FALSE(off.empty()) << SaidOfRequests(comparison);
  for (const RequestCell& cell : off) {
    EXPECT_TRUE(cell.which.host == "two" || cell.which.peer == "two") << cell.sentence;
    EXPECT_GT(cell.measured.mean_s, 2 * cell.predicted.mean_s) << cell.sentence;
    EXPECT_EQ(cell.shown_in.size(), 3U);
  }
  const bool at_mount = std::any_of(off.begin(), off.end(), [](const RequestCell& cell) {
    return cell.which.component == "mount" && cell.which.name.starts_with("node.");
  });
  EXPECT_TRUE(at_mount) << SaidOfRequests(comparison);
  EXPECT_NE(off.front().sentence.find("predicted"), std::string::npos);
  EXPECT_NE(off.front().open_first.find("two: 'ip -s link'"), std::string::npos)
      << SaidOfRequests(comparison);
  ASSERT_FALSE(comparison.blamed.empty());
  EXPECT_EQ(comparison.blamed.front().suspect, (Suspect{Part::kLink, "two"}))
      << SaidOfRequests(comparison);
}

// One task of 31 reads most and computes most.
Workflow Gather(double computing) {
  const auto compute = [computing](int64_t ms) {
    return Nanoseconds(static_cast<int64_t>(static_cast<double>(ms) * 1e6 * computing));
  };
  WorkflowMaker maker;
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    parts.push_back("part." + n);
    maker.File(parts.back(), 4 * kMiB);
    maker.Task("make_" + n, {}, {parts.back()}, compute(400 + 20 * (i % 5)));
  }
  maker.File("sum", kMiB).Task("sum", parts, {"sum"}, compute(4000));
  return maker.Build();
}

// Its tasks alone cannot tell reading from computing. Computing also takes a little longer than the
// workload says, as on real machines.
TEST(RequestEvidenceTest, TellsASlowLinkFromSlowComputing) {
  const Workflow workflow = Gather(1);
  std::vector<SeenRun> draws, runs;
  for (uint64_t seed = 1; seed <= kDrawsMin; ++seed) draws.push_back(DrawnRun(workflow, seed));
  for (uint64_t repeat = 0; repeat < 3; ++repeat)
    runs.push_back(DrawnRun(Gather(1.25), 77, ",h2.link=12M", repeat));
  const CompareOptions options = {.slots = 1, .link_bytes_per_second = 100'000'000};
  const Comparison with = Compare(workflow, draws, runs, options);
  ASSERT_FALSE(with.blamed.empty());
  EXPECT_EQ(with.blamed.front().suspect, (Suspect{Part::kLink, "two"})) << SaidOfRequests(with);
  EXPECT_TRUE(Explains(with.blamed));
  for (SeenRun& run : runs) run.requests.clear();
  const Comparison without = Compare(workflow, draws, runs, options);
  EXPECT_TRUE(without.requests.empty());
  const auto computing =
      std::find_if(without.blamed.begin(), without.blamed.end(),
                   [](const Blame& blame) { return blame.suspect.part == Part::kComputing; });
  ASSERT_NE(computing, without.blamed.end());
  EXPECT_GT(computing->weight(), without.blamed.front().weight() - 0.05) << SaidOfRequests(without);
}

TEST_F(RequestCellsTest, OnlyWhatIsComparableIsJudged) {
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs) {
    run.requests[{"mount", "fuse.read", "one", ""}] = {1000, 5000, 5, 9};
    run.requests[{"manager", "open", "-", ""}] = {1000, 5000, 5, 9};
    for (auto& [which, seen] : run.requests)
      if (which.component == "storage" && which.name == "read") seen.seconds *= 1000;
    run.requests[{"mount", "fuse.statfs", "one", ""}] = {1000, 5000, 5, 9};
    run.requests[{"mount", "node.allocate", "one", "two"}] = {1000, 5000, 5, 9};
  }
  const Comparison comparison = CompareWith(runs);
  EXPECT_TRUE(Off(comparison).empty()) << SaidOfRequests(comparison);
  size_t met = 0;
  for (const RequestCell& cell : comparison.requests) {
    if (cell.which.name == "fuse.read" && cell.which.host == "one") {
      EXPECT_EQ(cell.verdict, RequestVerdict::kShown);
      EXPECT_NEAR(cell.measured.mean_s, 5, 1e-9);
      ++met;
    } else if (cell.which.name == "fuse.statfs" || cell.which.name == "node.allocate") {
      EXPECT_EQ(cell.verdict, RequestVerdict::kNotPredicted);
      EXPECT_FALSE(cell.interval_s.has_value());
      ++met;
    }
  }
  EXPECT_EQ(met, 3U);
}

TEST(RequestModes, AreSaidOfWhatIsOffUnlessTheyArePredicted) {
  const RequestClass which = {"mount", "node.read", "h1", "h2"};
  for (const bool are_predicted : {false, true}) {
    DurationCounts usual, retried;
    for (int i = 0; i < 100; ++i) {
      usual.Add(Milliseconds(are_predicted && i < 10 ? 100 : 3));
      retried.Add(Milliseconds(i < 10 ? 1000 : 3));
    }
    std::vector<SeenRun> draws(20), runs(3);
    for (SeenRun& draw : draws) draw.requests[which] = SeenOf(usual);
    for (SeenRun& run : runs) run.requests[which] = SeenOf(retried);
    auto cells = CompareRequests(draws, runs, {}, 10);
    ExplainRequests(cells);
    ASSERT_EQ(cells.at(0).verdict, RequestVerdict::kAnomaly);
    EXPECT_EQ(cells[0].modes.has_value(), !are_predicted);
    EXPECT_EQ(cells[0].sentence.find("10 % took about ") != std::string::npos, !are_predicted)
        << cells[0].sentence;
  }
}

TEST_F(RequestCellsTest, OneRunAloneMustShowMore) {
  const auto slowed = [](SeenRun run, double times) {
    for (auto& [which, seen] : run.requests)
      if (which.name.starts_with("node.") && which.host == "three") seen.seconds *= times;
    return run;
  };
  const SeenRun well = Drawn(77);
  EXPECT_TRUE(Off(CompareWith({well, slowed(well, 2), well})).empty());
  EXPECT_FALSE(Off(CompareWith({well, slowed(well, 40), slowed(well, 40)})).empty());
  EXPECT_TRUE(Off(CompareWith({well, slowed(well, 400), well})).empty());
  const std::vector<RequestCell> off = Off(CompareWith({slowed(well, 400)}));
  ASSERT_FALSE(off.empty());
  for (const RequestCell& cell : off) {
    EXPECT_EQ(cell.shown_in.size(), 1U);
    const double well_s = MeanOf(well.requests.at(cell.which));
    EXPECT_NEAR(cell.measured.mean_s, 400 * well_s, well_s) << cell.sentence;
    EXPECT_GT(cell.residual_share_interval.low, 1) << cell.sentence;
    EXPECT_NEAR(cell.more_s, (cell.measured.mean_s - cell.predicted.mean_s) * cell.measured.count,
                1e-6);
    EXPECT_NE(cell.sentence.find("in 1 of 1 run"), std::string::npos) << cell.sentence;
  }
}

// Multiplies the time of each task; moves no other task.
SeenRun Stretched(const Workflow& workflow, SeenRun run,
                  const std::function<double(const SeenTask&)>& times) {
  for (size_t i = 0; i < workflow.tasks.size(); ++i) {
    SeenTask& task = run.tasks[i];
    task.end =
        task.start +
        Nanoseconds(static_cast<int64_t>(SecondsOf(task.end - task.start) * times(task) * 1e9));
  }
  return run;
}
void SlowRequestsOver(const std::string& host, double times, SeenRun& run) {
  for (auto& [which, seen] : run.requests)
    if (which.name.starts_with("node.") && (which.host == host || which.peer == host))
      seen.seconds *= times;
}
const Anomaly* HostAnomaly(const Comparison& comparison, const std::string& host) {
  for (const Anomaly& anomaly : comparison.anomalies)
    if (comparison.cells[anomaly.cell].cell == CellName{Level::kHost, host}) return &anomaly;
  return nullptr;
}

// Tasks tell why tasks deviate; requests that deviate for another reason do not change that.
TEST_F(RequestCellsTest, AnotherSlowLinkTakesNoBlame) {
  const auto twice_on_three = [](const SeenTask& task) {
    return kNamedHosts[task.host.value] == "three" ? 2.0 : 1.0;
  };
  for (const bool is_linked : {true, false}) {
    SCOPED_TRACE(is_linked ? "the link is slow for tasks, too" : "requests alone");
    std::vector<SeenRun> runs = is_linked ? Runs(77, ",h2.link=8M") : Runs(77);
    for (SeenRun& run : runs) {
      run = Stretched(*workflow_, run, twice_on_three);
      if (!is_linked) SlowRequestsOver("two", 5, run);
    }
    const Comparison comparison = CompareWith(runs);
    ASSERT_FALSE(Off(comparison).empty());
    const Anomaly* anomaly = HostAnomaly(comparison, "three");
    ASSERT_NE(anomaly, nullptr) << SaidOfRequests(comparison);
    EXPECT_EQ(anomaly->open_first.find("three: "), 0U) << SaidOfRequests(comparison);
    if (is_linked) continue;  // With two faults at once, the part is not told.
    EXPECT_EQ(anomaly->cause.find("Host three explains"), 0U) << SaidOfRequests(comparison);
    EXPECT_EQ(comparison.blamed.front().suspect, (Suspect{Part::kHost, "three"}))
        << SaidOfRequests(comparison);
    for (const Anomaly& each : comparison.anomalies)
      EXPECT_EQ(each.cause.find("The link of two"), std::string::npos) << each.sentence;
  }
}

TEST_F(RequestCellsTest, SlowRequestsExplainNothingThatIsFaster) {
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs) run = Stretched(*workflow_, run, [](const SeenTask&) { return 0.65; });
  const Comparison without = CompareWith(runs);
  for (SeenRun& run : runs) SlowRequestsOver("two", 15, run);
  const Comparison with = CompareWith(runs);
  ASSERT_FALSE(Off(with).empty());
  ASSERT_EQ(with.blamed.size(), without.blamed.size());
  for (size_t i = 0; i < with.blamed.size(); ++i) {
    EXPECT_EQ(with.blamed[i].suspect, without.blamed[i].suspect) << SaidOfRequests(with);
    EXPECT_FALSE(with.blamed[i].of_requests.has_value());
  }
}

// Every task has bytes on all nodes alike: tasks alone cannot tell which node is slow.
TEST_F(RequestCellsTest, OfStripedFilesRequestsTellWhichNodeIsSlow) {
  constexpr double kMorePerByte_s = 2e-7;
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs) {
    double more_s = 0;
    for (SeenTask& task : run.tasks) {
      uint64_t bytes = 0;
      for (const BytesByNodeName* found : {&task.read, &task.written})
        if (found->contains("three")) bytes += found->at("three");
      const double task_s = kMorePerByte_s * static_cast<double>(bytes);
      task.end = task.end + Nanoseconds(static_cast<int64_t>(task_s * 1e9));
      more_s += task_s;
    }
    uint64_t count = 0;
    const auto waits = [](const RequestClass& which) {
      return which.name.starts_with("node.") && which.peer == "three";
    };
    for (const auto& [which, seen] : run.requests)
      if (waits(which)) count += seen.count;
    for (auto& [which, seen] : run.requests)
      if (waits(which) || (which.name == "write.object" && which.host == "three"))
        seen.seconds += more_s * static_cast<double>(seen.count) / static_cast<double>(count);
  }
  const Comparison with = CompareWith(runs);
  ASSERT_FALSE(with.blamed.empty());
  EXPECT_EQ(with.blamed.front().suspect, (Suspect{Part::kNode, "three"})) << SaidOfRequests(with);
  EXPECT_TRUE(Explains(with.blamed));
  for (SeenRun& run : runs) run.requests.clear();
  const Comparison without = CompareWith(runs);
  ASSERT_GT(without.blamed.size(), 1U);
  EXPECT_LT(without.blamed.front().explained - without.blamed[1].explained, 0.1)
      << SaidOfRequests(without);
}

// As if its RAM disk swapped: writers wait, and the node's own times show it.
TEST_F(RequestCellsTest, ASlowStorageNodeIsNamed) {
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs)
    for (auto& [which, seen] : run.requests)
      if ((which.component == "storage" && which.host == "three") ||
          (which.name.starts_with("node.") && which.peer == "three"))
        seen.seconds += static_cast<double>(seen.count);
  const Comparison comparison = CompareWith(runs);
  const std::vector<RequestCell> off = Off(comparison);
  ASSERT_FALSE(off.empty());
  for (const RequestCell& cell : off) {
    EXPECT_TRUE(cell.which.host == "three" || cell.which.peer == "three") << cell.sentence;
    EXPECT_NE(cell.open_first.find("three: the log of its storage node"), std::string::npos)
        << cell.sentence << " " << cell.open_first;
  }
  const auto evidence = RequestEvidence(comparison.requests, {{0, 1, 2}, nullptr});
  for (const auto& [suspect, explained] : evidence)
    EXPECT_LE(explained, evidence.at({Part::kNode, "three"})) << Describe(suspect);
}

TEST_F(RequestCellsTest, ASlowManagerIsNamed) {
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs)
    for (auto& [which, seen] : run.requests)
      if (which.name.starts_with("manager.")) seen.seconds += 0.2 * static_cast<double>(seen.count);
  const Comparison comparison = CompareWith(runs);
  const std::vector<RequestCell> off = Off(comparison);
  ASSERT_FALSE(off.empty());
  for (const RequestCell& cell : off) {
    EXPECT_TRUE(cell.which.name.starts_with("manager.")) << cell.sentence;
    EXPECT_NE(cell.open_first.find("the manager's host"), std::string::npos) << cell.open_first;
  }
}

// The time to decide is the manager's own, whoever asks: it comes first if mounts waited for it.
TEST_F(RequestCellsTest, AManagerWhoseOwnWorkIsSlowComesFirst) {
  constexpr double kMore_s = 0.1;  // Per request; a task sends two per file.
  for (const bool is_waited_for : {true, false}) {
    SCOPED_TRACE(is_waited_for ? "mounts wait" : "nobody waits");
    std::vector<SeenRun> runs = Runs(77);
    for (SeenRun& run : runs) {
      for (auto& [which, seen] : run.requests)
        if ((which.component == "manager" && which.name.ends_with(".core")) ||
            (is_waited_for && which.name.starts_with("manager.")))
          seen.seconds += kMore_s * static_cast<double>(seen.count);
      for (size_t i = 0; i < run.tasks.size(); ++i) {
        const Task& task = workflow_->tasks[i];
        const auto files = static_cast<double>(task.inputs.size() + task.outputs.size());
        run.tasks[i].end =
            run.tasks[i].end + Nanoseconds(static_cast<int64_t>(2 * kMore_s * files * 1e9));
      }
    }
    const Comparison comparison = CompareWith(runs);
    size_t blamed = 0;
    for (const Anomaly& anomaly : comparison.anomalies) {
      if (anomaly.blamed.empty()) continue;
      ++blamed;
      if (is_waited_for) {
        EXPECT_EQ(anomaly.blamed.front().suspect, (Suspect{Part::kManager, ""})) << anomaly.cause;
      }
      EXPECT_EQ(anomaly.cause.find("The manager: its own work shows it: '") == 0U, is_waited_for)
          << anomaly.cause;
    }
    EXPECT_GT(blamed, 0U);
  }
}

// One slow direction is its node, two are its link; without waiting tasks it is neither.
TEST_F(RequestCellsTest, AHostIsToldByWhatOthersAskOfIt) {
  for (const bool both_ways : {false, true}) {
    std::vector<SeenRun> runs = Runs(77);
    for (SeenRun& run : runs)
      for (auto& [which, seen] : run.requests)
        if (which.component == "mount" && which.name.starts_with("node.") &&
            (which.peer == "three" || (both_ways && which.host == "three")))
          seen.seconds *= 3;
    const Suspect expected{both_ways ? Part::kLink : Part::kNode, "three"};
    EXPECT_TRUE(CompareWith(runs).anomalies.empty());
    for (SeenRun& run : runs)
      run = Stretched(*workflow_, run, [both_ways](const SeenTask& task) {
        return both_ways && kNamedHosts[task.host.value] == "three" ? 2.2 : 1.6;
      });
    const Comparison comparison = CompareWith(runs);
    ASSERT_FALSE(comparison.blamed.empty());
    EXPECT_EQ(comparison.blamed.front().suspect, expected) << SaidOfRequests(comparison);
    EXPECT_FALSE(comparison.blamed.front().evidence.empty());
  }
}

// Others on the machine slow all hosts alike. A link that differs from other hosts' links in the
// same runs is reported; requests that are only longer than predicted are not.
TEST_F(RequestCellsTest, ASlowLinkIsToldOnABusyMachineToo) {
  for (const bool is_linked : {true, false}) {
    SCOPED_TRACE(is_linked ? "the link of three is slow" : "all are slow");
    std::vector<SeenRun> runs = Runs(77);
    for (SeenRun& run : runs) {
      for (auto& [which, seen] : run.requests)
        if (which.component == "mount" && which.name.starts_with("node."))
          seen.seconds *= is_linked && (which.peer == "three" || which.host == "three") ? 2.5 : 1.2;
      run = Stretched(*workflow_, run, [is_linked](const SeenTask& task) {
        return is_linked && kNamedHosts[task.host.value] == "three" ? 1.9 : 1.6;
      });
      run.machines = {{kNamedHosts, 0.5, std::nullopt}};
    }
    const Comparison comparison = CompareWith(runs);
    EXPECT_FALSE(comparison.machine_busy.empty());
    if (!is_linked) {
      EXPECT_TRUE(comparison.anomalies.empty()) << SaidOfRequests(comparison);
      continue;
    }
    ASSERT_FALSE(comparison.anomalies.empty());
    for (const Anomaly& anomaly : comparison.anomalies) {
      if (comparison.cells[anomaly.cell].cell.level != Level::kWorkflow) continue;
      EXPECT_EQ(anomaly.blamed.front().suspect, (Suspect{Part::kLink, "three"})) << anomaly.cause;
      EXPECT_NE(anomaly.cause.find("only differences between hosts in the same runs count, which "
                                   "are chance in "),
                std::string::npos)
          << anomaly.cause;
    }
  }
}

// As for a storage node on a host of its own: sending no requests does not count as being as fast
// as others.
TEST_F(RequestCellsTest, AHostThatAsksNothingIsItsNodeOrItsLink) {
  std::vector<SeenRun> runs = Runs(77);
  for (SeenRun& run : runs) {
    std::erase_if(run.requests, [](const auto& asked) {
      return asked.first.component == "mount" && asked.first.host == "three";
    });
    for (auto& [which, seen] : run.requests)
      if (which.component == "mount" && which.name.starts_with("node.") && which.peer == "three")
        seen.seconds *= 3;
    run = Stretched(*workflow_, run, [](const SeenTask& task) {
      return kNamedHosts[task.host.value] == "three" ? 1.0 : 1.6;
    });
  }
  const Comparison comparison = CompareWith(runs);
  ASSERT_GE(comparison.blamed.size(), 2U);
  EXPECT_EQ(comparison.blamed[0].suspect, (Suspect{Part::kNode, "three"}))
      << SaidOfRequests(comparison);
  EXPECT_EQ(comparison.blamed[1].suspect, (Suspect{Part::kLink, "three"}))
      << SaidOfRequests(comparison);
  for (size_t i = 0; i < 2; ++i) {
    const std::string& evidence = comparison.blamed[i].evidence;
    EXPECT_NE(evidence.find("its node or its link"), std::string::npos) << evidence;
    EXPECT_EQ(evidence.find("1.0 times"), std::string::npos) << evidence;
  }
}

}  // namespace
}  // namespace mosa::predict
