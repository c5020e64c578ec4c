// Predictions of small workflows, compared with calculations by hand.
#include "predictor/run/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

TEST(Prediction, OfAPipelineOnOneHostIsTheSumOfItsParts) {
  WorkflowMaker maker;
  maker.File("a", 100 * kMiB).File("b", 50 * kMiB).File("c", 10 * kMiB);
  maker.Task("first", {}, {"a"}, Milliseconds(700));
  maker.Task("second", {"a"}, {"b"}, Milliseconds(20));
  maker.Task("third", {"b"}, {"c"}, Milliseconds(3));
  const Prediction prediction = MustPredict(maker.Build(), PlainPlatform(), "hosts=1");
  ASSERT_FALSE(prediction.failure) << *prediction.failure;
  const auto mib = static_cast<int64_t>(kMiB);
  const int64_t writing = (100 + 50 + 10) * mib;
  const int64_t reading = (100 + 50) * mib / 2;
  EXPECT_EQ(prediction.turnaround.ns, writing + reading + Milliseconds(723).ns);
  EXPECT_EQ(prediction.tasks[1].reading.ns, 50 * mib);
  EXPECT_EQ(prediction.tasks[1].computing.ns, Milliseconds(20).ns);
  EXPECT_EQ(prediction.tasks[1].writing.ns, 50 * mib);
  EXPECT_EQ(prediction.tasks[1].read_local, 100 * kMiB);
  ASSERT_EQ(prediction.machines.size(), 1U);
  EXPECT_EQ(prediction.machines[0].link, LinkBytes());
  EXPECT_EQ(prediction.machines[0].store_bytes_max, 160 * kMiB);
  ASSERT_EQ(prediction.stages.size(), 3U);
  EXPECT_EQ(prediction.stages[2].end.ns, prediction.turnaround.ns);
  EXPECT_EQ(prediction.computing.ns, Milliseconds(723).ns);
  EXPECT_EQ(prediction.stages[1].computing.ns, Milliseconds(20).ns);
}

TEST(Prediction, CountsTimeInWhichSeveralTasksComputeOnce) {
  WorkflowMaker maker;
  maker.Task("short", {}, {}, Milliseconds(100)).Task("long", {}, {}, Milliseconds(400));
  const Prediction prediction = MustPredict(maker.Build(), PlainPlatform(), "hosts=1");
  EXPECT_EQ(prediction.computing.ns, Milliseconds(400).ns);
  EXPECT_EQ(prediction.turnaround.ns, Milliseconds(400).ns);
}

// Every ready task has a core, so the slowest one counts. With fewer cores they share.
TEST(Prediction, SharesTheCoresOfAHost) {
  WorkflowMaker maker;
  for (const char* name : {"a", "b", "c", "d"}) maker.Task(name, {}, {}, Milliseconds(100));
  Platform platform = PlainPlatform();
  EXPECT_EQ(MustPredict(maker.Build(), platform, "hosts=1").turnaround.ns, Milliseconds(100).ns);
  EXPECT_EQ(MustPredict(maker.Build(), platform, "hosts=1,slots=1").turnaround.ns,
            Milliseconds(400).ns);
  platform.host.cores = 2;
  EXPECT_EQ(MustPredict(maker.Build(), platform, "hosts=1,slots=4").turnaround.ns,
            Milliseconds(200).ns);
  // The hosts of an emulated cluster share one machine.
  platform.shared_cores = 2;
  EXPECT_EQ(MustPredict(maker.Build(), platform, "hosts=4,slots=1").turnaround.ns,
            Milliseconds(200).ns);
  platform.host.speed = 2;
  EXPECT_EQ(MustPredict(maker.Build(), platform, "hosts=4,slots=1").turnaround.ns,
            Milliseconds(100).ns);
}

