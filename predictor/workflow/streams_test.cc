#include "predictor/workflow/streams.h"

#include <gtest/gtest.h>

#include <map>

namespace mosa::predict {
namespace {

using Kind = TaskOperation::Kind;

// "turn" reads the stream "in" and the plain file "table", and writes the stream "out" and the
// plain file "log".
Workflow Turn(uint64_t bytes, Duration compute) {
  WorkflowDraft draft;
  TaskDraft make, turn;
  make.id = "make";
  make.command = turn.command = {"true"};
  make.outputs = {"in"};
  turn.id = "turn";
  turn.inputs = {"in", "table"};
  turn.outputs = {"out", "log"};
  turn.expected = compute;
  draft.tasks = {make, turn};
  for (const char* path : {"in", "out", "table", "log"}) {
    FileDraft file;
    file.path = path;
    file.size_bytes = bytes;
    if (path == std::string("in") || path == std::string("out"))
      file.hints = {{"stream", "append"}};
    draft.files.push_back(file);
  }
  BuildResult built = BuildWorkflow(draft);
  EXPECT_TRUE(built.faults.empty());
  return std::move(built.workflow);
}

TEST(StreamSteps, MoveAndComputeAllOfIt) {
  constexpr Duration kNone{};
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{99}, (uint64_t{5} << 20) + 3, (uint64_t{1} << 40) + 1}) {
    for (const Duration compute : {kNone, Nanoseconds(7), Milliseconds(450), Seconds(86'400)}) {
      const Workflow workflow = Turn(bytes, compute);
      const std::vector<TaskOperation> steps = StreamSteps(workflow, workflow.tasks[1]);
      std::map<std::pair<std::string, Kind>, uint64_t> moved;
      Duration computed;
      uint32_t computes = 0;
      for (const TaskOperation& each : steps) {
        computed = computed + each.before;
        if (each.kind == Kind::kCompute) {
          ++computes;
          continue;
        }
        uint64_t& at = moved[{workflow.at(each.file).path, each.kind}];
        EXPECT_EQ(each.offset, at);
        at += each.size_bytes;
      }
      EXPECT_EQ(computed, compute);
      EXPECT_LE(computes, kStreamStepsMax);
      const std::map<std::pair<std::string, Kind>, uint64_t> all = {{{"in", Kind::kRead}, bytes},
                                                                    {{"table", Kind::kRead}, bytes},
                                                                    {{"out", Kind::kWrite}, bytes}};
      EXPECT_EQ(moved, all);
    }
  }
}

TEST(StreamSteps, AreShortButNotMany) {
  const auto steps_of = [](uint64_t bytes, Duration compute) {
    const Workflow workflow = Turn(bytes, compute);
    return std::ranges::count(StreamSteps(workflow, workflow.tasks[1]), Kind::kCompute,
                              &TaskOperation::kind);
  };
  EXPECT_EQ(steps_of(1000, Milliseconds(99)), 1);
  EXPECT_EQ(steps_of(1000, Milliseconds(1000)), 10);
  EXPECT_EQ(steps_of(uint64_t{20} << 20, Milliseconds(1000)), 20);
  EXPECT_EQ(steps_of(uint64_t{20} << 30, Milliseconds(1000)), kStreamStepsMax);
}

TEST(StreamSteps, AreOnlyForTasksWithStreamsAndWithoutOperations) {
  Workflow workflow = Turn(1000, {});
  const Workflow plain = WithoutStreams(workflow);
  EXPECT_TRUE(HasStreams(workflow));
  EXPECT_FALSE(HasStreams(plain));
  EXPECT_TRUE(StreamSteps(plain, plain.tasks[1]).empty());
  EXPECT_TRUE(plain.tasks[1].stream_writers.empty());
  EXPECT_EQ(plain.tasks[1].predecessors, workflow.tasks[1].predecessors);
  for (const WorkflowFile& file : plain.files) EXPECT_TRUE(file.hints.empty());
  workflow.tasks[1].operations = {{{}, Kind::kRead, workflow.tasks[1].inputs[0], 0, 10}};
  EXPECT_TRUE(StreamSteps(workflow, workflow.tasks[1]).empty());
}

}  // namespace
}  // namespace mosa::predict
