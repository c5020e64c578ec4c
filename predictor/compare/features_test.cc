#include "predictor/compare/features.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/compare/compare_fixture.h"

namespace mosa::predict {
namespace {

Workflow TwoStages() {
  WorkflowMaker maker;
  maker.File("a", kMiB).Task("make_1", {}, {"a"}, Milliseconds(100));
  maker.Task("use_1", {"a"}, {}, Milliseconds(100)).Task("use_2", {"a"}, {}, Milliseconds(100));
  return maker.Build();
}

// make_1 runs on h1 for a second; a fifth of a second later both others begin, on h1 and h2.
SeenRun Ran() {
  SeenRun run;
  run.hosts = {"h1", "h2"};
  const auto add = [&run](uint32_t host, int64_t start_ms, int64_t end_ms) {
    SeenTask& task = run.tasks.emplace_back();
    task.ran = true;
    task.host = HostIndex{host};
    task.start = Milliseconds(start_ms);
    task.end = Milliseconds(end_ms);
  };
  add(0, 0, 1000);
  add(0, 1200, 1700);
  add(1, 1200, 2200);
  return run;
}

double SecondsIn(const Features& features, const Feature& feature) {
  const auto place = PlaceIn(features, feature);
  return place ? AmountOf(feature, *place) : -1;
}

TEST(FeaturesTest, TimesOfTasks) {
  const Features features = FeaturesOf(TwoStages(), Ran());
  EXPECT_NEAR(SecondsIn(features, {}), 2.2, 1e-9);
  EXPECT_NEAR(SecondsIn(features, {FeatureOf::kTasks, {"", "use", "h1", ""}}), 0.5, 1e-9);
  EXPECT_NEAR(SecondsIn(features, {FeatureOf::kTasks, {"", "use", "h2", ""}}), 1, 1e-9);
  EXPECT_NEAR(SecondsIn(features, {FeatureOf::kStart, {"", "use", "", ""}}), 0.2, 1e-9);
  EXPECT_FALSE(PlaceIn(features, {FeatureOf::kOwn, {"", "use", "", ""}})) << "nobody measured it";
}

// Where a run is not whole, neither the end nor waits are known.
TEST(FeaturesTest, PartsOfARun) {
  SeenRun run = Ran();
  run.whole = false;
  run.tasks[2].ran = false;
  const Features features = FeaturesOf(TwoStages(), run);
  EXPECT_FALSE(features.contains({}));
  EXPECT_FALSE(features.contains({FeatureOf::kStart, {"", "use", "", ""}}));
  EXPECT_NEAR(SecondsIn(features, {FeatureOf::kTasks, {"", "use", "h1", ""}}), 0.5, 1e-9);
}

TEST(FeaturesTest, RequestsCountWhereTheyAreMadeAndAnswered) {
  SeenRun run = Ran();
  run.requests[{"mount", "node.write", "h1", "h2"}] = {10, 2};
  run.requests[{"mount", "node.write", "h1", "h3"}] = {10, 3};
  run.requests[{"mount", "node.write", "h2", "h3"}] = {10, 4};
  run.requests[{"mount", "manager.open", "h1", ""}] = {10, 5};
  run.requests[{"mount", "manager.commit", "h1", ""}] = {10, 6};
  run.requests[{"mount", "fuse.read", "h1", ""}] = {10, 100};
  const Features features = FeaturesOf(TwoStages(), run);
  const auto writes = [&features](const std::string& host, const std::string& peer) {
    return SecondsIn(features, {FeatureOf::kRequests, {"mount", "node.write", host, peer}});
  };
  EXPECT_NEAR(writes("h1", "h2"), 2, 1e-9);
  EXPECT_NEAR(writes("h1", ""), 5, 1e-9);
  EXPECT_NEAR(writes("", "h3"), 7, 1e-9);
  EXPECT_NEAR(SecondsIn(features, {FeatureOf::kRequests, {"mount", "manager", "h1", ""}}), 11,
              1e-9);
  for (const auto& [feature, place] : features)
    EXPECT_NE(feature.which.name, "fuse.read") << "the kernel asks otherwise than the simulator";
}

// What a mount that asked for other things did not ask for took no time; what an unknown mount
// asked for is unknown.
TEST(FeaturesTest, WhatWasNotAskedForTookNothing) {
  SeenRun run = Ran();
  run.requests[{"mount", "manager.open", "h1", ""}] = {10, 5};
  const Features features = FeaturesOf(TwoStages(), run);
  const Feature of_h1{FeatureOf::kRequests, {"mount", "node.write", "h1", ""}};
  const Feature of_h2{FeatureOf::kRequests, {"mount", "node.write", "h2", ""}};
  EXPECT_NEAR(SecondsIn(features, of_h1), 0, 1e-9);
  EXPECT_FALSE(PlaceIn(features, of_h2));
  run.knows_all_requests = false;
  EXPECT_FALSE(PlaceIn(FeaturesOf(TwoStages(), run), of_h1));
}

}  // namespace
}  // namespace mosa::predict
