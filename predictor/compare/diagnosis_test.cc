// Diagnoses of runs that were simulated with a part slower, on another draw of the platform than
// any that the prediction knows.
#include "predictor/compare/diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "predictor/compare/compare_fixture.h"
#include "predictor/model/draws.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {
namespace {

// Three stages of tasks that read what several hosts wrote, and compute.
Workflow ThreeStages() {
  WorkflowMaker maker;
  const auto add = [&](const std::string& id, const std::vector<std::string>& inputs,
                       int64_t milliseconds, uint64_t bytes) {
    maker.File(id + ".out", bytes).Task(id, inputs, {id + ".out"}, Milliseconds(milliseconds));
  };
  for (int i = 0; i < 8; ++i) add(fmt::format("make_{}", i), {}, 250, 6'000'000);
  for (int i = 0; i < 8; ++i)
    add(fmt::format("turn_{}", i), {"make_0.out", fmt::format("make_{}.out", (i + 1) % 8)}, 250,
        4'000'000);
  for (int i = 0; i < 4; ++i)
    add(fmt::format("sum_{}", i),
        {"make_0.out", fmt::format("turn_{}.out", i), fmt::format("turn_{}.out", i + 4)}, 500,
        1'000'000);
  return maker.Build();
}

// Links that matter, and page caches.
Platform Slowish() {
  Platform platform = BusyPlatform();
  platform.network.spread = 0.03;
  platform.model.spread = 0.05;
  platform.host.in_bytes_per_second = platform.host.out_bytes_per_second = 12'000'000;
  return platform;
}

Configuration Deployed() { return *ParseConfiguration(kDeployment); }

class DiagnosisTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    workflow_ = new Workflow(ThreeStages());
    platform_ = new Platform(Slowish());
    draws_ = new std::vector<SeenRun>();
    for (uint32_t draw = 1; draw <= kDrawsMin; ++draw) draws_->push_back(RunOn(draw, draw, {}));
  }
  static void TearDownTestSuite() {
    delete workflow_;
    delete platform_;
    delete draws_;
  }
  static SeenRun RunOn(uint64_t draw, uint32_t seed, const std::vector<Suspicion>& slower) {
    const Platform drawn = Perturbed(*platform_, draw);
    const Configuration configuration = Deployed();
    auto run = Counterfactual(*workflow_, drawn, configuration, kHosts).With(slower, seed);
    EXPECT_TRUE(run.ok()) << run.status();
    run->factor = ModelFactor(*platform_, draw);
    return *std::move(run);
  }
  static std::vector<Diagnosis> DiagnosesOf(const std::vector<SeenRun>& runs,
                                            const DiagnosisQuestion& question) {
    const Configuration configuration = Deployed();
    const Counterfactual counterfactual(*workflow_, *platform_, configuration, kHosts);
    DiagnosisQuestion asked = question;
    asked.suspicions = SuspicionsOf(*workflow_, configuration, kHosts);
    const Replay replay = [&](const std::vector<ReplayOf>& all) {
      std::vector<std::optional<SeenRun>> replays;
      for (const ReplayOf& each : all) {
        auto run = counterfactual.With(each.suspicions, each.seed, &runs[each.run], each.as_placed);
        replays.push_back(run.ok() ? std::optional(*std::move(run)) : std::nullopt);
      }
      return replays;
    };
    std::vector<size_t> which = question.before;
    which.insert(which.end(), question.shown.begin(), question.shown.end());
    asked.replayed = ReplayRuns(*workflow_, runs, which, replay);
    return Diagnose(*workflow_, *draws_, runs, asked, replay);
  }
  static std::string Said(const std::vector<Diagnosis>& diagnoses) {
    std::string text;
    for (const Diagnosis& diagnosis : diagnoses) {
      for (const Suspicion& each : diagnosis.suspicions)
        text += fmt::format("{}/{} {} {} ", ToText(PartOf(each.how)), static_cast<int>(each.how),
                            each.at, SizeInWords(each));
      text += fmt::format(" gain {:.1f}, {:.2f} s predicted, {:.2f} replayed, {:.2f} measured\n",
                          diagnosis.gain, diagnosis.predicted_s, diagnosis.replayed_s,
                          diagnosis.measured_s);
    }
    return text;
  }
  static Workflow* workflow_;
  static Platform* platform_;
  static std::vector<SeenRun>* draws_;
};
Workflow* DiagnosisTest::workflow_ = nullptr;
Platform* DiagnosisTest::platform_ = nullptr;
std::vector<SeenRun>* DiagnosisTest::draws_ = nullptr;

// The part that is slow, or one that can hardly be told from it, comes first.
TEST_F(DiagnosisTest, NamesThePartThatIsSlow) {
  const Suspicion rows[] = {{SlowBy::kLinkOut, "h3", 1.5}, {SlowBy::kObjects, "h1", 8},
                            {SlowBy::kNoPages, "h3", 1},   {SlowBy::kManagerWork, "", 1},
                            {SlowBy::kLinks, "", 0.6},     {SlowBy::kComputing, "turn", 2}};
  for (const Suspicion& row : rows) {
    SCOPED_TRACE(fmt::format("{} of '{}'", static_cast<int>(row.how), row.at));
    std::vector<SeenRun> runs;
    for (uint32_t i = 0; i < 3; ++i)
      runs.push_back(RunOn(777, 100 + i, i < 2 ? std::vector<Suspicion>() : std::vector{row}));
    const auto diagnoses = DiagnosesOf(runs, {{2}, {0, 1}, {}, {}});
    ASSERT_FALSE(diagnoses.empty());
    const auto found = std::ranges::find_if(diagnoses, [&row](const Diagnosis& diagnosis) {
      return SuspectOf(diagnosis.suspicions.front()) == SuspectOf(row);
    });
    ASSERT_NE(found, diagnoses.end()) << Said(diagnoses);
    EXPECT_GE(found->gain, diagnoses.front().gain - 1) << Said(diagnoses);
    EXPECT_GT(found->replayed_s, found->predicted_s) << Said(diagnoses);
  }
}

TEST_F(DiagnosisTest, BlamesNothingMuchIfNothingIsSlow) {
  const std::vector<SeenRun> runs = {RunOn(777, 100, {}), RunOn(777, 101, {})};
  for (const Diagnosis& diagnosis : DiagnosesOf(runs, {{1}, {0}, {}, {}}))
    EXPECT_LT(diagnosis.replayed_s, 1.15 * diagnosis.predicted_s) << Said({diagnosis});
}

// Files on one node instead of all.
TEST_F(DiagnosisTest, SaysThatFilesLieElsewhere) {
  const std::vector<SeenRun> sound = {RunOn(777, 100, {}), RunOn(777, 101, {})};
  Workflow moved = *workflow_;
  for (WorkflowFile& file : moved.files) file.placed_on = "h2";
  const Configuration configuration = Deployed();
  const Platform platform = Perturbed(*platform_, 777);
  auto run = Counterfactual(moved, platform, configuration, kHosts).With({}, 102);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto diagnoses = DiagnosesOf({sound[0], sound[1], *run}, {{2}, {0, 1}, {}, {}});
  ASSERT_FALSE(diagnoses.empty());
  EXPECT_EQ(diagnoses.front().suspicions.front().how, SlowBy::kPlaces) << Said(diagnoses);
}

}  // namespace
}  // namespace mosa::predict
