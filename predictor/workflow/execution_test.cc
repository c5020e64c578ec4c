#include "predictor/workflow/execution.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TaskIndex kA{0}, kB{1}, kC{2}, kD{3};

// a -> b, a -> c, (b, c) -> d.
Workflow Diamond() {
  WorkflowDraft draft;
  const auto add = [&draft](const char* id, std::vector<std::string> after) {
    TaskDraft task;
    task.id = id;
    task.command = {"true"};
    task.after = std::move(after);
    draft.tasks.push_back(task);
  };
  add("a", {});
  add("b", {"a"});
  add("c", {"a"});
  add("d", {"b", "c"});
  return BuildWorkflow(draft).workflow;
}

void Complete(Execution& execution, TaskIndex task) {
  execution.Start(task);
  execution.Finish(task);
}

TEST(Execution, GivesTasksOnceTheirInputsAreThere) {
  const Workflow workflow = Diamond();
  Execution execution(workflow, {});
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  Complete(execution, kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB, kC));
  Complete(execution, kC);
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  Complete(execution, kB);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kD));
  Complete(execution, kD);
  EXPECT_EQ(execution.count(TaskState::kDone), 4U);
}

TEST(Execution, LeavesOutWhatIsDone) {
  const Workflow workflow = Diamond();
  Execution execution(workflow, {true, false, true, false});
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
}

TEST(Execution, RetriesAndFails) {
  const Workflow workflow = Diamond();
  Execution execution(workflow, {});
  execution.TakeReady();
  execution.Start(kA);
  execution.Retry(kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  execution.Start(kA);
  execution.Fail(kA);
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  EXPECT_EQ(execution.count(TaskState::kWaiting), 3U);
}

TEST(Execution, RunsAgainWhatIsLost) {
  const Workflow workflow = Diamond();
  Execution execution(workflow, {true, true, true, false});
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kD));
  EXPECT_THAT(execution.Undo(kB), ElementsAre(kD));
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
  execution.Start(kB);
  // Its input is lost as well, so it waits.
  EXPECT_THAT(execution.Undo(kA), IsEmpty());
  execution.Retry(kB);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  Complete(execution, kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
  Complete(execution, kB);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kD));
}

// b and c read a's output: both must run again, and a is not ready before they have ended.
TEST(Execution, WaitsForTheReadersOfWhatIsWrittenAgain) {
  const Workflow workflow = Diamond();
  Execution execution(workflow, {true, false, false, false});
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB, kC));
  execution.Start(kB);
  execution.Start(kC);
  EXPECT_FALSE(execution.is_stale(kB));
  EXPECT_THAT(execution.Undo(kA), IsEmpty());
  EXPECT_TRUE(execution.is_stale(kB));
  EXPECT_TRUE(execution.is_stale(kC));
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  execution.Retry(kB);
  EXPECT_FALSE(execution.is_stale(kB));
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  execution.Fail(kC);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  Complete(execution, kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
}

// a streams x to b, which streams y to c; d reads x and y when they are whole.
Workflow Streaming() {
  WorkflowDraft draft;
  const auto add = [&draft](const char* id, std::vector<std::string> inputs,
                            std::vector<std::string> outputs, std::vector<std::string> after) {
    TaskDraft task;
    task.id = id;
    task.command = {"true"};
    task.inputs = std::move(inputs);
    task.outputs = std::move(outputs);
    task.after = std::move(after);
    draft.tasks.push_back(task);
  };
  add("a", {}, {"x"}, {});
  add("b", {"x"}, {"y"}, {});
  add("c", {"y"}, {}, {});
  add("d", {"x", "y"}, {}, {"a", "b"});
  for (const char* path : {"x", "y"}) {
    FileDraft file;
    file.path = path;
    file.hints = {{"stream", "append"}};
    draft.files.push_back(file);
  }
  return BuildWorkflow(draft).workflow;
}

TEST(Execution, StartsReadersOfStreamsWithTheirWriters) {
  const Workflow workflow = Streaming();
  Execution execution(workflow, {}, true);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  execution.Start(kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
  execution.Start(kB);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kC));
  execution.Start(kC);
  EXPECT_FALSE(execution.MayFinish(kB) || execution.MayFinish(kC));
  execution.Finish(kA);
  EXPECT_FALSE(execution.has_ready());
  execution.Finish(kB);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kD));
  EXPECT_TRUE(execution.MayFinish(kC));
  execution.Finish(kC);
}

TEST(Execution, WithoutStreamsTheyAreFiles) {
  const Workflow workflow = Streaming();
  Execution execution(workflow, {});
  execution.TakeReady();
  execution.Start(kA);
  EXPECT_THAT(execution.TakeReady(), IsEmpty());
  execution.Finish(kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
}

TEST(Execution, ReadersOfAStreamRunAgainWithItsWriter) {
  const Workflow workflow = Streaming();
  Execution execution(workflow, {}, true);
  execution.TakeReady();
  execution.Start(kA);
  execution.TakeReady();
  execution.Start(kB);
  execution.TakeReady();
  EXPECT_THAT(execution.Retry(kA), IsEmpty()) << "b runs";
  EXPECT_TRUE(execution.is_stale(kB));
  EXPECT_THAT(execution.TakeReady(), IsEmpty()) << "b still reads what a would write";
  EXPECT_THAT(execution.Retry(kB), ElementsAre(kC)) << "c was given out";
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kA));
  execution.Start(kA);
  EXPECT_THAT(execution.TakeReady(), ElementsAre(kB));
  execution.Start(kB);
  EXPECT_THAT(execution.Fail(kA), IsEmpty());
  EXPECT_TRUE(execution.is_stale(kB));
  execution.Retry(kB);
  EXPECT_FALSE(execution.has_ready()) << "its writer has failed for good";
}

