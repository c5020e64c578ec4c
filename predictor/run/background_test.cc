// What nodes do that no task asks for: copies of files, and sums of what was written past them.
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

// A node sums what was written past its daemon: whoever computes on its cores then has less of
// them.
TEST(Prediction, WhatWasWrittenOnTheOwnNodeIsSealedBesideWhatFollows) {
  WorkflowMaker maker;
  maker.File("out", 100 * kMiB);
  maker.Task("write", {}, {"out"}).Task("compute", {}, {}, Seconds(1), {"write"});
  Platform platform = PlainPlatform();
  const auto computing = [&](uint32_t cores) {
    platform.host.cores = cores;
    return MustPredict(maker.Build(), platform, "hosts=1,slots=1,placement=local")
        .tasks[1]
        .computing;
  };
  EXPECT_EQ(computing(2).ns, Seconds(1).ns);
  // Half a nanosecond for each byte.
  EXPECT_NEAR(static_cast<double>(computing(1).ns), 1e9 + 0.5 * 100 * kMiB, 1e6);
}

// Copies pass on from node to node what is still being written; each is late by little pieces.
TEST(Prediction, ChainsOfCopiesKeepUpWithTheWriter) {
  constexpr uint64_t kBytes = 10 * kMiB;
  Platform platform = BusyPlatform();
  platform.host.in_bytes_per_second = platform.host.out_bytes_per_second = 12'500'000;
  const double link_s = static_cast<double>(kBytes) / 12.5e6;
  for (const char* copies : {"2", "4"}) {
    const Workflow workflow =
        Broadcast(8, kBytes, {{"pattern", std::string("broadcast:") + copies}});
    const Prediction prediction = MustPredict(workflow, platform, "hosts=8,slots=1,manager=apart");
    ASSERT_FALSE(prediction.failure) << *prediction.failure;
    const double writing_s = static_cast<double>(prediction.tasks[0].writing.ns) / 1e9;
    EXPECT_GT(writing_s, link_s) << copies;
    EXPECT_LT(writing_s, 1.15 * link_s) << copies;
  }
}

}  // namespace
}  // namespace mosa::predict
