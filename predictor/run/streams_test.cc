// Tasks that read what others are still writing.
#include "predictor/workflow/streams.h"

#include <gtest/gtest.h>

#include "predictor/model/cost.h"
#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

const HintMap kStream = {{"stream", "append"}};

// A chain of stages of a second each, which pass on `bytes`.
Workflow Stages(int stages, uint64_t bytes) {
  WorkflowMaker maker;
  std::vector<std::string> before;
  for (int i = 0; i < stages; ++i) {
    const std::string file = "f" + std::to_string(i);
    maker.File(file, bytes, i + 1 < stages ? kStream : HintMap());
    maker.Task("stage_" + std::to_string(i), before, {file}, Seconds(1));
    before = {file};
  }
  return maker.Build();
}

double Turnaround(const Workflow& workflow, const std::string& configuration) {
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
  EXPECT_FALSE(prediction.failure) << *prediction.failure;
  return SecondsOf(prediction.turnaround);
}

// What it has read. Pages that two pieces of a stream share count twice.
double BytesOf(const PredictedTask& task) {
  return static_cast<double>(task.read_local + task.read_remote + task.read_cached);
}

TEST(Streams, StagesOverlap) {
  for (const char* configuration : {"hosts=1", "hosts=3,slots=1", "hosts=3,storage=1,slots=1"}) {
    for (const uint64_t bytes : {uint64_t{2000}, 16 * kMiB}) {
      const Workflow workflow = Stages(3, bytes);
      const double streamed = Turnaround(workflow, configuration);
      const double plain = Turnaround(WithoutStreams(workflow), configuration);
      EXPECT_GT(plain, 3) << configuration;
      // Each stage is behind the one before it by a step and by what it takes to hear of it.
      EXPECT_GT(streamed, 1) << configuration;
      EXPECT_LT(streamed, 0.65 * plain) << configuration << ", " << bytes << " bytes";
    }
  }
}

TEST(Streams, ReadersReadEveryByteAndEndLast) {
  const Workflow workflow = Stages(2, 16 * kMiB);
  for (const char* configuration : {"hosts=2,slots=1", "hosts=2,slots=1,storage=2", "hosts=1"}) {
    const Prediction prediction = MustPredict(workflow, BusyPlatform(), configuration);
    const PredictedTask& writer = prediction.tasks[0];
    const PredictedTask& reader = prediction.tasks[1];
    EXPECT_EQ(reader.read_local + reader.read_remote + reader.read_cached, 16 * kMiB)
        << configuration;
    EXPECT_LT(reader.start, writer.end) << configuration;
    EXPECT_GE(reader.end, writer.end) << configuration;
    EXPECT_EQ(writer.written, 16 * kMiB);
  }
}

TEST(Streams, AReaderWaitsForTheWritersOfItsPlainInputs) {
  WorkflowMaker maker;
  maker.File("stream", 1000, kStream).File("plain", 1000).File("out", 1);
  maker.Task("streams", {}, {"stream"}, Seconds(2)).Task("makes", {}, {"plain"}, Seconds(1));
  maker.Task("reads", {"stream", "plain"}, {"out"}, Milliseconds(10));
  const Prediction prediction = MustPredict(maker.Build(), BusyPlatform(), "hosts=1");
  EXPECT_GE(prediction.tasks[2].start, prediction.tasks[1].end);
  EXPECT_LT(prediction.tasks[2].start, prediction.tasks[0].end);
  EXPECT_GE(prediction.tasks[2].end, prediction.tasks[0].end);
}

// The reader has nothing to do and waits; what comes after it waits, too.
TEST(Streams, WhatFollowsAReaderWaitsForTheWriter) {
  WorkflowMaker maker;
  maker.File("stream", 1000, kStream).File("copy", 1000).File("out", 1);
  maker.Task("streams", {}, {"stream"}, Seconds(1)).Task("copies", {"stream"}, {"copy"});
  maker.Task("last", {"copy"}, {"out"}, Milliseconds(10));
  const Prediction prediction = MustPredict(maker.Build(), BusyPlatform(), "hosts=2");
  EXPECT_GE(prediction.tasks[2].start, prediction.tasks[0].end);
}

TEST(Streams, AreFilesLikeAnyOtherWithoutHints) {
  EXPECT_GT(Turnaround(Stages(2, 1000), "hosts=2,system=dss"), 2);
}