// Staging in does not count. Local reads use no link.
TEST(Prediction, AccountsForTheTimeThatPartsOfHostsAreBusy) {
  WorkflowMaker maker;
  maker.File("in", 100 * kMiB).File("out", 50 * kMiB);
  maker.Task("turn", {"in"}, {"out"}, Milliseconds(300));
  const double read_s = 100 * static_cast<double>(kMiB) / 1e8;
  const double written_s = 50 * static_cast<double>(kMiB) / 1e8;
  const Prediction apart =
      MustPredict(maker.Build(), Forgetful(PlainPlatform()), "hosts=1,storage=1");
  ASSERT_EQ(apart.machines.size(), 2U);
  const HostUse host = apart.machines[0].use;
  const HostUse node = apart.machines[1].use;
  EXPECT_DOUBLE_EQ(host.application_core_s, 0.3);
  EXPECT_NEAR(host.receiving_s, read_s, 1e-6);
  EXPECT_NEAR(host.sending_s, written_s, 1e-6);
  EXPECT_NEAR(node.sending_s, read_s, 1e-6);
  EXPECT_NEAR(node.receiving_s, written_s, 1e-6);
  EXPECT_EQ(host.store_core_s, 0);  // PlainPlatform's nodes and sockets cost nothing.
  Platform fast = PlainPlatform();
  fast.host.speed = 2;
  const Prediction together = MustPredict(maker.Build(), fast, "hosts=1");
  EXPECT_NEAR(together.machines[0].use.application_core_s, 0.15, 1e-9);
  // 0.5 ns to read a byte locally and 1 ns to write one, and sealing reads it once more; at twice
  // the speed.
  EXPECT_NEAR(together.machines[0].use.store_core_s,
              (100 * 0.25 + 50 * 0.5 + 50 * 0.25) * static_cast<double>(kMiB) / 1e9, 1e-6);
  EXPECT_EQ(together.machines[0].use.sending_s + together.machines[0].use.receiving_s, 0);
}

Workflow Writers(uint32_t count) {
  WorkflowMaker maker;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    maker.File("out." + n, 100 * kMiB);
    maker.Task("write_" + n, {}, {"out." + n});
  }
  return maker.Build();
}

TEST(Prediction, LetsWritersShareTheLinkOfTheirNode) {
  const double alone_s = 100.0 * static_cast<double>(kMiB) / 1e8;
  for (const uint32_t writers : {1U, 2U, 4U}) {
    const Prediction prediction =
        MustPredict(Writers(writers), PlainPlatform(),
                    "storage=1,slots=1,system=dss,hosts=" + std::to_string(writers));
    // The link is busy to the end; the first writer ends only a write-behind buffer ahead of the
    // last.
    const double all_s = alone_s * writers;
    EXPECT_NEAR(static_cast<double>(prediction.turnaround.ns) / 1e9, all_s, 0.01 * all_s);
    for (const PredictedTask& task : prediction.tasks)
      EXPECT_NEAR(static_cast<double>(task.end.ns) / 1e9, all_s, 0.1 * all_s) << writers;
    const PredictedMachine& node = prediction.machines.back();
    EXPECT_EQ(node.link.received, writers * 100 * kMiB);
    EXPECT_EQ(node.link.sent, 0U);
    EXPECT_EQ(node.store_bytes_max, writers * 100 * kMiB);
  }
}

// With stripes over two nodes, one writer is still bound by its own link. Two writers are no longer
// bound by one node's link.
TEST(Prediction, LetsNodesServeBesideEachOther) {
  const double alone_s = 100.0 * static_cast<double>(kMiB) / 1e8;
  const Prediction prediction =
      MustPredict(Writers(2), PlainPlatform(), "hosts=2,storage=2,slots=1,system=dss");
  for (const PredictedTask& task : prediction.tasks)
    EXPECT_NEAR(static_cast<double>(task.end.ns) / 1e9, alone_s, 0.1 * alone_s);
}

TEST(Prediction, ReadsWhatTheKernelHasWithoutTheNetwork) {
  WorkflowMaker maker;
  maker.File("in", 64 * kMiB).File("one", 1).File("two", 1);
  maker.Task("first", {"in"}, {"one"});
  maker.Task("second", {"in"}, {"two"});
  const Prediction prediction =
      MustPredict(maker.Build(), PlainPlatform(), "hosts=1,storage=1,slots=1");
  // Also the first: the host itself has staged it in.
  for (const PredictedTask& task : prediction.tasks) {
    EXPECT_EQ(task.read_cached, 64 * kMiB);
    EXPECT_EQ(task.read_remote, 0U);
  }
  EXPECT_EQ(prediction.machines[1].link.sent, 0U);
  Platform forgetful = PlainPlatform();
  forgetful.host.page_cache_bytes = 32 * kMiB;
  EXPECT_EQ(
      MustPredict(maker.Build(), forgetful, "hosts=1,storage=1,slots=1").machines[1].link.sent,
      128 * kMiB);
  const Prediction small =
      MustPredict(maker.Build(), PlainPlatform(), "hosts=1,storage=1,slots=1,h1.cache=32M");
  EXPECT_EQ(small.machines[1].link.sent, 128 * kMiB);
}

