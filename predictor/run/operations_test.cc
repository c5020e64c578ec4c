// Tasks that play operations, compared with tasks that read, compute and write as a whole.
#include <gtest/gtest.h>

#include "common/model/ranges.h"
#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

using Kind = TaskOperation::Kind;

constexpr uint64_t kTurnBytes = 64 * kMiB;

// "turn" reads "in" and writes "out".
Workflow Turn(std::vector<TaskOperation> operations) {
  WorkflowMaker maker;
  maker.File("in", kTurnBytes)
      .File("out", kTurnBytes)
      .Task("turn", {"in"}, {"out"}, Milliseconds(100));
  Workflow workflow = maker.Build();
  for (TaskOperation& operation : operations)
    operation.file =
        operation.kind == Kind::kRead ? workflow.tasks[0].inputs[0] : workflow.tasks[0].outputs[0];
  workflow.tasks[0].operations = std::move(operations);
  return workflow;
}

TEST(Operations, OfWholeFilesTakeAsLongAsTheTaskAsAWhole) {
  const std::vector<TaskOperation> whole = {{{}, Kind::kRead, {}, 0, kTurnBytes},
                                            {Milliseconds(100), Kind::kWrite, {}, 0, kTurnBytes}};
  for (const char* configuration : {"hosts=1", "hosts=1,storage=2", "hosts=3,system=dss"}) {
    const Prediction plain = MustPredict(Turn({}), BusyPlatform(), configuration);
    const Prediction played = MustPredict(Turn(whole), BusyPlatform(), configuration);
    EXPECT_EQ(played.turnaround, plain.turnaround) << configuration;
    EXPECT_EQ(played.tasks[0].read_remote, plain.tasks[0].read_remote);
    EXPECT_EQ(played.tasks[0].read_local, plain.tasks[0].read_local);
    EXPECT_EQ(played.tasks[0].written, kTurnBytes);
    EXPECT_EQ(played.digest, plain.digest) << configuration;
  }
}

TEST(Operations, OfAPartMoveThatPart) {
  const Workflow workflow =
      Turn({{{}, Kind::kRead, {}, 16 * kMiB, 4 * kMiB}, {{}, Kind::kWrite, {}, 0, kTurnBytes}});
  const Prediction here = MustPredict(workflow, PlainPlatform(), "hosts=1");
  EXPECT_EQ(here.tasks[0].read_local, 4 * kMiB);
  EXPECT_EQ(here.tasks[0].reading.ns, static_cast<int64_t>(2 * kMiB));
  // From another host, only read-ahead moves additional bytes.
  const Prediction there = MustPredict(workflow, Forgetful(PlainPlatform()), "hosts=1,storage=1");
  EXPECT_GE(there.tasks[0].read_remote, 4 * kMiB);
  EXPECT_LE(there.tasks[0].read_remote, 32 * kMiB);
}

// Reads "in" from another host than the one that staged it in, part by part.
PredictedTask ReadThere(const std::vector<ByteRange>& parts) {
  WorkflowMaker maker;
  maker.File("in", kTurnBytes).Task("hold", {}, {}, Seconds(100)).Task("read", {"in"}, {});
  Workflow workflow = maker.Build();
  Task& task = workflow.tasks[1];
  for (const ByteRange& part : parts)
    task.operations.push_back({{}, Kind::kRead, task.inputs[0], part.begin, part.size()});
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), "hosts=2,slots=1,storage=2");
  EXPECT_NE(prediction.tasks[1].host, HostIndex{0});
  return prediction.tasks[1];
}

TEST(Operations, PartsInARowAreOneStream) {
  const PredictedTask whole = ReadThere({{0, kTurnBytes}});
  EXPECT_EQ(whole.read_remote, kTurnBytes);
  for (const uint64_t bytes : {kMiB / 16, kMiB, 4 * kMiB}) {
    std::vector<ByteRange> parts;
    for (uint64_t at = 0; at < kTurnBytes; at += bytes) parts.push_back({at, at + bytes});
    const PredictedTask task = ReadThere(parts);
    // After a first read that ends within a block, requests share blocks. Some bytes of a block
    // that was dropped are fetched again, which takes time.
    EXPECT_GE(task.read_remote, kTurnBytes) << bytes;
    EXPECT_LE(task.read_remote, kTurnBytes * 102 / 100) << bytes;
    EXPECT_LE(task.reading.ns, whole.reading.ns * 102 / 100) << bytes;
  }
}

