// Predictions for stores without room, as tests/netns/full_store_test.py measures real ones.
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
      MustPredict(maker.Build(), Forgetful(BusyPlatform()),
                  "hosts=2,slots=1,placement=local,store=64M", {.with_layouts = true});
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

// Two tasks of one host find no room at nearly the same time, and closing takes a while.
TEST(FullStore, IsNamedWithTheFileThatFails) {
  Platform platform = BusyPlatform();
  platform.client.call = {2e8, 0, 0};
  for (const int second_mib : {90, 100, 110}) {
    WorkflowMaker maker;
    maker.File("first", 100 * kMiB).File("second", static_cast<uint64_t>(second_mib) * kMiB);
    maker.Task("one", {}, {"first"}).Task("two", {}, {"second"});
    const Prediction prediction =
        MustPredict(maker.Build(), platform, "hosts=1,storage=1,slots=2,store=128M");
    ASSERT_TRUE(prediction.failure) << second_mib;
    ASSERT_TRUE(prediction.full) << *prediction.failure;
    EXPECT_NE(prediction.failure->find("'" + prediction.full->file + "' ("), std::string::npos)
        << *prediction.failure << ", not " << prediction.full->file;
    EXPECT_EQ(prediction.full->nodes, std::vector<std::string>{"h2"});
  }
}

}  // namespace
}  // namespace mosa::predict