// By hand: 100 MiB over the slowest link that they cross.
TEST(Prediction, GoesByTheLinkOfEachHost) {
  const double alone_s = 100.0 * static_cast<double>(kMiB) / 1e8;
  const struct {
    const char* what;
    const char* configuration;
    double expected_s;
  } rows[] = {
      {"equal hosts", "hosts=1,storage=1", alone_s},
      {"the writer's link is slow", "hosts=1,storage=1,h1.out=25000000", 4 * alone_s},
      {"the way back is no matter", "hosts=1,storage=1,h1.in=25000000", alone_s},
      {"the node's link is slow", "hosts=1,storage=1,h2.link=25000000", 4 * alone_s},
      {"one of two nodes, which has half of the bytes", "hosts=1,storage=2,h3.in=10000000",
       5 * alone_s},
  };
  for (const auto& row : rows) {
    const Prediction prediction =
        MustPredict(Writers(1), PlainPlatform(), std::string("system=dss,") + row.configuration);
    ASSERT_FALSE(prediction.failure) << *prediction.failure;
    EXPECT_NEAR(static_cast<double>(prediction.turnaround.ns) / 1e9, row.expected_s,
                0.01 * row.expected_s)
        << row.what;
  }
}

TEST(Prediction, RefusesWhatIsComputedForLongerThanCanBeCounted) {
  WorkflowMaker maker;
  maker.Task("long", {}, {}, Seconds(7200));
  const auto slow = ParseConfiguration("hosts=2,h2.speed=0.001");
  ASSERT_TRUE(slow.ok()) << slow.status();
  const auto refused = Predict(maker.Build(), PlainPlatform(), *slow);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(MessageOf(refused.status()).find("a host has speed 0.001: a prediction covers at most"),
            std::string::npos)
      << refused.status();
}

TEST(Prediction, GoesByTheProcessorsOfEachHost) {
  const struct {
    const char* what;
    const char* configuration;
    int64_t expected_ms;
  } rows[] = {
      {"two on one host, one on the other", "hosts=2,slots=1", 200},
      {"that one takes as long", "hosts=2,slots=1,h2.speed=0.5", 200},
      {"that one takes longer", "hosts=2,slots=1,h2.speed=0.25", 400},
      {"a task on each core", "hosts=2,h1.cores=1,h2.cores=2", 100},
      {"a core too few", "hosts=2,h1-2.cores=1", 200},
      {"the next one on the faster host", "hosts=2,slots=1,h1.speed=0.5", 200},
  };
  WorkflowMaker maker;
  for (const char* name : {"a", "b", "c"}) maker.Task(name, {}, {}, Milliseconds(100));
  for (const auto& row : rows)
    EXPECT_EQ(MustPredict(maker.Build(), PlainPlatform(), row.configuration).turnaround.ns,
              Milliseconds(row.expected_ms).ns)
        << row.what;
}

