#include "predictor/plan/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"
#include "predictor/model/cost.h"
#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {
namespace {

using Kind = FilePlace::Kind;

Configuration ConfigurationOf(const std::string& text) { return *ParseConfiguration(text); }

// PlainPlatform(): a link carries 100 MB/s, a local read 2 GB/s, a local write 1 GB/s.
TEST(RunEstimator, CountsComputingLinksSlotsAndCores) {
  constexpr uint64_t kSize = 100'000'000;
  WorkflowMaker maker;
  maker.File("f", kSize).Task("w", {}, {"f"}, Seconds(1)).Task("r", {"f"}, {}, Seconds(2));
  const Workflow workflow = maker.Build();
  const auto seconds = [&](const char* configuration, std::vector<HostIndex> hosts,
                           FilePlace place) {
    return RunEstimator(workflow, PlainPlatform(), ConfigurationOf(configuration))
        .Of(hosts, {place})
        .seconds;
  };
  const HostIndex h1{0}, h2{1};
  // The reader finds in its page cache what its host has written.
  EXPECT_NEAR(seconds("hosts=2", {h1, h1}, {Kind::kOnWriter}), 3 + 0.1 + 0.05, 1e-6);
  EXPECT_NEAR(seconds("hosts=2", {h1, h2}, {Kind::kOnWriter}), 3 + 0.1 + 0.05 + 1, 1e-6);
  EXPECT_NEAR(seconds("hosts=2", {h1, h2}, {Kind::kOnHost, h2}), 3 + 0.1 + 0.05 + 1, 1e-6);
  EXPECT_NEAR(seconds("hosts=2", {h1, h2}, {Kind::kStriped}), 3 + 0.1 + 0.05 + 0.5 + 0.5, 1e-6);
  EXPECT_NEAR(seconds("hosts=2,h2.speed=0.5", {h1, h2}, {Kind::kOnWriter}), 5 + 0.1 + 0.05 + 1,
              1e-6);
  EXPECT_NEAR(seconds("hosts=1,storage=1", {h1, h1}, {Kind::kStriped}), 3 + 0.1 + 0.05 + 1, 1e-6);
}

TEST(RunEstimator, TasksWaitForSlotsAndCores) {
  WorkflowMaker maker;
  for (int i = 0; i < 4; ++i) maker.Task("t" + std::to_string(i), {}, {}, Seconds(1));
  Workflow workflow = maker.Build();
  const auto seconds = [&](const Platform& platform, const char* configuration) {
    return RunEstimator(workflow, platform, ConfigurationOf(configuration))
        .Of(std::vector<HostIndex>(4), {})
        .seconds;
  };
  EXPECT_NEAR(seconds(PlainPlatform(), "hosts=1"), 1, 1e-6);
  EXPECT_NEAR(seconds(PlainPlatform(), "hosts=1,slots=2"), 2, 1e-6);
  EXPECT_NEAR(seconds(PlainPlatform(), "hosts=1,slots=9,h1.cores=1"), 4, 1e-6);
  Platform shared = PlainPlatform();
  shared.shared_cores = 2;
  EXPECT_NEAR(seconds(shared, "hosts=1,slots=4"), 2, 1e-6);
  for (Task& task : workflow.tasks) task.needs.cores = 2;
  EXPECT_NEAR(seconds(PlainPlatform(), "hosts=1"), 2, 1e-6);
}

// Where one division of a workflow is simulated to be a quarter slower than another, the estimate
// nearly always says so, too.
TEST(RunEstimator, PutsPlansInTheOrderOfTheirSimulations) {
  Rng rng(11);
  int pairs = 0, agree = 0;
  double log_ratios = 0;
  int runs = 0;
  for (int round = 0; round < 12; ++round) {
    const Workflow workflow = RandomWorkflow(rng, 40);
    const Configuration configuration = ConfigurationOf("hosts=4,slots=2");
    const RunEstimator estimator(workflow, BusyPlatform(), configuration);
    std::vector<std::pair<double, double>> both;
    for (int i = 0; i < 8; ++i) {
      // From all on one host to all anywhere.
      std::vector<HostIndex> hosts;
      for (size_t task = 0; task < workflow.tasks.size(); ++task)
        hosts.push_back(
            HostIndex{static_cast<uint32_t>(rng.Below(1 + static_cast<uint64_t>(i) / 2))});
      Workflow planned = workflow;
      planned.hints_are_whole = true;
      for (size_t task = 0; task < hosts.size(); ++task)
        planned.tasks[task].planned = PlannedHost{hosts[task], Seconds(1000)};
      for (WorkflowFile& file : planned.files)
        if (file.producer) file.hints = {{"placement", "local"}};
      std::vector<FilePlace> places(workflow.files.size());
      for (size_t file = 0; file < places.size(); ++file)
        if (workflow.files[file].producer) places[file].kind = Kind::kOnWriter;
      both.emplace_back(SecondsOf(Predict(planned, BusyPlatform(), configuration)->turnaround),
                        estimator.Of(hosts, places).seconds);
      log_ratios += std::log(both.back().second / both.back().first);
      ++runs;
    }
    for (const auto& a : both) {
      for (const auto& b : both) {
        if (a.first < 1.25 * b.first) continue;
        ++pairs;
        agree += a.second > b.second ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pairs, 50);
  EXPECT_GE(agree, pairs * 9 / 10) << agree << " of " << pairs;
  EXPECT_NEAR(log_ratios / runs, 0, 0.5);
}

}  // namespace
}  // namespace mosa::predict