TEST(Streams, OfATaskThatFailsEnd) {
  Platform platform = BusyPlatform();
  platform.host.store_bytes = 8 * kMiB;
  const Prediction prediction = MustPredict(Stages(3, 64 * kMiB), platform, "hosts=1");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find("node h1 is full"), std::string::npos) << *prediction.failure;
}

TEST(Streams, AreReadAlsoByTasksWithOperations) {
  Workflow workflow = Stages(2, 4 * kMiB);
  Task& reader = workflow.tasks[1];
  for (uint64_t i = 0; i < 4; ++i)
    reader.operations.push_back(
        {Milliseconds(250), TaskOperation::Kind::kRead, reader.inputs[0], i * kMiB, kMiB});
  const double streamed = Turnaround(workflow, "hosts=2,slots=1");
  EXPECT_LT(streamed, 1.6);
  EXPECT_GT(Turnaround(WithoutStreams(workflow), "hosts=2,slots=1"), 2);
}

// As the runner does it: what is ready already goes first, also if its path is shorter.
TEST(Streams, ReadersComeAfterTasksThatWereReadyBefore) {
  WorkflowMaker maker;
  maker.File("stream", 1000, kStream).File("out", 1).File("end", 1);
  maker.Task("writes", {}, {"stream"}, Seconds(1)).Task("reads", {"stream"}, {"out"});
  maker.Task("last", {"out"}, {"end"}).Task("leaf", {}, {}, Seconds(3));
  const Prediction prediction = MustPredict(maker.Build(), BusyPlatform(), "hosts=1,slots=2");
  EXPECT_LT(SecondsOf(prediction.tasks[3].start), 0.1);
  EXPECT_GE(prediction.tasks[1].start, prediction.tasks[0].end);
}

TEST(Streams, APartIsReadWithoutTheRest) {
  Workflow workflow = Stages(2, 8 * kMiB);
  Task& reader = workflow.tasks[1];
  reader.operations = {{{}, TaskOperation::Kind::kRead, reader.inputs[0], 0, kMiB}};
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), "hosts=2,slots=1");
  const PredictedTask& read = prediction.tasks[1];
  EXPECT_LT(read.end, prediction.tasks[0].end);
  EXPECT_LT(BytesOf(read), 1.01 * kMiB);
}

TEST(Streams, AWriterDoesNotWaitForCopies) {
  WorkflowMaker maker;
  maker.File("s", 4 * kMiB, {{"stream", "append"}, {"replicas", "2"}, {"ack", "pessimistic"}});
  maker.Task("writes", {}, {"s"}, Seconds(1)).Task("reads", {"s"}, {}, Milliseconds(10));
  EXPECT_LT(Turnaround(maker.Build(), "hosts=2"), 1.5);
}

// On the writer's host, on another, and on a third that has two.
TEST(Streams, HaveSeveralReaders) {
  WorkflowMaker maker;
  maker.File("s", 4 * kMiB, kStream).Task("writes", {}, {"s"}, Seconds(1));
  for (int i = 0; i < 4; ++i) maker.Task("reads" + std::to_string(i), {"s"}, {}, Milliseconds(10));
  Workflow workflow = maker.Build();
  const uint32_t hosts[] = {0, 0, 1, 2, 2};
  for (size_t i = 0; i < workflow.tasks.size(); ++i)
    workflow.tasks[i].planned = PlannedHost{HostIndex{hosts[i]}, Seconds(100)};
  workflow.reads_ahead = true;
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), "hosts=3,slots=2");
  ASSERT_FALSE(prediction.failure);
  EXPECT_LT(SecondsOf(prediction.turnaround), 1.5);
  for (const size_t alone : {1, 2})
    EXPECT_NEAR(BytesOf(prediction.tasks[alone]), 4 * kMiB, 0.01 * 4 * kMiB) << alone;
  // What one of them fetches the other may find in their mount.
  const double both = BytesOf(prediction.tasks[3]) + BytesOf(prediction.tasks[4]);
  EXPECT_GE(both, 4 * kMiB);
  EXPECT_LE(both, 1.01 * 8 * kMiB);
}

TEST(Streams, ArePredictedAlikeEachTime) {
  const Workflow workflow = Stages(4, 5 * kMiB);
  const Prediction first = MustPredict(workflow, BusyPlatform(), "hosts=3");
  EXPECT_EQ(MustPredict(workflow, BusyPlatform(), "hosts=3").digest, first.digest);
}

}  // namespace
}  // namespace mosa::predict
