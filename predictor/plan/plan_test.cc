#include "predictor/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

using ::testing::HasSubstr;

Workflow Chain() {
  return WorkflowMaker()
      .File("a", 1000, {{"pattern", "broadcast:2"}, {"replicas", "2"}})
      .File("b", 1000)
      .Task("first", {}, {"a"})
      .Task("second", {"a"}, {"b"})
      .Build();
}

Plan PlanOfChain() {
  Plan plan;
  plan.workflow = "chain";
  plan.configuration = "hosts=2";
  plan.hosts = {"h1", "h2"};
  plan.seconds = 1.5;
  plan.unplanned_seconds = 2;
  plan.gain_s = 0.5;
  plan.gain_interval_s = Interval<double>{0.25, 0.75};
  plan.link_bytes = 1000;
  plan.store_bytes_max = {{"h1", 4096}};
  plan.tasks = {{"first", "h1", 0, 1, 2}, {"second", "h2", 1, 1.5, 3}};
  plan.files = {{"a", {{"placement", "node:h2"}}}, {"b", {{"placement", "local"}}}};
  return plan;
}

TEST(Plan, IsReadAsItWasWritten) {
  const Plan plan = PlanOfChain();
  const auto read = ReadPlan(ToJsonText(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJsonText(*read), ToJsonText(plan));
  EXPECT_EQ(read->gain_interval_s, plan.gain_interval_s);
  EXPECT_EQ(read->tasks[1].host, "h2");
}

TEST(Plan, PlacesTasksAndFilesOnTheHostsOfTheRunInTheirOrder) {
  Workflow workflow = Chain();
  workflow.files[0].hints = {{"replicas", "2"}, {"chunk_size", "65536"}};
  ASSERT_TRUE(ApplyPlan(PlanOfChain(), {"red", "blue", "green"}, workflow).ok());
  EXPECT_EQ(workflow.tasks[1].planned->host, HostIndex{1});
  EXPECT_EQ(workflow.tasks[1].planned->patience, Seconds(3));
  EXPECT_TRUE(workflow.hints_are_whole);
  EXPECT_EQ(workflow.files[0].hints,
            (HintMap{{"placement", "node:blue"}, {"replicas", "2"}, {"chunk_size", "65536"}}));
  EXPECT_EQ(workflow.files[1].hints, (HintMap{{"placement", "local"}}));
}

TEST(Plan, TheWorkflowsOwnPatternOrPlacementWins) {
  Workflow workflow = Chain();
  Plan plan = PlanOfChain();
  plan.files["nobody/writes"] = {{"placement", "local"}};
  const auto unused = ApplyPlan(plan, {"h1", "h2"}, workflow);
  ASSERT_TRUE(unused.ok());
  EXPECT_EQ(*unused, std::vector<std::string>{"nobody/writes"});
  EXPECT_EQ(workflow.files[0].hints, Chain().files[0].hints);
  EXPECT_EQ(workflow.files[1].hints, (HintMap{{"placement", "local"}}));
}

TEST(Plan, WithoutTasksChangesNothing) {
  Plan plan = PlanOfChain();
  plan.tasks.clear();
  plan.files.clear();
  Workflow workflow = Chain();
  ASSERT_TRUE(ApplyPlan(plan, {"red", "blue"}, workflow).ok());
  EXPECT_FALSE(workflow.tasks[0].planned || workflow.hints_are_whole);
  EXPECT_EQ(workflow.files[0].hints.size(), 2U);
}

TEST(Plan, OfAnotherWorkflowOrOfMoreHostsIsRefusedWithoutEffect) {
  const auto refused = [](Plan plan, Workflow workflow, const std::vector<std::string>& hosts) {
    const Status status = ApplyPlan(plan, hosts, workflow).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_FALSE(workflow.hints_are_whole);
    return MessageOf(status);
  };
  EXPECT_THAT(refused(PlanOfChain(), Chain(), {"h1"}), HasSubstr("for 2 hosts, and there are 1"));
  EXPECT_THAT(refused(PlanOfChain(), Pipelines(1, 10), {"h1", "h2"}),
              HasSubstr("does not fit this workflow: it has no task 'first_0'"));
  Plan more = PlanOfChain();
  more.tasks.push_back({"third", "h1", 0, 0, 0});
  EXPECT_THAT(refused(more, Chain(), {"h1", "h2"}), HasSubstr("it has 3 tasks, not 2"));
}

TEST(Plan, FaultsOfItsFileAreNamed) {
  const auto fault = [](const std::string& text) { return MessageOf(ReadPlan(text).status()); };
  EXPECT_THAT(fault("{"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(fault("[]"), HasSubstr("is not a plan"));
  EXPECT_THAT(fault(R"({"mosa_plan": 99})"), HasSubstr("has plan version 99"));
  EXPECT_THAT(fault(R"({"mosa_plan": 1})"), HasSubstr("is damaged"));
  const auto changed = [&](const std::function<void(Plan&)>& change) {
    Plan plan = PlanOfChain();
    change(plan);
    return fault(ToJsonText(plan));
  };
  EXPECT_THAT(changed([](Plan& p) { p.tasks[1].host = "h7"; }), HasSubstr("'h7'"));
  EXPECT_THAT(changed([](Plan& p) { p.tasks[1].id = "first"; }), HasSubstr("'first' twice"));
  EXPECT_THAT(changed([](Plan& p) { p.tasks[0].patience_s = -1; }), HasSubstr("times of task"));
  EXPECT_THAT(changed([](Plan& p) { p.tasks[0].patience_s = 1e300; }), HasSubstr("times of task"));
  EXPECT_THAT(changed([](Plan& p) { p.hosts = {"h1", "h1"}; }), HasSubstr("none twice"));
  EXPECT_THAT(changed([](Plan& p) {
                p.files["a"] = {{"replicas", "3"}};
              }),
              HasSubstr("not about speed"));
  EXPECT_THAT(changed([](Plan& p) {
                p.files["a"] = {{"placement", "node:h9"}};
              }),
              HasSubstr("'node:h9'"));
}

}  // namespace
}  // namespace mosa::predict