// A program that reopens its input reads it from the page cache.
TEST(Operations, OfWhatWasReadBeforeComeFromThePageCache) {
  const PredictedTask again = ReadThere(
      {{0, kTurnBytes}, {0, kTurnBytes}, {kMiB, 3 * kMiB}, {kTurnBytes - 10, kTurnBytes}});
  EXPECT_EQ(again.read_remote, kTurnBytes);
  EXPECT_EQ(again.read_cached, kTurnBytes + 2 * kMiB + 10);
  // Bytes behind those already read are not cached yet.
  const PredictedTask behind = ReadThere({{0, kMiB}, {0, kMiB}, {kMiB, kTurnBytes}});
  EXPECT_EQ(behind.read_remote, kTurnBytes);
  EXPECT_EQ(behind.read_cached, kMiB);
}

TEST(Operations, OfAPartElsewhereBringThatPartAloneUntilOneFollowsOnIt) {
  const std::vector<ByteRange> apart = {{40 * kMiB, 40 * kMiB + 4096},
                                        {20 * kMiB + 100, 20 * kMiB + 200},
                                        {60 * kMiB, 60 * kMiB + 4096}};
  EXPECT_EQ(ReadThere(apart).read_remote, 3 * 4096u);
  // A header read at the file's beginning brings no more than itself, either.
  EXPECT_EQ(ReadThere({{0, 32768}, {kTurnBytes - 4096, kTurnBytes}}).read_remote, 32768u + 4096u);
  // Requested pages are present: a little further on, and again in the same page.
  std::vector<ByteRange> further = apart;
  further.push_back({60 * kMiB + 4096, 60 * kMiB + 8192});
  const uint64_t with_window = ReadThere(further).read_remote;
  EXPECT_GT(with_window, kMiB);
  EXPECT_LE(with_window, 4 * kMiB + 3 * 4096);
  further.push_back({60 * kMiB + 9000, 60 * kMiB + 9100});
  further.push_back({60 * kMiB + 9100, 60 * kMiB + 9200});
  EXPECT_LE(ReadThere(further).read_remote, 4 * kMiB + 3 * 4096);
}

TEST(Operations, ComputeInBetween) {
  const uint64_t half = kTurnBytes / 2;
  const Prediction prediction = MustPredict(Turn({{Milliseconds(5), Kind::kRead, {}, 0, half},
                                                  {Milliseconds(10), Kind::kRead, {}, half, half},
                                                  {Milliseconds(20), Kind::kWrite, {}, 0, half},
                                                  {{}, Kind::kWrite, {}, half, half},
                                                  {Milliseconds(40), Kind::kCompute, {}, 0, 0}}),
                                            PlainPlatform(), "hosts=1");
  EXPECT_EQ(prediction.tasks[0].computing, Milliseconds(75));
  EXPECT_EQ(prediction.tasks[0].reading.ns, static_cast<int64_t>(half));
  EXPECT_EQ(prediction.tasks[0].writing.ns, static_cast<int64_t>(kTurnBytes));
  EXPECT_EQ(prediction.turnaround.ns,
            Milliseconds(75).ns + static_cast<int64_t>(half) + static_cast<int64_t>(kTurnBytes));
  EXPECT_EQ(prediction.machines[0].store_bytes_max, 2 * kTurnBytes);
}