// Tasks finish, fail and lose their outputs at random. A task may run only when all its
// predecessors are done; in the end all tasks are done.
TEST(Execution, NeverRunsATaskBeforeItsInputs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    Workflow workflow = RandomWorkflow(rng, 40);
    const bool streams = seed % 2 == 0;
    for (Task& task : workflow.tasks)
      std::ranges::copy_if(task.predecessors, std::back_inserter(task.stream_writers),
                           [&](TaskIndex) { return streams && rng.Chance(500); });
    Execution execution(workflow, {}, streams);
    std::set<TaskIndex> given, running;
    uint32_t losses = 30;
    for (int step = 0; execution.count(TaskState::kDone) < workflow.tasks.size(); ++step) {
      ASSERT_LT(step, 5000);
      for (const TaskIndex task : execution.TakeReady()) ASSERT_TRUE(given.insert(task).second);
      if (!given.empty() && rng.Chance(600)) {
        const TaskIndex task =
            *std::next(given.begin(), static_cast<long>(rng.Below(given.size())));
        for (const TaskIndex before : workflow.at(task).predecessors) {
          const bool is_stream = std::ranges::count(workflow.at(task).stream_writers, before) > 0;
          ASSERT_TRUE(execution.state(before) == TaskState::kDone ||
                      (is_stream && execution.state(before) == TaskState::kRunning));
        }
        for (const TaskIndex after : workflow.at(task).successors)
          ASSERT_NE(execution.state(after), TaskState::kRunning);
        execution.Start(task);
        given.erase(task);
        running.insert(task);
      } else if (!running.empty()) {
        const TaskIndex task = *running.begin();
        running.erase(task);
        if (rng.Chance(800) && execution.MayFinish(task))
          execution.Finish(task);
        else
          for (const TaskIndex withdrawn : execution.Retry(task)) given.erase(withdrawn);
      }
      if (losses > 0 && rng.Chance(100)) {
        --losses;
        const TaskIndex lost{static_cast<uint32_t>(rng.Below(workflow.tasks.size()))};
        for (const TaskIndex task : execution.Undo(lost)) ASSERT_EQ(given.erase(task), 1U);
      }
    }
  }
}

TEST(PlanResume, KeepsWhatIsIntact) {
  const Workflow workflow = Diamond();
  const EarlierRun kept{true, true, true, {}}, lost{true, true, false, {}},
      changed{true, false, true, {}}, never;
  EXPECT_THAT(PlanResume(workflow, {kept, kept, kept, never}),
              ElementsAre(true, true, true, false));
  // Lost outputs are written again unchanged.
  EXPECT_THAT(PlanResume(workflow, {kept, lost, kept, kept}), ElementsAre(true, false, true, true));
  EXPECT_THAT(PlanResume(workflow, {kept, changed, kept, kept}),
              ElementsAre(true, false, true, false));
  EXPECT_THAT(PlanResume(workflow, {changed, kept, kept, kept}),
              ElementsAre(false, false, false, false));
}

TEST(PlanResume, WritesSpentOutputsAgainOnlyForTasksThatReadThem) {
  BuildResult built = BuildWorkflow(
      {.name = "",
       .directories = {},
       .tasks = {{.id = "make", .command = {"x"}, .outputs = {"part", "data"}},
                 {.id = "a", .command = {"x"}, .inputs = {"part"}, .outputs = {"sum"}},
                 {.id = "b", .command = {"x"}, .inputs = {"sum"}},
                 {.id = "c", .command = {"x"}, .inputs = {"data"}, .after = {"a"}}},
       .files = {}});
  ASSERT_TRUE(built.faults.empty());
  const Workflow& workflow = built.workflow;
  const PathIndex part = workflow.tasks[0].outputs[0], sum = workflow.tasks[1].outputs[0];
  const EarlierRun kept{true, true, true, {}}, lost{true, true, false, {}},
      made{true, true, true, {part}}, spent{true, true, true, {sum}}, never;
  EXPECT_THAT(PlanResume(workflow, {made, spent, kept, kept}), ElementsAre(true, true, true, true));
  // "c" reads another output of "make".
  EXPECT_THAT(PlanResume(workflow, {made, spent, kept, never}),
              ElementsAre(true, true, true, false));
  EXPECT_THAT(PlanResume(workflow, {made, lost, kept, kept}),
              ElementsAre(false, false, true, true));
  EXPECT_THAT(PlanResume(workflow, {made, spent, never, kept}),
              ElementsAre(false, false, false, true));
}

}  // namespace
}  // namespace mosa::predict
