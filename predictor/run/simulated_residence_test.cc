#include "predictor/run/simulated_residence.h"

#include <gtest/gtest.h>

#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

constexpr int64_t kMiBOnLinkNs = 10 * (int64_t{1} << 20);

Prediction Predicted(const Workflow& workflow, const Platform& platform,
                     const std::string& configuration) {
  return MustPredict(workflow, platform, configuration, {.with_residence = true});
}

// Sums over all daemons of the kind. An empty peer means all peers.
DurationCounts Of(const Prediction& prediction, Daemon daemon, const std::string& name,
                  const std::string& peer = "") {
  DurationCounts times;
  for (const PredictedDaemon& each : prediction.daemons) {
    if (each.daemon != daemon) continue;
    for (const ResidenceRow& row : each.rows)
      if (row.name == name && (peer.empty() || row.peer == peer)) times.Add(row.times);
  }
  return times;
}

// One task makes a file; another, which waits for it, reads it on another host.
Workflow MakeAndRead(uint64_t bytes = 8 * kMiB) {
  return WorkflowMaker()
      .File("a", bytes)
      .File("b", 1)
      .Task("make", {}, {"a"}, Milliseconds(10))
      .Task("read", {"a"}, {"b"}, Milliseconds(10))
      .Build();
}

TEST(SimulatedResidenceTest, CountsEveryRequestThatBytesTakeAtBothEnds) {
  const Prediction prediction =
      Predicted(MakeAndRead(), PlainPlatform(), "hosts=2,slots=1,system=dss");
  // Every other chunk of 1 MiB is on the other node.
  const DurationCounts writes = Of(prediction, Daemon::kMount, "node.write");
  const DurationCounts served = Of(prediction, Daemon::kStorage, "write");
  EXPECT_EQ(writes.Count(), 4U);
  EXPECT_EQ(served.Count(), 4U);
  EXPECT_EQ(Of(prediction, Daemon::kStorage, "write.object").Count(), 4U);
  uint64_t remote = 0;
  for (const PredictedTask& task : prediction.tasks) remote += task.read_remote;
  const DurationCounts reads = Of(prediction, Daemon::kMount, "node.read");
  EXPECT_EQ(reads.Count(), remote / kMiB);
  EXPECT_EQ(Of(prediction, Daemon::kStorage, "read").Count(), reads.Count());
  // None is faster than its bytes cross the link. The asker also waits for the question's way.
  EXPECT_GE(served.sum_ns, 4 * static_cast<uint64_t>(kMiBOnLinkNs));
  EXPECT_GT(writes.sum_ns, served.sum_ns);
  EXPECT_GE(Of(prediction, Daemon::kStorage, "read").sum_ns,
            reads.Count() * static_cast<uint64_t>(kMiBOnLinkNs));
}

// The kernel flushes every file that is closed, also one in which there was nothing to read.
TEST(SimulatedResidenceTest, CountsTheCloseOfEveryFile) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kMiB}) {
    const Prediction prediction =
        Predicted(MakeAndRead(bytes), PlainPlatform(), "hosts=2,slots=1,system=dss");
    EXPECT_EQ(Of(prediction, Daemon::kMount, "fuse.flush").Count(), 3U) << bytes;
  }
}

TEST(SimulatedResidenceTest, NamesWhoAskedAndWhoWasAsked) {
  const Prediction prediction =
      Predicted(MakeAndRead(), PlainPlatform(), "hosts=2,slots=1,system=dss");
  for (const PredictedDaemon& daemon : prediction.daemons) {
    const std::string other = daemon.machine == MachineIndex{0} ? "h2" : "h1";
    for (const ResidenceRow& row : daemon.rows)
      if (row.name == "node.read" || row.name == "node.write" || row.name == "read" ||
          row.name == "write")
        EXPECT_EQ(row.peer, other) << row.name;
      else
        EXPECT_EQ(row.peer, "") << row.name;
  }
}

TEST(SimulatedResidenceTest, EveryCallOfTheManagerIsMeasuredByBothSides) {
  const Prediction prediction =
      Predicted(MakeAndRead(), BusyPlatform(), "hosts=2,slots=1,system=dss");
  uint64_t at_mounts = 0, at_manager = 0, decisions = 0;
  uint64_t waited_ns = 0, served_ns = 0, decided_ns = 0;
  for (const PredictedDaemon& daemon : prediction.daemons) {
    for (const ResidenceRow& row : daemon.rows) {
      if (row.name.starts_with("manager.")) {
        at_mounts += row.times.Count();
        waited_ns += row.times.sum_ns;
      } else if (row.name.ends_with(".core")) {
        decisions += row.times.Count();
        decided_ns += row.times.sum_ns;
      } else if (daemon.daemon == Daemon::kManager && row.name != "log") {
        at_manager += row.times.Count();
        served_ns += row.times.sum_ns;
      }
    }
  }
  EXPECT_GT(at_mounts, 0U);
  EXPECT_EQ(at_mounts, prediction.manager_calls);
  EXPECT_EQ(at_manager, at_mounts);
  EXPECT_EQ(decisions, at_mounts);
  EXPECT_GT(waited_ns, served_ns);
  EXPECT_GT(served_ns, decided_ns);
}

TEST(SimulatedResidenceTest, CopiesShowWhomTheyCameFrom) {
  const Prediction prediction =
      Predicted(MakeAndRead(), PlainPlatform(), "hosts=2,slots=1,system=dss,replicas=2");
  const uint64_t fetched = Of(prediction, Daemon::kStorage, "copy.read").Count();
  EXPECT_GT(fetched, 0U);
  EXPECT_GE(Of(prediction, Daemon::kStorage, "read").Count(), fetched);
}

TEST(SimulatedResidenceTest, LookingOnChangesNothing) {
  const Workflow workflow = Pipelines(6, 3 * kMiB);
  const Prediction looked = Predicted(workflow, BusyPlatform(), "hosts=3,slots=1");
  const Prediction blind = MustPredict(workflow, BusyPlatform(), "hosts=3,slots=1");
  EXPECT_EQ(looked.digest, blind.digest);
  EXPECT_EQ(looked.events, blind.events);
  EXPECT_FALSE(looked.daemons.empty());
  EXPECT_TRUE(blind.daemons.empty());
}

TEST(SimulatedResidenceTest, WhatIsStagedInIsNotCounted) {
  const Workflow workflow = WorkflowMaker()
                                .File("in", 8 * kMiB)
                                .File("out", 1)
                                .Task("read", {"in"}, {"out"}, Milliseconds(10))
                                .Build();
  const Prediction prediction =
      Predicted(workflow, Forgetful(PlainPlatform()), "hosts=2,slots=1,system=dss");
  EXPECT_EQ(Of(prediction, Daemon::kMount, "node.write").Count(), 0U);
  EXPECT_GT(Of(prediction, Daemon::kMount, "node.read").Count(), 0U);
}

}  // namespace
}  // namespace mosa::predict