TEST(Predict, TasksShareTheMemoryOfTheirHost) {
  WorkflowMaker maker;
  for (int i = 0; i < 4; ++i) maker.Task("t" + std::to_string(i), {}, {}, Seconds(1));
  Workflow workflow = maker.Build();
  for (Task& task : workflow.tasks) task.needs.memory_bytes = uint64_t{3} << 30;
  const auto seconds = [&](const char* configuration) {
    return MustPredict(workflow, PlainPlatform(), configuration).turnaround.ns / 1'000'000'000;
  };
  EXPECT_EQ(seconds("hosts=1"), 1);
  EXPECT_EQ(seconds("hosts=1,memory=7G"), 2);
  EXPECT_EQ(seconds("hosts=1,memory=4G"), 4);
  EXPECT_EQ(seconds("hosts=2,memory=4G,h2.memory=12G"), 1);
  const auto refused = Predict(workflow, PlainPlatform(), *ParseConfiguration("hosts=2,memory=2G"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message().substr(0, 79),
            "task 't0' needs 3.0 GiB of memory, and no host has more than 2.0 GiB for tasks:");
}

// A stream has four fetches from one node in flight, which keeps the link full.
TEST(Prediction, ReadsAtTheRateOfTheLink) {
  WorkflowMaker maker;
  maker.File("in", 200 * kMiB);
  maker.Task("read", {"in"}, {});
  for (const char* configuration : {"hosts=1,storage=1", "hosts=1,storage=4"}) {
    const Prediction prediction =
        MustPredict(maker.Build(), Forgetful(BusyPlatform()), configuration);
    const double link_s = 200.0 * static_cast<double>(kMiB) / 1e8;
    EXPECT_NEAR(static_cast<double>(prediction.tasks[0].reading.ns) / 1e9, link_s, 0.05 * link_s)
        << configuration;
  }
}

TEST(Prediction, KnowsWhichPatternsHintsHelp) {
  const struct {
    const char* what;
    Workflow workflow;
    // Limits, relative to what the default configuration takes.
    double wass_at_least;
    double wass_at_most;
  } rows[] = {
      {"pipeline", Pipelines(8, 20 * kMiB), 0.2, 0.7},
      {"reduce", Reduce(8, 20 * kMiB), 0.2, 0.95},
      // A striped file is already read from all nodes at once, so copies gain less.
      {"broadcast", Broadcast(8, 20 * kMiB), 0.5, 0.95},
  };
  for (const auto& row : rows) {
    const Prediction dss = MustPredict(row.workflow, BusyPlatform(), "hosts=8,slots=1,system=dss");
    const Prediction wass = MustPredict(row.workflow, BusyPlatform(), "hosts=8,slots=1");
    ASSERT_FALSE(dss.failure || wass.failure) << row.what;
    const double ratio =
        static_cast<double>(wass.turnaround.ns) / static_cast<double>(dss.turnaround.ns);
    EXPECT_GT(ratio, row.wass_at_least) << row.what;
    EXPECT_LT(ratio, row.wass_at_most) << row.what;
  }
}

TEST(Prediction, RepeatsItselfExactly) {
  const Workflow workflow = Pipelines(12, 3 * kMiB);
  for (const char* configuration : {"hosts=5", "hosts=5,system=dss", "hosts=3,storage=2,slots=2"}) {
    const Prediction one = MustPredict(workflow, BusyPlatform(), configuration);
    const Prediction two = MustPredict(workflow, BusyPlatform(), configuration);
    EXPECT_EQ(one.digest, two.digest) << configuration;
    EXPECT_EQ(one.turnaround.ns, two.turnaround.ns) << configuration;
  }
  EXPECT_NE(MustPredict(workflow, BusyPlatform(), "hosts=5").digest,
            MustPredict(workflow, BusyPlatform(), "hosts=5,seed=2").digest);
}

TEST(Prediction, OfAFullStoreSaysWhoFailsWhereAndWhen) {
  const Prediction prediction =
      MustPredict(Writers(3), PlainPlatform(), "hosts=1,storage=1,slots=1,store=256M");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find("fails on h1 at"), std::string::npos) << *prediction.failure;
  EXPECT_NE(prediction.failure->find(" full: '"), std::string::npos) << *prediction.failure;
  EXPECT_GT(prediction.failed_at.ns, 0);
  EXPECT_LE(prediction.failed_at.ns, prediction.turnaround.ns);
}

// Times count from the beginning of staging in, since nothing has run yet.
TEST(Prediction, OfAStoreThatIsFullBeforeTheRunSaysWhen) {
  WorkflowMaker maker;
  maker.File("in", 100 * kMiB).Task("read", {"in"}, {});
  const Prediction prediction = MustPredict(maker.Build(), PlainPlatform(), "hosts=1,store=64M");
  ASSERT_TRUE(prediction.failure);
  // 64 MiB are written; then the manager is asked again for 600 ms.
  EXPECT_NE(prediction.failure->find("staging 'in' in fails on h1 at 0.66"), std::string::npos)
      << *prediction.failure;
  EXPECT_EQ(prediction.turnaround, prediction.failed_at);
  EXPECT_FALSE(prediction.tasks[0].ran);
}

