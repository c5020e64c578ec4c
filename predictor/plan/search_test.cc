#include "predictor/plan/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {
namespace {

Configuration Of(const std::string& text) {
  const auto parsed = ParseConfiguration(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

SimulatePlans On(const Platform& platform, const Configuration& configuration) {
  return [&](const std::vector<PlanTrial>& trials) -> Result<std::vector<PlanTrialOutcome>> {
    std::vector<PlanTrialOutcome> outcomes;
    for (const PlanTrial& trial : trials) {
      MOSA_ASSIGN_OR_RETURN(Prediction prediction,
                            Predict(*trial.workflow, Perturbed(platform, trial.draw),
                                    OfDraw(configuration, trial.draw)));
      outcomes.push_back({TrialOutcomeOf(prediction), nullptr});
      if (trial.wants_prediction)
        outcomes.back().prediction = std::make_shared<const Prediction>(std::move(prediction));
    }
    return outcomes;
  };
}

Result<Plan> Find(const Workflow& workflow, const Platform& platform,
                  const Configuration& configuration, uint32_t draws = 0) {
  return FindPlan(workflow, platform, configuration, {.draws = draws, .seed = 1},
                  On(platform, configuration));
}

// A row of tiles, whose neighbours are compared later. Who makes a tile where it is cheapest now
// pays when it is compared.
Workflow Row(int tiles, uint64_t bytes) {
  WorkflowMaker maker;
  // In an order in which neighbours are far from each other.
  for (int i = 0; i < tiles; ++i) {
    const int tile = i * 7 % tiles;
    maker.File(fmt::format("tile.{}", tile), bytes);
    maker.Task(fmt::format("make_{}", tile), {}, {fmt::format("tile.{}", tile)}, Milliseconds(100));
  }
  for (int i = 0; i + 1 < tiles; ++i) {
    maker.File(fmt::format("diff.{}", i), 1000);
    maker.Task(fmt::format("compare_{}", i),
               {fmt::format("tile.{}", i), fmt::format("tile.{}", i + 1)},
               {fmt::format("diff.{}", i)}, Milliseconds(100));
  }
  return maker.Build();
}

TEST(FindPlan, TilesAreMadeWhereTheirNeighboursAre) {
  const Workflow workflow = Row(32, 4 << 20);
  const Platform platform = BusyPlatform();
  const Configuration configuration = Of("hosts=4,slots=2");
  const auto plan = Find(workflow, platform, configuration, 19);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->tasks.size(), workflow.tasks.size());
  EXPECT_LT(plan->seconds, 0.9 * plan->unplanned_seconds);
  EXPECT_LT(plan->link_bytes, 0.4 * plan->unplanned_link_bytes);
  ASSERT_TRUE(plan->gain_interval_s);
  EXPECT_GT(plan->gain_interval_s->low, 0);
  // A run that follows it is predicted to take as long as the plan says.
  Workflow followed = workflow;
  ASSERT_TRUE(ApplyPlan(*plan, plan->hosts, followed).ok());
  const Prediction prediction = *Predict(followed, platform, configuration);
  for (size_t i = 0; i < followed.tasks.size(); ++i) {
    EXPECT_EQ(fmt::format("h{}", prediction.tasks[i].host.value + 1), plan->tasks[i].host);
    EXPECT_EQ(prediction.tasks[i].reason, Reason::kPlanned);
    EXPECT_NEAR(SecondsOf(prediction.tasks[i].end), plan->tasks[i].end_s, 1e-6);
  }
}

// To make copies for them takes longer than to run them one after the other.
TEST(FindPlan, ShortReadersOfALargeFileGoToItsWriter) {
  WorkflowMaker maker;
  maker.File("large", 64 << 20);
  maker.Task("make", {}, {"large"}, Milliseconds(10));
  for (int i = 0; i < 4; ++i) {
    maker.File(fmt::format("sum.{}", i), 100);
    maker.Task(fmt::format("sum_{}", i), {"large"}, {fmt::format("sum.{}", i)}, Milliseconds(10));
  }
  const auto plan = Find(maker.Build(), BusyPlatform(), Of("hosts=4,slots=1"), 19);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->tasks.size(), 5u);
  for (const PlannedTask& task : plan->tasks) EXPECT_EQ(task.host, plan->tasks[0].host);
  EXPECT_LT(plan->seconds, 0.7 * plan->unplanned_seconds);
}

// The reader of a stream would hold one of two slots for as long as its writer runs.
TEST(FindPlan, StreamsAreLeftOutWhereTheyDoNotPay) {
  WorkflowMaker maker;
  maker.File("stream", 1000, {{"stream", "append"}}).File("sum", 1);
  maker.Task("a_writes", {}, {"stream"}, Seconds(2)).Task("b_reads", {"stream"}, {"sum"});
  for (int i = 0; i < 2; ++i)
    maker.File(fmt::format("g{}", i), 1)
        .Task(fmt::format("c_{}", i), {}, {fmt::format("g{}", i)}, Seconds(1));
  const Workflow workflow = maker.Build();
  const auto plan = Find(workflow, BusyPlatform(), Of("hosts=1,slots=2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_FALSE(plan->tasks.empty());
  EXPECT_FALSE(plan->streams);
  EXPECT_LT(plan->seconds, 0.8 * plan->unplanned_seconds);
  const auto again = ReadPlan(ToJsonText(*plan));
  ASSERT_TRUE(again.ok()) << again.status();
  Workflow followed = workflow;
  ASSERT_TRUE(ApplyPlan(*again, again->hosts, followed).ok());
  EXPECT_TRUE(followed.tasks[1].stream_writers.empty());
}

TEST(FindPlan, StreamsStayWhereTheyPay) {
  WorkflowMaker maker;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    maker.File("s" + n, 8 << 20, {{"stream", "append"}}).File("t" + n, 8 << 20);
    maker.Task("w" + n, {}, {"s" + n}, Seconds(1)).Task("r" + n, {"s" + n}, {"t" + n}, Seconds(1));
  }
  const auto plan = Find(maker.Build(), BusyPlatform(), Of("hosts=4,slots=2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->streams);
  EXPECT_LT(plan->seconds, 1.7);
}

// A plan that was made without knowing of streams is followed without them.
TEST(FindPlan, AWorkflowWithoutStreamsHasAPlanWithoutThem) {
  const auto plan = Find(Row(32, 4 << 20), BusyPlatform(), Of("hosts=4,slots=2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->tasks.empty());
  EXPECT_FALSE(plan->streams);
}

TEST(FindPlan, IsEmptyWhereNothingIsFaster) {
  const Workflow workflow = Pipelines(8, 1 << 20);
  const auto plan = Find(workflow, BusyPlatform(), Of("hosts=1,slots=2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->tasks.empty() && plan->files.empty());
  EXPECT_EQ(plan->seconds, plan->unplanned_seconds);
}

TEST(FindPlan, IsNeverPredictedToBeSlower) {
  Rng rng(7);
  for (int round = 0; round < 15; ++round) {
    const Workflow workflow = RandomWorkflow(rng, 40);
    const Platform platform = BusyPlatform();
    const Configuration configuration = Of("hosts=3");
    const auto plan = Find(workflow, platform, configuration);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Workflow followed = workflow;
    ASSERT_TRUE(ApplyPlan(*plan, plan->hosts, followed).ok());
    EXPECT_LE(Predict(followed, platform, configuration)->turnaround,
              Predict(workflow, platform, configuration)->turnaround)
        << round;
  }
}

TEST(FindPlan, TheWorkflowsOwnPlacementsStay) {
  WorkflowMaker maker;
  for (int i = 0; i < 8; ++i) {
    maker.File(fmt::format("f{}", i), 8 << 20, {{"placement", "node:h2"}});
    maker.Task(fmt::format("w{}", i), {}, {fmt::format("f{}", i)});
    maker.File(fmt::format("g{}", i), 1);
    maker.Task(fmt::format("r{}", i), {fmt::format("f{}", i)}, {fmt::format("g{}", i)});
  }
  const auto plan = Find(maker.Build(), BusyPlatform(), Of("hosts=2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const auto& [path, hints] : plan->files) {
    if (path.starts_with('f')) {
      EXPECT_EQ(hints.at("placement"), "node:h2");
    }
  }
}

TEST(FindPlan, OneFailingDrawIsNoFailure) {
  const Workflow workflow = Pipelines(4, 1 << 20);
  const Configuration configuration = Of("hosts=2");
  const auto simulate = [&](const std::vector<PlanTrial>& trials) {
    auto outcomes = *On(BusyPlatform(), configuration)(trials);
    for (size_t i = 0; i < trials.size(); ++i) {
      const bool is_planned = trials[i].workflow->tasks[0].planned.has_value();
      outcomes[i].outcome = {.time = Seconds(is_planned ? 3 : 2), .computing = {}, .failure = {}};
      if (trials[i].draw == 7) outcomes[i].outcome.failure = "full";
    }
    return Result<std::vector<PlanTrialOutcome>>(outcomes);
  };
  const auto plan =
      FindPlan(workflow, BusyPlatform(), configuration, {.draws = 20, .seed = 1}, simulate);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->tasks.empty() && plan->unplanned_failure.empty());
}

TEST(FindPlan, APlanThatEndsWellWhereTheRunFailsSaysSo) {
  const Configuration configuration = Of("hosts=2");
  const auto simulate = [&](const std::vector<PlanTrial>& trials) {
    auto outcomes = *On(BusyPlatform(), configuration)(trials);
    for (size_t i = 0; i < trials.size(); ++i) {
      const bool is_planned = trials[i].workflow->tasks[0].planned.has_value();
      outcomes[i].outcome = {.time = Seconds(3), .computing = {}, .failure = {}};
      if (!is_planned) outcomes[i].outcome.failure = "full";
    }
    return Result<std::vector<PlanTrialOutcome>>(outcomes);
  };
  const auto plan = FindPlan(Pipelines(4, 1 << 20), BusyPlatform(), configuration,
                             {.draws = 20, .seed = 1}, simulate);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tasks.size(), 12U);
  EXPECT_EQ(plan->unplanned_failure, "full");
}

TEST(FindPlan, RefusesWhatCannotBePlanned) {
  EXPECT_EQ(Find(Pipelines(2, 10), BusyPlatform(), Of("system=dss")).status().code(),
            StatusCode::kInvalidArgument);
  Platform small = BusyPlatform();
  small.host.store_bytes = 1 << 20;
  const Status full = Find(Pipelines(8, 64 << 20), small, Of("hosts=2")).status();
  EXPECT_EQ(full.code(), StatusCode::kFailedPrecondition) << full;
}

}  // namespace
}  // namespace mosa::predict
