// Background work of nodes: checksums of objects that were written past their daemon.
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

// While a node computes checksums, a task on the same cores has less of them.
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

// Sealing is sequential: four objects leave three of four cores free.
TEST(Prediction, ANodeSealsOneObjectAfterTheOther) {
  WorkflowMaker maker;
  for (const char* name : {"a", "b", "c", "d"}) {
    maker.File(name, 100 * kMiB).Task(std::string("write ") + name, {}, {name});
    maker.Task(std::string("compute ") + name, {name}, {}, Seconds(1));
  }
  Platform platform = PlainPlatform();
  platform.host.cores = 5;
  for (const auto& task :
       MustPredict(maker.Build(), platform, "hosts=1,slots=4,placement=local").tasks)
    EXPECT_LE(task.computing.ns, Seconds(1).ns);
}

}  // namespace
}  // namespace mosa::predict