// The next task's input exists in full, however few writes the trace shows.
TEST(Operations, LeaveWholeOutputs) {
  for (const std::vector<TaskOperation>& operations : std::vector<std::vector<TaskOperation>>{
           {{{}, Kind::kRead, {}, 0, 1000}},
           {{{}, Kind::kWrite, {}, 0, 1000}},
           {{{}, Kind::kWrite, {}, 0, kTurnBytes}, {{}, Kind::kWrite, {}, 0, kTurnBytes / 2}}}) {
    WorkflowMaker maker;
    maker.File("in", kTurnBytes).File("out", kTurnBytes).File("end", 1);
    maker.Task("turn", {"in"}, {"out"}).Task("next", {"out"}, {"end"});
    Workflow workflow = maker.Build();
    workflow.tasks[0].operations = operations;
    for (TaskOperation& operation : workflow.tasks[0].operations)
      operation.file = operation.kind == Kind::kRead ? workflow.tasks[0].inputs[0]
                                                     : workflow.tasks[0].outputs[0];
    for (const char* configuration : {"hosts=1", "hosts=2,storage=2"}) {
      const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
      ASSERT_FALSE(prediction.failure) << *prediction.failure;
      const PredictedTask& next = prediction.tasks[1];
      EXPECT_EQ(next.read_local + next.read_remote + next.read_cached, kTurnBytes);
    }
  }
}

TEST(Operations, ATaskReadsWhatItHasWritten) {
  WorkflowMaker maker;
  maker.File("scratch", kTurnBytes).Task("sort", {}, {"scratch"});
  Workflow workflow = maker.Build();
  const PathIndex scratch = workflow.tasks[0].outputs[0];
  workflow.tasks[0].operations = {{{}, Kind::kWrite, scratch, 0, kTurnBytes},
                                  {{}, Kind::kRead, scratch, 0, kTurnBytes},
                                  {{}, Kind::kWrite, scratch, 0, kTurnBytes}};
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), "hosts=1,storage=2");
  ASSERT_FALSE(prediction.failure) << *prediction.failure;
  EXPECT_EQ(prediction.tasks[0].written, 2 * kTurnBytes);
  EXPECT_EQ(prediction.tasks[0].read_remote, kTurnBytes);
}

// The rest of a file is written once, by the task's last operation on it.
TEST(Operations, OfSmallPartsInTurnsCostWhatTheyMove) {
  WorkflowMaker maker;
  maker.File("table", kTurnBytes).Task("update", {}, {"table"});
  Workflow workflow = maker.Build();
  const PathIndex table = workflow.tasks[0].outputs[0];
  constexpr uint64_t kPart = 4096;
  const auto predict = [&](uint64_t turns, const char* configuration) {
    std::vector<TaskOperation>& operations = workflow.tasks[0].operations;
    operations = {{{}, Kind::kRead, table, 0, kPart}};  // Nothing is there yet.
    for (uint64_t i = 0; i < turns; ++i) {
      operations.push_back({{}, Kind::kWrite, table, i * kPart, kPart});
      operations.push_back({{}, Kind::kRead, table, i * kPart, kPart});
    }
    operations.push_back({{}, Kind::kWrite, table, turns * kPart, kPart});
    return MustPredict(workflow, BusyPlatform(), configuration);
  };
  for (const char* configuration : {"hosts=1", "hosts=1,storage=2"}) {
    const Prediction once = predict(0, configuration);
    const Prediction often = predict(20, configuration);
    ASSERT_FALSE(often.failure) << *often.failure;
    const PredictedTask& task = often.tasks[0];
    EXPECT_EQ(task.read_local + task.read_remote + task.read_cached, 20 * kPart) << configuration;
    EXPECT_EQ(task.written, 21 * kPart);
    uint64_t stored = 0;
    for (const PredictedMachine& machine : often.machines) stored += machine.store_bytes_max;
    EXPECT_EQ(stored, kTurnBytes) << configuration;
    EXPECT_EQ(often.manager_calls, once.manager_calls) << configuration;
    EXPECT_LT(often.turnaround.ns, once.turnaround.ns * 3 / 2) << configuration;
  }
}

