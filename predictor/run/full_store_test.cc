// What is predicted of stores without room, as tests/netns/full_store_test.py has it of real ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

TEST(FullStore, LetsAFileGoOnAtTheOtherNode) {
  WorkflowMaker maker;
  maker.File("large", 90 * kMiB);
  maker.Task("write", {}, {"large"}).Task("read", {"large"}, {});
  const Prediction prediction =
      MustPredict(maker.Build(), BusyPlatform(), "hosts=2,slots=1,placement=local,store=64M",
                  {.with_layouts = true});
  ASSERT_FALSE(prediction.failure) << *prediction.failure;
  ASSERT_EQ(prediction.files.size(), 1U);
  const std::vector<Segment>& segments = prediction.files[0].layout.segments;
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].nodes.size(), 1U);
  EXPECT_EQ(segments[1].nodes.size(), 1U);
  EXPECT_NE(segments[0].nodes, segments[1].nodes);
  EXPECT_LE(segments[1].begin, 64 * kMiB);
  EXPECT_GE(segments[1].begin, 48 * kMiB);
  const uint64_t first = prediction.machines[0].store_bytes_max;
  const uint64_t second = prediction.machines[1].store_bytes_max;
  EXPECT_EQ(first + second, 90 * kMiB);
  const PredictedTask& reader = prediction.tasks[1];
  EXPECT_EQ(reader.read_local + reader.read_remote, 90 * kMiB);
  EXPECT_GT(reader.read_remote, 0U);
}

TEST(FullStore, IsUsedWhollyBeforeAWriteFails) {
  WorkflowMaker maker;
  std::vector<std::string> outputs;
  for (int i = 0; i < 34; ++i) {
    outputs.push_back("fill" + std::to_string(i));
    maker.File(outputs.back(), 4 * kMiB);
  }
  maker.Task("fill", {}, outputs);
  for (const char* placement : {"stripe", "local"}) {
    const Prediction prediction =
        MustPredict(maker.Build(), BusyPlatform(),
                    std::string("hosts=2,slots=1,store=64M,placement=") + placement);
    ASSERT_TRUE(prediction.failure) << placement;
    ASSERT_TRUE(prediction.full) << *prediction.failure;
    const uint64_t written = prediction.tasks[0].written;
    EXPECT_EQ(written, 128 * kMiB) << placement;
    EXPECT_EQ(prediction.full->file, outputs[written / (4 * kMiB)]) << placement;
    EXPECT_GT(prediction.failed_at.ns, 0);
    for (const PredictedMachine& machine : prediction.machines)
      EXPECT_LE(machine.store_bytes_max, 64 * kMiB) << placement;
  }
}

TEST(FullStore, IsOfOneNodeWhereOthersAreLarger) {
  WorkflowMaker maker;
  maker.File("out", 40 * kMiB).Task("write", {}, {"out"});
  const std::string both = "hosts=2,slots=1,placement=local,h1.store=16M";
  const Prediction spilled = MustPredict(maker.Build(), BusyPlatform(), both);
  ASSERT_FALSE(spilled.failure) << *spilled.failure;
  EXPECT_LE(spilled.machines[0].store_bytes_max, 16 * kMiB);
  EXPECT_GE(spilled.machines[1].store_bytes_max, 24 * kMiB);
  const Prediction full = MustPredict(maker.Build(), BusyPlatform(), both + ",h2.store=16M");
  ASSERT_TRUE(full.full);
  EXPECT_EQ(full.full->file, "out");
  EXPECT_FALSE(full.full->nodes.empty());
  EXPECT_NE(full.failure->find("fails on h1 at "), std::string::npos) << *full.failure;
}

TEST(FullStore, SaysWhyAFileMayNotGoOnElsewhere) {
  WorkflowMaker maker;
  maker.File("out", 40 * kMiB, {{"placement", "local"}, {"strict", "1"}})
      .Task("write", {}, {"out"});
  const Prediction prediction =
      MustPredict(maker.Build(), BusyPlatform(), "hosts=2,slots=1,h1.store=16M");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find("node h1 is full: 'out'"), std::string::npos)
      << *prediction.failure;
  EXPECT_NE(prediction.failure->find("set strict to 0"), std::string::npos) << *prediction.failure;
  ASSERT_TRUE(prediction.full);
  EXPECT_EQ(prediction.full->nodes, std::vector<std::string>{"h1"});
}

// What else the task has open finds no room either, when the task gives it up.
TEST(FullStore, IsNamedWithTheFileThatFails) {
  WorkflowMaker maker;
  maker.File("first", 310 * kMiB, {{"placement", "local"}}).File("second", 500 * kMiB);
  maker.Task("write", {}, {"first", "second"});
  Workflow workflow = maker.Build();
  using Kind = TaskOperation::Kind;
  const std::vector<PathIndex> outputs = workflow.tasks[0].outputs;
  workflow.tasks[0].operations = {{{}, Kind::kWrite, outputs[0], 0, 300 * kMiB},
                                  {{}, Kind::kWrite, outputs[1], 0, 500 * kMiB},
                                  {{}, Kind::kWrite, outputs[0], 300 * kMiB, 10 * kMiB}};
  Platform platform = BusyPlatform();
  platform.client.passthrough = true;
  const Prediction prediction = MustPredict(workflow, platform, "hosts=2,slots=1,store=320M");
  ASSERT_TRUE(prediction.failure);
  ASSERT_TRUE(prediction.full) << *prediction.failure;
  EXPECT_EQ(prediction.full->file, "second");
  EXPECT_NE(prediction.failure->find("'second'"), std::string::npos) << *prediction.failure;
}

}  // namespace
}  // namespace mosa::predict
