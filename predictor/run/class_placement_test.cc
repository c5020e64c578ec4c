#include "predictor/run/class_placement.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

// Two tasks of stage "make" and one of "join". A file read from outside is no task's output.
Workflow Small() {
  WorkflowMaker maker;
  maker.File("in", kMiB).File("mid/a.1", kMiB, {{"pattern", "pipeline"}, {"ack", "pessimistic"}});
  maker.File("mid/a.2", kMiB).File("sum", kMiB, {{"placement", "node:h2"}});
  maker.Task("make_1", {"in"}, {"mid/a.1"}).Task("make_2", {"in"}, {"mid/a.2"});
  maker.Task("join_1", {"mid/a.1", "mid/a.2"}, {"sum"}).Task("look_1", {"sum"}, {});
  return maker.Build();
}

HintMap HintsOf(const Workflow& workflow, const std::string& path) {
  for (const WorkflowFile& file : workflow.files)
    if (file.path == path) return file.hints;
  ADD_FAILURE() << path;
  return {};
}

TEST(ClassPlacement, StandsInThePlaceOfWhatElseIsSaidOfThePlace) {
  const Workflow workflow = Small();
  const auto placed =
      WithPlacements(workflow, *ParseConfiguration("placement:mid/*=stripe,placement@join=local"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(HintsOf(*placed, "mid/a.1"),
            (HintMap{{"ack", "pessimistic"}, {"placement", "stripe"}}));
  EXPECT_EQ(HintsOf(*placed, "mid/a.2"), (HintMap{{"placement", "stripe"}}));
  EXPECT_EQ(HintsOf(*placed, "sum"), (HintMap{{"placement", "local"}}));
  EXPECT_EQ(HintsOf(*placed, "in"), HintMap());
  const auto same =
      WithPlacements(workflow, *ParseConfiguration("placement@make=default,placement:**=default"));
  EXPECT_FALSE(same.ok());
  const auto by_default = WithPlacements(workflow, *ParseConfiguration("placement:**=default"));
  ASSERT_TRUE(by_default.ok()) << by_default.status();
  for (const WorkflowFile& file : workflow.files)
    EXPECT_EQ(HintsOf(*by_default, file.path), file.hints);
}

TEST(ClassPlacement, LeavesLaterVersionsOfAFileAlone) {
  WorkflowMaker maker;
  maker.File("log", kMiB).File("log#2", kMiB);
  const Workflow workflow = maker.Task("a_1", {}, {"log"}).Task("b_1", {}, {"log#2"}).Build();
  const auto placed = WithPlacements(workflow, *ParseConfiguration("placement:log*=local"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(HintsOf(*placed, "log"), (HintMap{{"placement", "local"}}));
  EXPECT_EQ(HintsOf(*placed, "log#2"), HintMap());
  const Status of_none =
      WithPlacements(workflow, *ParseConfiguration("placement@b=local")).status();
  EXPECT_NE(MessageOf(of_none).find("it matches only later versions"), std::string::npos)
      << of_none;
}

TEST(ClassPlacement, SaysWhatIsWrongInOneSentence) {
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"placement:mid=local", "placement:mid: no task of '' writes a file that it matches"},
      {"placement:in=local", "placement:in: no task of '' writes"},
      {"placement:*=local,placement:s*=local",
       "'sum' belongs to two classes, placement:* and placement:s*: change them so that each file "
       "belongs to one"},
      {"placement:mid/a.1=local,placement@make=stripe",
       "'mid/a.1' belongs to two classes, placement:mid/a.1 and placement@make"},
      {"placement@mak=local",
       "placement@mak: '' has no such stage; its stages are join, look, make"},
      {"placement@look=local",
       "placement@look: the tasks of this stage write no file on the store"},
      {"placement:[=local", "placement:[: "},
  };
  for (const auto& row : rows) {
    const auto configuration = ParseConfiguration(row.text);
    ASSERT_TRUE(configuration.ok()) << configuration.status();
    const Status status = WithPlacements(Small(), *configuration).status();
    EXPECT_NE(MessageOf(status).find(row.expected), std::string::npos)
        << row.text << ": " << status;
    EXPECT_EQ(Predict(Small(), PlainPlatform(), *configuration).status(), status) << row.text;
  }
}

// The prediction is as if the workflow gave the hints; without hints they have no effect.
TEST(ClassPlacement, IsPredictedAsTheWorkflowsOwn) {
  const Workflow workflow = Pipelines(4, 10 * kMiB);
  Workflow said = workflow;
  for (WorkflowFile& file : said.files)
    if (file.path.starts_with("a.")) file.hints["placement"] = "stripe";
  const auto digest = [](const Workflow& of, const char* configuration) {
    return MustPredict(of, BusyPlatform(), configuration).digest;
  };
  EXPECT_EQ(digest(workflow, "placement:a.*=stripe"), digest(said, ""));
  EXPECT_EQ(digest(workflow, "placement@first=stripe"), digest(said, ""));
  EXPECT_NE(digest(workflow, "placement:a.*=stripe"), digest(workflow, ""));
  EXPECT_EQ(digest(workflow, "placement:a.*=default"), digest(workflow, ""));
  EXPECT_EQ(digest(workflow, "system=dss,placement:a.*=local"), digest(workflow, "system=dss"));
}

}  // namespace
}  // namespace mosa::predict
