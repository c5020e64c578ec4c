#include "predictor/workflow/read_ahead.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

constexpr HostIndex kH1{0}, kH2{1};
constexpr uint64_t kBytes = 4 << 20;

// "a" and "b" are read by tasks on h2, "a" also by one on h1; "c" is read by the task that ends the
// longest path.
class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() {
    WorkflowDraft draft;
    draft.tasks = {{.id = "one", .command = {"x"}, .inputs = {"a", "b"}},
                   {.id = "two", .command = {"x"}, .inputs = {"a"}},
                   {.id = "three", .command = {"x"}, .inputs = {"c"}, .outputs = {"d"}},
                   {.id = "four", .command = {"x"}, .inputs = {"d"}}};
    BuildResult built = BuildWorkflow(draft);
    EXPECT_TRUE(built.faults.empty());
    workflow = std::move(built.workflow);
    workflow.reads_ahead = true;
    Plan(0, kH2);
    Plan(1, kH1);
    Plan(2, kH2);
    Plan(3, kH2);
  }
  void Plan(uint32_t task, HostIndex host) {
    workflow.tasks[task].planned = PlannedHost{host, Seconds(1)};
  }
  PathIndex File(const std::string& path) const {
    for (uint32_t i = 0; i < workflow.files.size(); ++i)
      if (workflow.files[i].path == path) return PathIndex{i};
    ADD_FAILURE() << path;
    return {};
  }

  Workflow workflow;
};

TEST_F(ReadAheadTest, ReadsWhereTasksWillRunLongerPathsFirst) {
  ReadAhead ahead(workflow, 2);
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);
  for (const char* path : {"a", "b", "c"}) ahead.AddFile(File(path), kBytes, {});
  EXPECT_EQ(ahead.Next(kH2), File("c"));
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);  // One at a time.
  EXPECT_EQ(ahead.Next(kH1), File("a"));
  ahead.End(kH2, true);
  EXPECT_EQ(ahead.Next(kH2), File("a"));
  ahead.End(kH2, true);
  ahead.Start(TaskIndex{0}, kH2);  // "b" is its own business now.
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);
  ahead.End(kH1, true);
  EXPECT_EQ(ahead.Next(kH1), std::nullopt);
  EXPECT_EQ(ahead.read_bytes(), 3 * kBytes);
  EXPECT_EQ(ahead.used_bytes(), kBytes);
  ahead.Start(TaskIndex{1}, kH2);  // It departs from its plan: what h1 has read is of no use.
  ahead.Start(TaskIndex{2}, kH2);
  EXPECT_EQ(ahead.used_bytes(), 2 * kBytes);
}

TEST_F(ReadAheadTest, LeavesOutWhatIsNotWorthIt) {
  ReadAhead ahead(workflow, 2);
  ahead.AddFile(File("a"), kBytes, {{kH2, kBytes}});  // h2 has it.
  ahead.AddFile(File("b"), ReadAhead::kFileBytesMin - 1, {});
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);
  EXPECT_EQ(ahead.Next(kH1), File("a"));
  ahead.End(kH1, false);
  EXPECT_EQ(ahead.Next(kH1), std::nullopt);  // A reader that has failed is not started again.
  EXPECT_EQ(ahead.read_bytes(), 0U);
  workflow.reads_ahead = false;
  ReadAhead none(workflow, 2);
  none.AddFile(File("c"), kBytes, {});
  EXPECT_EQ(none.Next(kH2), std::nullopt);
}

TEST_F(ReadAheadTest, StopsWhenEnoughIsAhead) {
  ReadAhead ahead(workflow, 2);
  ahead.AddFile(File("c"), ReadAhead::kAheadBytesMax, {});
  ahead.AddFile(File("a"), kBytes, {});
  EXPECT_EQ(ahead.Next(kH2), File("c"));
  ahead.End(kH2, true);
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);
  ahead.Start(TaskIndex{2}, kH2);
  EXPECT_EQ(ahead.Next(kH2), File("a"));
}

TEST_F(ReadAheadTest, ForgetsFilesThatAreWrittenAgain) {
  ReadAhead ahead(workflow, 2);
  ahead.AddFile(File("a"), kBytes, {});
  EXPECT_EQ(ahead.Next(kH2), File("a"));
  ahead.RemoveFile(File("a"));
  ahead.End(kH2, true);
  EXPECT_EQ(ahead.read_bytes(), 0U);
  EXPECT_EQ(ahead.Next(kH1), std::nullopt);
  ahead.AddFile(File("a"), kBytes, {});
  EXPECT_EQ(ahead.Next(kH1), File("a"));
  EXPECT_EQ(ahead.Next(kH2), File("a"));
  // A reader of the file as it was before does not count for the file as it is now.
  ahead.RemoveFile(File("a"));
  ahead.AddFile(File("a"), kBytes, {});
  ahead.End(kH2, true);
  EXPECT_EQ(ahead.read_bytes(), 0U);
  EXPECT_EQ(ahead.Next(kH2), File("a"));
}

TEST_F(ReadAheadTest, CountsATaskThatStartsMeanwhile) {
  ReadAhead ahead(workflow, 2);
  ahead.Skip(TaskIndex{0});
  ahead.AddFile(File("b"), kBytes, {});
  EXPECT_EQ(ahead.Next(kH2), std::nullopt);  // Only a task that need not run reads it.
  ahead.AddFile(File("c"), kBytes, {});
  EXPECT_EQ(ahead.Next(kH2), File("c"));
  ahead.Start(TaskIndex{2}, kH2);
  ahead.End(kH2, true);
  EXPECT_EQ(ahead.read_bytes(), kBytes);
  EXPECT_EQ(ahead.used_bytes(), kBytes);
}

}  // namespace
}  // namespace mosa::predict