// Nothing more starts, but running tasks go on to their end.
TEST(Prediction, OfAFailedRunHasTasksThatEnd) {
  WorkflowMaker maker;
  maker.File("one", 20 * kMiB).File("two", 20 * kMiB).File("small", 1000).File("vast", 400 * kMiB);
  maker.Task("fail", {}, {"vast"});
  maker.Task("go", {"one", "two"}, {"small"}, Seconds(3));
  maker.Task("never", {"small"}, {});
  Platform slow = PlainPlatform();
  slow.client.passthrough_read.ns_per_byte = slow.client.local_read.ns_per_byte = 100;
  const Prediction prediction =
      MustPredict(maker.Build(), slow, "hosts=1,slots=2,store=256M,system=dss");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find("'fail' fails on h1"), std::string::npos);
  const PredictedTask& task = prediction.tasks[1];
  EXPECT_LT(prediction.failed_at.ns, (task.start + task.reading).ns / 2);
  EXPECT_EQ(task.read_local, 40 * kMiB);
  EXPECT_EQ(task.computing.ns, Seconds(3).ns);
  EXPECT_EQ(task.written, 1000U);
  EXPECT_EQ(prediction.turnaround.ns, task.end.ns);
  EXPECT_FALSE(prediction.tasks[2].ran);
}

// Waiting tasks do not stop time when nothing starts any more.
TEST(Prediction, EndsWhenARunFailsWhileTasksWaitForANearerHost) {
  WorkflowMaker maker;
  for (const char* n : {"1", "2", "3"}) {
    maker.File(std::string("in.") + n, 50 * kMiB);
    maker.Task(std::string("turn.") + n, {std::string("in.") + n}, {}, Seconds(10));
  }
  maker.File("vast", 400 * kMiB).Task("fail", {}, {"vast"});
  const Prediction prediction =
      MustPredict(maker.Build(), PlainPlatform(), "hosts=2,slots=1,store=256M,placement=local");
  ASSERT_TRUE(prediction.failure);
  EXPECT_NE(prediction.failure->find("'fail'"), std::string::npos) << *prediction.failure;
  EXPECT_GE(prediction.turnaround.ns, Seconds(10).ns);  // Running tasks go on to their end.
}

TEST(Prediction, NeedsFiguresThatCanBe) {
  const struct {
    Workflow workflow;
    const char* expected;
  } rows[] = {
      {WorkflowMaker().Task("write", {}, {"unknown"}).Build(), "'unknown' has no size"},
      {WorkflowMaker().File("vast", UINT64_MAX).Task("write", {}, {"vast"}).Build(),
       "'vast' has 18446744073709551615 B"},
      {WorkflowMaker().Task("long", {}, {}, Seconds(2'000'000)).Build(),
       "task 'long' runs for 2000000 s"},
  };
  for (const auto& row : rows) {
    const auto prediction = Predict(row.workflow, PlainPlatform(), {});
    ASSERT_FALSE(prediction.ok()) << row.expected;
    EXPECT_NE(MessageOf(prediction.status()).find(row.expected), std::string::npos)
        << prediction.status();
  }
}

// Small files stay with the manager: they cross no link and fill no node.
TEST(Prediction, KeepsSmallFilesWithTheManager) {
  WorkflowMaker maker;
  for (int i = 0; i < 20; ++i) {
    maker.File("small." + std::to_string(i), 4000);
    maker.Task("write_" + std::to_string(i), {}, {"small." + std::to_string(i)});
  }
  const Prediction prediction =
      MustPredict(maker.Build(), BusyPlatform(), "hosts=2", {.with_layouts = true});
  ASSERT_EQ(prediction.files.size(), 20U);
  for (const PredictedFile& file : prediction.files) EXPECT_TRUE(file.is_inline);
  EXPECT_EQ(prediction.machines[1].link.sent, 0U);
  EXPECT_EQ(prediction.machines[1].store_bytes_max, 0U);
}