TEST(Operations, OverwrittenBytesTakeNoRoomAgain) {
  WorkflowMaker maker;
  maker.File("table", kTurnBytes).Task("fill", {}, {"table"});
  Workflow workflow = maker.Build();
  const TaskOperation whole{{}, Kind::kWrite, workflow.tasks[0].outputs[0], 0, kTurnBytes};
  workflow.tasks[0].operations = {whole, whole, whole};
  for (const char* configuration : {"hosts=1", "hosts=1,storage=1", "hosts=3"}) {
    for (const bool passthrough : {false, true}) {
      Platform platform = BusyPlatform();
      platform.client.passthrough = passthrough;
      const Prediction prediction = MustPredict(workflow, platform, configuration);
      ASSERT_FALSE(prediction.failure) << *prediction.failure;
      EXPECT_EQ(prediction.tasks[0].written, 3 * kTurnBytes);
      uint64_t stored = 0;
      for (const PredictedMachine& machine : prediction.machines) stored += machine.store_bytes_max;
      EXPECT_EQ(stored, kTurnBytes) << configuration << (passthrough ? " by the kernel" : "");
    }
  }
}

// The file that was tagged beforehand leaves its hints to the next of its name.
TEST(Operations, AnOutputThatIsRemovedFirstKeepsItsHints) {
  WorkflowMaker maker;
  maker.File("out", kTurnBytes, {{"placement", "local"}}).Task("write", {}, {"out"});
  Workflow workflow = maker.Build();
  const PathIndex out = workflow.tasks[0].outputs[0];
  const TaskOperation write{{}, Kind::kWrite, out, 0, kTurnBytes};
  const auto nodes = [&](std::vector<TaskOperation> operations) {
    workflow.tasks[0].operations = std::move(operations);
    const Prediction prediction =
        MustPredict(workflow, BusyPlatform(), "hosts=3", {.with_layouts = true});
    EXPECT_FALSE(prediction.failure) << *prediction.failure;
    EXPECT_EQ(prediction.tasks[0].written, kTurnBytes);
    return prediction.files.at(0).layout.Nodes().size();
  };
  EXPECT_EQ(nodes({write}), 1U);
  EXPECT_EQ(nodes({{{}, Kind::kRemove, out, 0, 0}, write}), 1U);
}

TEST(Operations, AFullStoreIsTheAnswer) {
  const Prediction prediction = MustPredict(Turn({{{}, Kind::kWrite, {}, 0, kTurnBytes}}),
                                            BusyPlatform(), "hosts=1,storage=1,store=80M");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find(" full: '"), std::string::npos) << *prediction.failure;
}

// Bytes that the failed task sent are still in flight while others run.
TEST(Operations, AFailedTaskLeavesNothingBehindForThoseThatRun) {
  WorkflowMaker maker;
  maker.File("in", kTurnBytes).File("out", kTurnBytes).File("small", 1).File("copy", 1);
  maker.Task("fails", {"in"}, {"out"}).Task("goes on", {"small"}, {"copy"}, Seconds(5));
  Workflow workflow = maker.Build();
  const PathIndex in = workflow.tasks[0].inputs[0];
  const PathIndex out = workflow.tasks[0].outputs[0];
  workflow.tasks[0].operations = {{{}, Kind::kRead, in, 0, kMiB},
                                  {{}, Kind::kWrite, out, 0, kTurnBytes / 2},
                                  {{}, Kind::kRead, in, 8 * kMiB, kMiB},
                                  {{}, Kind::kWrite, out, kTurnBytes / 2, kTurnBytes / 2}};
  for (const char* configuration : {"hosts=2,storage=1,store=80M", "hosts=1,store=80M"}) {
    const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
    ASSERT_TRUE(prediction.failure) << configuration;
    EXPECT_NE(prediction.failure->find(" full: '"), std::string::npos) << *prediction.failure;
    EXPECT_GE(prediction.turnaround, Seconds(5)) << configuration;
    EXPECT_LE(prediction.machines[0].store_bytes_max, 80 * kMiB);
  }
}

}  // namespace
}  // namespace mosa::predict
