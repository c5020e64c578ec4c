#include "predictor/advise/candidates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

// "stage use files: alternative | *the one of mosa run | ...; ...".
std::string Text(const std::vector<HintClass>& classes) {
  std::string text;
  for (const HintClass& each : classes) {
    text += fmt::format("{}{} {} {}:", text.empty() ? "" : "; ", each.stage, each.use,
                        each.files.size());
    for (size_t i = 0; i < each.alternatives.size(); ++i)
      text += fmt::format("{} {}{}", i == 0 ? "" : " |", i == each.by_itself ? "*" : "",
                          i == 0 ? "none" : each.alternatives[i].text);
  }
  return text;
}
std::string Candidates(const Workflow& workflow, const CandidateOptions& options) {
  return Text(CandidatesOf(workflow, options));
}

TEST(Candidates, AreClassesOfOneStageAndUse) {
  EXPECT_EQ(Candidates(Pipelines(3, kMiB), {4, 4}),
            "first 1:1 3: none | *pattern=pipeline; second 1:1 3: none | *pattern=pipeline; "
            "third result 3: *none | pattern=pipeline");
}

TEST(Candidates, HaveGroupsOfTheirReaders) {
  EXPECT_EQ(Candidates(Reduce(3, kMiB), {4, 4}),
            "map fan-in 3: none | pattern=pipeline | *pattern=reduce:reduce; "
            "reduce result 1: *none | pattern=pipeline");
}

TEST(Candidates, HaveAsManyCopiesAsThereAreNodesAndReaders) {
  EXPECT_EQ(Candidates(Broadcast(5, kMiB), {4, 4}),
            "write fan-out 1: none | placement=local | pattern=broadcast:2 | *pattern=broadcast:4; "
            "read result 5: *none | pattern=pipeline");
  EXPECT_EQ(Candidates(Broadcast(3, kMiB), {9, 9}),
            "write fan-out 1: none | placement=local | pattern=broadcast:2 | *pattern=broadcast:3; "
            "read result 3: *none | pattern=pipeline");
  EXPECT_EQ(Candidates(Broadcast(5, kMiB), {1, 1}),
            "write fan-out 1: none | *placement=local; read result 5: *none | pattern=pipeline");
}

TEST(Candidates, AreWhatTheWorkflowSaysToo) {
  EXPECT_EQ(
      Candidates(Broadcast(2, kMiB, {{"pattern", "scatter:1M"}, {"lifetime", "keep"}}), {4, 4}),
      "write fan-out 1: none | placement=local | pattern=broadcast:2 | "
      "*pattern=scatter:1M | pattern=scatter:262144 | pattern=scatter:4194304; "
      "read result 2: *none | pattern=pipeline");
}

TEST(Candidates, AreOneClassOfWhatMovesLeast) {
  WorkflowMaker maker;
  for (int i = 0; i < 5; ++i) {
    const std::string stage(1, static_cast<char>('a' + i));
    maker.File(stage + "_out", static_cast<uint64_t>(i + 1) * kMiB);
    maker.Task(stage, {}, {stage + "_out"});
  }
  EXPECT_EQ(Candidates(maker.Build(), {4, 4, 2}),
            "d result 1: *none | pattern=pipeline; e result 1: *none | pattern=pipeline; "
            "other stages any 3: *none");
}

TEST(Candidates, LeaveLaterVersionsOfAFileAlone) {
  WorkflowMaker maker;
  maker.File("log", 1).File("log#2", 1).File("other#2", 1);
  maker.Task("a", {}, {"log"}).Task("b", {}, {"log#2"}).Task("c", {}, {"other#2"});
  EXPECT_EQ(Candidates(maker.Build(), {4, 4}),
            "a result 1: *none | pattern=pipeline; c result 1: *none | pattern=pipeline");
}

TEST(Candidates, TakeNoFileOfTheWorkflowsOwnForALaterVersion) {
  WorkflowMaker maker;
  maker.File("x", 1).File("x#1", 1).File("x#02", 1).File("x#2", 1, {{"placement", "local"}});
  const Workflow workflow = maker.Task("a", {}, {"x", "x#1", "x#02", "x#2"}).Build();
  EXPECT_TRUE(LaterVersionsIn(workflow).empty());
  const auto classes = CandidatesOf(workflow, {4, 4});
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].files.size(), 4U);
}

TEST(Candidates, AreNoneWithoutOutputs) {
  WorkflowMaker maker;
  maker.File("in", kMiB).Task("a", {"in"}, {});
  EXPECT_EQ(Candidates(maker.Build(), {4, 4}), "");
}

TEST(MakeSpeedHintsCanonical, PutsValuesAsTheStoreKeepsThem) {
  Workflow workflow = Broadcast(2, kMiB, {{"chunk_size", "4M"}, {"lifetime", "keep"}});
  ASSERT_TRUE(MakeSpeedHintsCanonical(workflow).ok());
  EXPECT_EQ(workflow.files[0].hints, (HintMap{{"chunk_size", "4194304"}, {"lifetime", "keep"}}));
  workflow = Broadcast(2, kMiB, {{"pattern", "circle"}});
  const Status status = MakeSpeedHintsCanonical(workflow);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(status).find("file 'all': 'circle' is not a value of hint 'pattern'"),
            std::string::npos)
      << status;
}

// The hints that `mosa run` uses by itself must give exactly the same run when they are chosen.
TEST(WithHints, IsTheSameRunAsWhatMosaRunDoesByItself) {
  for (const Workflow& workflow :
       {Pipelines(3, 4 * kMiB), Reduce(4, 3 * kMiB), Broadcast(5, 8 * kMiB),
        Broadcast(5, 8 * kMiB, {{"pattern", "scatter:1M"}, {"replicas", "2"}})}) {
    const auto classes = CandidatesOf(workflow, {4, 4});
    const Workflow same = WithHints(workflow, classes, ByItself(classes));
    EXPECT_EQ(MustPredict(same, BusyPlatform(), "hosts=4").digest,
              MustPredict(workflow, BusyPlatform(), "hosts=4").digest);
  }
}

TEST(WithHints, KeepsWhatIsNotSaidForSpeed) {
  const Workflow workflow = Broadcast(2, kMiB, {{"pattern", "broadcast:2"}, {"lifetime", "keep"}});
  const auto classes = CandidatesOf(workflow, {4, 4});
  const Workflow bare = WithHints(workflow, classes, {0, 0});
  EXPECT_EQ(bare.files[0].hints, (HintMap{{"lifetime", "keep"}}));
  EXPECT_TRUE(bare.hints_are_whole);
}

}  // namespace
}  // namespace mosa::predict
