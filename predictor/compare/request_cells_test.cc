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
#include "predictor/compare/suspect.h"
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
    return Compare(*workflow_, *draws_, runs, 1);
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

TEST_F(RequestCellsTest, ASlowLinkShowsInWhatCrossesIt) {
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
    auto cells = CompareRequests(draws, runs, 10);
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
  const auto evidence = RequestEvidence(comparison.requests);
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

}  // namespace
}  // namespace mosa::predict
