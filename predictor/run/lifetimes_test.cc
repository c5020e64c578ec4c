// Files that go during a run, by the hint lifetime.
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kStageBytes = 16 * kMiB;

// Ten tasks, each of which reads what the one before it has written.
Workflow Chain(const HintMap& hints) {
  WorkflowMaker maker;
  std::vector<std::string> before;
  for (int i = 0; i < 10; ++i) {
    const std::string file = "f" + std::to_string(i);
    maker.File(file, kStageBytes, hints).Task("t" + std::to_string(i), before, {file}, Seconds(1));
    before = {file};
  }
  return maker.Build();
}

uint64_t MostBytes(const Prediction& prediction) {
  EXPECT_FALSE(prediction.failure) << *prediction.failure;
  uint64_t most = 0;
  for (const PredictedMachine& machine : prediction.machines)
    most = std::max(most, machine.store_bytes_max);
  return most;
}

TEST(Lifetimes, AFileGoesWhenItsReadersHaveSucceeded) {
  for (const char* configuration : {"hosts=1", "hosts=1,storage=1"}) {
    const Prediction kept = MustPredict(Chain({}), BusyPlatform(), configuration);
    const Prediction gone =
        MustPredict(Chain({{"lifetime", "readers:1"}}), BusyPlatform(), configuration);
    EXPECT_EQ(MostBytes(kept), 10 * kStageBytes);
    // What a task reads and writes, and what has not gone yet.
    EXPECT_GE(MostBytes(gone), 2 * kStageBytes);
    EXPECT_LE(MostBytes(gone), 3 * kStageBytes);
    // It takes no longer, apart from what the manager does for it.
    EXPECT_NEAR(static_cast<double>(gone.turnaround.ns), static_cast<double>(kept.turnaround.ns),
                0.02 * static_cast<double>(kept.turnaround.ns));
  }
}

TEST(Lifetimes, AFileStaysUntilAllItsReadersHaveSucceeded) {
  const Prediction gone =
      MustPredict(Chain({{"lifetime", "readers:2"}}), BusyPlatform(), "hosts=1");
  EXPECT_EQ(MostBytes(gone), 10 * kStageBytes);
  const Prediction temporary =
      MustPredict(Chain({{"lifetime", "temporary"}}), BusyPlatform(), "hosts=1");
  EXPECT_EQ(MostBytes(temporary), 10 * kStageBytes);
}

TEST(Lifetimes, ARunMayFitOnlyIfItsFilesGo) {
  Platform platform = BusyPlatform();
  platform.host.store_bytes = 5 * kStageBytes;
  EXPECT_TRUE(MustPredict(Chain({}), platform, "hosts=1").failure);
  EXPECT_FALSE(MustPredict(Chain({{"lifetime", "readers:1"}}), platform, "hosts=1").failure);
}

// Who reads ahead for a task is no reader.
TEST(Lifetimes, ReadingAheadDoesNotCount) {
  Workflow workflow = Chain({{"lifetime", "readers:1"}});
  for (uint32_t i = 0; i < workflow.tasks.size(); ++i)
    workflow.tasks[i].planned = PlannedHost{HostIndex{i % 2}, Seconds(10)};
  workflow.reads_ahead = true;
  const Prediction prediction = MustPredict(workflow, BusyPlatform(), "hosts=2");
  EXPECT_LE(MostBytes(prediction), 3 * kStageBytes);
}

}  // namespace
}  // namespace mosa::predict