// One node sends a short file to all. A long file crosses every link once, and the chain's last
// node ends soon after its first.
TEST(Prediction, PassesLongFilesThroughAChainOfNodes) {
  const auto predict = [](uint64_t bytes, uint32_t copies) {
    WorkflowMaker maker;
    maker.File("all", bytes, {{"pattern", "broadcast:" + std::to_string(copies)}});
    maker.Task("write", {}, {"all"});
    return MustPredict(maker.Build(), PlainPlatform(), "hosts=8,slots=1");
  };
  const auto sent_most = [](const Prediction& prediction) {
    uint64_t most = 0;
    for (const PredictedMachine& machine : prediction.machines)
      most = std::max(most, machine.link.sent);
    return most;
  };
  EXPECT_EQ(sent_most(predict(100'000, 8)), 7 * 100'000u);
  const Prediction two = predict(20 * kMiB, 2), all = predict(20 * kMiB, 8);
  EXPECT_EQ(sent_most(two), 20 * kMiB);
  EXPECT_EQ(sent_most(all), 20 * kMiB);
  EXPECT_GT(all.turnaround, two.turnaround);
  EXPECT_LT(all.turnaround.ns, two.turnaround.ns * 3 / 2);
}

// Nodes make copies over their own links. A close waits for them if the file asks for that.
TEST(Prediction, MakesCopiesOverTheLinksOfNodes) {
  const auto predict = [](const HintMap& hints) {
    WorkflowMaker maker;
    maker.File("all", 50 * kMiB, hints).Task("write", {}, {"all"});
    return MustPredict(maker.Build(), PlainPlatform(), "hosts=3,slots=1");
  };
  const Prediction one = predict({});
  const Prediction three = predict({{"replicas", "3"}, {"ack", "pessimistic"}});
  ASSERT_FALSE(one.failure || three.failure);
  uint64_t stored = 0, sent = 0, sent_once = 0;
  for (size_t i = 0; i < 3; ++i) {
    stored += three.machines[i].store_bytes_max;
    sent += three.machines[i].link.sent;
    sent_once += one.machines[i].link.sent;
  }
  EXPECT_EQ(stored, 3 * 50 * kMiB);
  EXPECT_EQ(sent, sent_once + 2 * 50 * kMiB);
  // The nodes copy in parallel, each at most at its link's rate.
  EXPECT_GT(three.turnaround.ns, one.turnaround.ns + static_cast<int64_t>(25 * kMiB) * 10);
}

// A node takes no copy beyond its limit.
TEST(Prediction, MakesNoCopiesThatDoNotFit) {
  for (const char* ack : {"optimistic", "pessimistic"}) {
    WorkflowMaker maker;
    maker.Task("wait", {"out.1"}, {}, Seconds(20));
    for (const char* n : {"1", "2"}) {
      maker.File(std::string("out.") + n, 20 * kMiB,
                 {{"replicas", "2"}, {"ack", ack}, {"placement", "local"}});
      maker.Task(std::string("write.") + n, {}, {std::string("out.") + n});
    }
    const Prediction prediction =
        MustPredict(maker.Build(), BusyPlatform(), "hosts=2,slots=1,store=32M");
    uint64_t stored = 0;
    for (const PredictedMachine& machine : prediction.machines) {
      EXPECT_LE(machine.store_bytes_max, 32 * kMiB) << ack;
      stored += machine.store_bytes_max;
    }
    ASSERT_FALSE(prediction.failure) << *prediction.failure;
    EXPECT_GT(stored, 44 * kMiB) << ack;  // Something was copied.
  }
}

// A close stops waiting when copying makes no progress, not when much is left.
TEST(Prediction, WaitsForALongCopy) {
  WorkflowMaker maker;
  maker.File("all", 4096 * kMiB,
             {{"replicas", "2"}, {"ack", "pessimistic"}, {"placement", "local"}});
  maker.Task("write", {}, {"all"});
  const Prediction prediction = MustPredict(maker.Build(), PlainPlatform(), "hosts=2");
  ASSERT_FALSE(prediction.failure) << *prediction.failure;
  EXPECT_GT(prediction.turnaround.ns, static_cast<int64_t>(4096 * kMiB) * 10);
  EXPECT_EQ(prediction.machines[1].store_bytes_max, 4096 * kMiB);
}

TEST(Prediction, OfManyHostsInOneDirectoryRecallsAndGoesOn) {
  WorkflowMaker maker;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    maker.File("d/x/" + n, 100'000).File("d/y/" + n, 1000);
    maker.Task("write_" + n, {}, {"d/x/" + n, "d/y/" + n}, Milliseconds(5));
    maker.Task("read_" + n, {"d/x/" + n, "d/y/" + n}, {}, Milliseconds(5));
  }
  for (const char* configuration : {"hosts=6,slots=2", "hosts=6,slots=2,system=dss",
                                    "hosts=1,slots=4,manager=apart", "hosts=3,storage=2"}) {
    const Prediction prediction = MustPredict(maker.Build(), BusyPlatform(), configuration);
    ASSERT_FALSE(prediction.failure) << configuration << ": " << *prediction.failure;
    for (const PredictedTask& task : prediction.tasks) EXPECT_TRUE(task.ran);
  }
}

// ---- synthetic workflows

Prediction AnyStages(const char* text, const char* configuration, const Platform& platform) {
  auto options = ParseSynthetic(text);
  EXPECT_TRUE(options.ok()) << options.status();
  const auto parsed = ParseConfiguration(configuration);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  options->width = parsed->hosts;
  auto prediction = PredictStages(MakeSynthetic(*options), platform, *parsed);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return *std::move(prediction);
}
Prediction Stages(const char* text, const char* configuration, const Platform& platform) {
  Prediction prediction = AnyStages(text, configuration, platform);
  EXPECT_FALSE(prediction.failure) << *prediction.failure;
  return prediction;
}

uint64_t ReadRemotely(const Prediction& prediction) {
  uint64_t bytes = 0;
  for (const PredictedTask& task : prediction.tasks) bytes += task.read_remote;
  return bytes;
}

TEST(Stages, PipelinesFindTheirInputWhereItWasStagedIn) {
  const Prediction wass =
      Stages("pipeline,medium,scale=0.1", "hosts=4,slots=1,manager=apart", BusyPlatform());
  ASSERT_EQ(wass.stages.size(), 3u);
  EXPECT_EQ(wass.stages.front().name, "stage-1");
  EXPECT_EQ(ReadRemotely(wass), 0u);
  for (const PredictedMachine& machine : wass.machines) EXPECT_EQ(machine.link.sent, 0u);
  const Prediction dss =
      Stages("pipeline,medium,scale=0.1", "hosts=4,slots=1,manager=apart,system=dss",
             Forgetful(BusyPlatform()));
  EXPECT_GT(ReadRemotely(dss), 130'000'000u);
  EXPECT_GT(dss.turnaround, wass.turnaround);
}

TEST(Stages, RegionsAreReadAndWrittenWhereTheyLie) {
  // 10,002,432 B a region, of which the first writer keeps its own.
  const char* const configuration = "hosts=4,slots=1,manager=apart";
  const Prediction scatter = Stages("scatter,medium,scale=0.1", configuration, BusyPlatform());
  for (const PredictedTask& task : scatter.tasks) EXPECT_TRUE(task.ran);
  // Each region but one must go to its host. The kernel reads ahead past a region's end into the
  // next one, up to its window.
  uint64_t sent = 0;
  for (const PredictedMachine& machine : scatter.machines) sent += machine.link.sent;
  EXPECT_GT(sent, 30'007'296u + 2'000'000);
  EXPECT_LT(sent, 30'007'296u + 3 * 5'000'000);
  const Prediction gather = Stages("gather,medium,scale=0.1", configuration, BusyPlatform());
  // Nodes send whole checksum blocks, which regions begin and end within.
  EXPECT_GE(gather.machines[0].link.received, 30'007'296u);
  EXPECT_LE(gather.machines[0].link.received, 30'007'296u + 3 * 2 * kChecksumBlockBytes);
  EXPECT_EQ(ReadRemotely(gather), 30'007'296u);
  const Prediction spread =
      Stages("gather,medium,scale=0.1", "hosts=4,slots=1,manager=apart,system=dss", BusyPlatform());
  EXPECT_GT(spread.machines[0].link.received, 30'007'296u);
}

// Like whole files.
TEST(Stages, RegionsAskAgainForRoomBeforeTheyFail) {
  const Prediction prediction = AnyStages(
      "gather,medium,scale=0.1", "hosts=4,slots=1,manager=apart,h2.store=5M", BusyPlatform());
  ASSERT_TRUE(prediction.failure);
  ASSERT_TRUE(prediction.full) << *prediction.failure;
  EXPECT_EQ(prediction.full->nodes, std::vector<std::string>{"h2"}) << *prediction.failure;
  Duration longest;
  for (const PredictedTask& task : prediction.tasks) longest = std::max(longest, task.writing);
  EXPECT_GE(longest, Milliseconds(600)) << *prediction.failure;
}

TEST(Stages, ComputingIsAProgramsOwnTime) {
  const char* const configuration = "hosts=4,slots=1,manager=apart";
  const Prediction without = Stages("reduce,small", configuration, BusyPlatform());
  const Prediction with = Stages("reduce,small,compute=0.5", configuration, BusyPlatform());
  EXPECT_NEAR(static_cast<double>((with.turnaround - without.turnaround).ns), 1e9, 2e6);
  // Four tasks make 10 KB each at the same time, then one makes 100 KB.
  const Prediction making = Stages("reduce,small,make=1000", configuration, BusyPlatform());
  EXPECT_NEAR(static_cast<double>((making.turnaround - without.turnaround).ns), 110e6, 2e6);
}

}  // namespace
}  // namespace mosa::predict
