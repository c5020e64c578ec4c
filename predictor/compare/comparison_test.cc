#include "predictor/compare/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "predictor/compare/compare_fixture.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

constexpr uint32_t kDraws = 40;

// Tasks that use the parts of a cluster in different proportions.
Workflow Mixed(double computing = 1) {
  WorkflowMaker maker;
  const auto compute = [computing](int64_t ms) {
    return Nanoseconds(static_cast<int64_t>(static_cast<double>(ms) * 1e6 * computing));
  };
  std::vector<std::vector<std::string>> parts(4);
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    maker.File("a." + n, 12 * kMiB).File("b." + n, (2 + i % 3) * kMiB);
    maker.Task("make_" + n, {}, {"a." + n}, compute(100 + 20 * (i % 4)));
    maker.Task("turn_" + n, {"a." + n}, {"b." + n}, compute(250));
    parts[i % 4].push_back("b." + n);
  }
  for (uint32_t i = 0; i < 8; ++i) {
    std::vector<std::string> notes;
    for (uint32_t k = 0; k < 20; ++k) {
      notes.push_back(fmt::format("notes/{}.{}", i, k));
      maker.File(notes.back(), 100);
    }
    maker.Task("note_" + std::to_string(i), {}, notes, compute(30));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    maker.File("sum." + std::to_string(i), kMiB);
    maker.Task("sum_" + std::to_string(i), parts[i], {"sum." + std::to_string(i)}, compute(400));
  }
  return maker.Build();
}

SeenRun Simulated(const Workflow& workflow, const Platform& platform, uint64_t seed,
                  const std::string& deployment = kDeployment) {
  auto configuration = ParseConfiguration(deployment);
  EXPECT_TRUE(configuration.ok()) << configuration.status();
  configuration->seed = seed;
  const auto prediction = Predict(workflow, platform, *configuration, {.with_layouts = true});
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return SeenOf(workflow, *prediction, platform, kHosts);
}

// A run of a cluster with the figures of draw `seed`; `repeat` numbers its runs.
SeenRun Drawn(const Workflow& workflow, const Platform& platform, uint64_t seed,
              uint64_t repeat = 0, const std::string& deployment = kDeployment) {
  SeenRun run = Simulated(workflow, Perturbed(platform, seed), seed + 1000 * repeat, deployment);
  run.factor = ModelFactor(platform, seed);
  run.name = fmt::format("run-{}", repeat + 1);
  return run;
}

std::vector<SeenRun> Draws(const Workflow& workflow, const std::string& deployment = kDeployment) {
  std::vector<SeenRun> draws;
  for (uint64_t seed = 1; seed <= kDraws; ++seed)
    draws.push_back(Drawn(workflow, Known(), seed, 0, deployment));
  return draws;
}

// The same run with tasks that take `more` seconds longer; the order of tasks stays.
SeenRun Replayed(const Workflow& workflow, const SeenRun& run,
                 const std::function<double(const SeenTask&)>& more) {
  SeenRun replayed = run;
  std::vector<size_t> order(run.tasks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return run.tasks[a].start < run.tasks[b].start; });
  for (const size_t i : order) {
    const SeenTask& task = run.tasks[i];
    Duration could, could_now;
    const auto follow = [&](size_t before) {
      could = std::max(could, run.tasks[before].end);
      could_now = std::max(could_now, replayed.tasks[before].end);
    };
    for (const TaskIndex before : workflow.tasks[i].predecessors) follow(before.value);
    for (size_t k = 0; k < run.tasks.size(); ++k)
      if (run.tasks[k].host == task.host && run.tasks[k].end <= task.start) follow(k);
    replayed.tasks[i].start = could_now + (task.start - could);
    replayed.tasks[i].end = replayed.tasks[i].start + (task.end - task.start) +
                            Nanoseconds(static_cast<int64_t>(more(task) * 1e9));
  }
  return replayed;
}

double OverTheLinkOf(const std::string& name, const SeenTask& task) {
  const bool here = kHosts[task.host.value] == name;
  double bytes = 0;
  for (const BytesByNodeName* found : {&task.read, &task.written})
    for (const auto& [node, count] : *found)
      if (here != (node == name)) bytes += static_cast<double>(count);
  return bytes;
}

CompareOptions Options() { return {.slots = 1, .link_bytes_per_second = 100'000'000}; }

const ComparedCell* Find(const Comparison& comparison, Level level, const std::string& name) {
  for (const ComparedCell& cell : comparison.cells)
    if (cell.cell == CellName{level, name}) return &cell;
  return nullptr;
}
const Anomaly* FindAnomaly(const Comparison& comparison, Level level, const std::string& name) {
  for (const Anomaly& anomaly : comparison.anomalies)
    if (comparison.cells[anomaly.cell].cell == CellName{level, name}) return &anomaly;
  return nullptr;
}
std::string Said(const Comparison& comparison) {
  std::string said;
  for (const Anomaly& anomaly : comparison.anomalies)
    said += anomaly.sentence + " " + anomaly.cause + " Open first: " + anomaly.open_first + "\n";
  for (const Blame& blame : comparison.blamed)
    said += fmt::format("  {} {} {:.3f} {:.3g}\n", ToText(blame.suspect.part), blame.suspect.host,
                        blame.explained, blame.factor);
  return said;
}

class CompareTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    workflow_ = new Workflow(Mixed());
    draws_ = new std::vector<SeenRun>(Draws(*workflow_));
  }
  static void TearDownTestSuite() {
    delete workflow_;
    delete draws_;
  }
  static const Workflow& workflow() { return *workflow_; }
  static const std::vector<SeenRun>& draws() { return *draws_; }
  static Comparison CompareWith(const std::vector<SeenRun>& runs,
                                const CompareOptions& options = Options()) {
    return Compare(workflow(), draws(), runs, options);
  }
  // Three runs of one healthy cluster, each changed.
  static std::vector<SeenRun> Runs(const std::function<SeenRun(const SeenRun&)>& change) {
    std::vector<SeenRun> runs;
    for (uint64_t repeat = 0; repeat < 3; ++repeat)
      runs.push_back(change(Drawn(workflow(), Known(), 777, repeat)));
    return runs;
  }

 private:
  static Workflow* workflow_;
  static std::vector<SeenRun>* draws_;
};
Workflow* CompareTest::workflow_ = nullptr;
std::vector<SeenRun>* CompareTest::draws_ = nullptr;

TEST_F(CompareTest, RaisesNoAlarmForCleanRuns) {
  int alarms_of_one = 0, alarms_of_three = 0;
  std::string said;
  for (uint64_t seed = 5001; seed <= 5100; ++seed) {
    std::vector<SeenRun> runs;
    for (uint64_t repeat = 0; repeat < 3; ++repeat)
      runs.push_back(Drawn(workflow(), Known(), seed, repeat));
    const Comparison three = CompareWith(runs);
    const Comparison one = CompareWith({runs.front()});
    alarms_of_one += one.anomalies.empty() ? 0 : 1;
    alarms_of_three += three.anomalies.empty() ? 0 : 1;
    if (!one.anomalies.empty() || !three.anomalies.empty())
      said += fmt::format("seed {}:\n{}{}", seed, Said(one), Said(three));
  }
  EXPECT_LE(alarms_of_one, 1) << said;
  EXPECT_LE(alarms_of_three, 1) << said;
}

// Which part is blamed first for which change.
TEST_F(CompareTest, BlamesThePartThatIsSlow) {
  struct Row {
    const char* name;
    std::function<SeenRun(const SeenRun&)> change;
    Suspect suspect;
  };
  const auto slow = [&](const std::function<double(const SeenTask&)>& more) {
    return [&, more](const SeenRun& run) { return Replayed(workflow(), run, more); };
  };
  const Row rows[] = {
      {"host",
       slow([](const SeenTask& task) {
         return kHosts[task.host.value] == "h3" ? SecondsOf(task.end - task.start) : 0;
       }),
       {Part::kHost, "h3"}},
      {"processor",
       slow([](const SeenTask& task) {
         return kHosts[task.host.value] == "h1" ? 2 * SecondsOf(task.computing) : 0;
       }),
       {Part::kProcessor, "h1"}},
      {"link",
       slow([](const SeenTask& task) { return OverTheLinkOf("h2", task) * 7 / 1e8; }),
       {Part::kLink, "h2"}},
      {"storage node",
       slow([](const SeenTask& task) {
         double bytes = 0;
         for (const BytesByNodeName* found : {&task.read, &task.written})
           if (found->contains("h4")) bytes += static_cast<double>(found->at("h4"));
         return bytes * 2e-7;
       }),
       {Part::kNode, "h4"}},
      {"computing",
       slow([](const SeenTask& task) { return SecondsOf(task.computing); }),
       {Part::kComputing, ""}},
      {"launch", slow([](const SeenTask&) { return 0.4; }), {Part::kLaunch, ""}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Comparison comparison = CompareWith(Runs(row.change));
    ASSERT_FALSE(comparison.blamed.empty());
    EXPECT_EQ(comparison.blamed.front().suspect, row.suspect) << Said(comparison);
    EXPECT_GT(comparison.blamed.front().explained, 0.8) << Said(comparison);
    ASSERT_FALSE(comparison.anomalies.empty());
    EXPECT_TRUE(comparison.anomalies.front().slower);
    EXPECT_EQ(comparison.anomalies.front().shown_in.size(), 3U) << Said(comparison);
    EXPECT_EQ(comparison.anomalies.front().since, "run-1");
    const Anomaly* host = FindAnomaly(comparison, Level::kHost, row.suspect.host);
    if (host != nullptr) {
      EXPECT_EQ(host->blamed.front().suspect, row.suspect) << host->cause;
    }
  }
}

// The simulator itself, on a platform that differs from the predicted one.
TEST_F(CompareTest, BlamesWhatIsSlowEverywhere) {
  Platform manager = Known(), links = Known();
  manager.manager.make.ns_per_call = manager.manager.commit.ns_per_call = 15e6;
  manager.manager.open.ns_per_call = manager.manager.lookup.ns_per_call = 15e6;
  links.host.in_bytes_per_second = links.host.out_bytes_per_second = 20'000'000;
  const struct {
    const char* name;
    Platform platform;
    std::vector<Part> parts;
  } rows[] = {{"manager", manager, {Part::kManager}},
              {"network", links, {Part::kNetwork, Part::kMounts}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<SeenRun> runs;
    for (uint64_t repeat = 0; repeat < 3; ++repeat)
      runs.push_back(Drawn(workflow(), row.platform, 778, repeat));
    const Comparison comparison = CompareWith(runs);
    ASSERT_FALSE(comparison.anomalies.empty());
    ASSERT_FALSE(comparison.blamed.empty());
    EXPECT_GT(
        std::count(row.parts.begin(), row.parts.end(), comparison.blamed.front().suspect.part), 0)
        << Said(comparison);
    EXPECT_NE(FindAnomaly(comparison, Level::kWorkflow, workflow().name), nullptr)
        << Said(comparison);
  }
}

TEST_F(CompareTest, SaysThatTheRunnerIsLate) {
  Platform late = Known();
  late.runner.dispatch.ns_per_call = 150e6;
  const Comparison comparison = CompareWith({Drawn(workflow(), late, 779)});
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kWorkflow, workflow().name);
  ASSERT_NE(anomaly, nullptr) << Said(comparison);
  EXPECT_EQ(anomaly->cause, "The time is lost between tasks, not in them.");
  EXPECT_NE(anomaly->open_first.find("'mosa run'"), std::string::npos) << anomaly->open_first;
}

TEST_F(CompareTest, SaysThatFilesLieElsewhere) {
  const std::string hinted = "hosts=4,slots=1,manager=apart,system=wass";
  const auto draws = Draws(workflow(), hinted);
  const Comparison comparison =
      Compare(workflow(), draws, {Drawn(workflow(), Known(), 780)}, Options());
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kWorkflow, workflow().name);
  ASSERT_NE(anomaly, nullptr) << Said(comparison);
  EXPECT_NE(anomaly->cause.find("files lie elsewhere"), std::string::npos) << anomaly->cause;
  EXPECT_NE(anomaly->open_first.find("mosa where"), std::string::npos) << anomaly->open_first;
  const auto off = std::count_if(comparison.link_bytes.begin(), comparison.link_bytes.end(),
                                 [](const ComparedBytes& bytes) { return bytes.off; });
  EXPECT_GT(off, 0);
}

// Also for a node that no draw writes to, and for one that no run wrote to.
TEST_F(CompareTest, SaysThatOneNodeHasWhatOthersShouldHave) {
  const auto without = [](const std::string& from, const std::string& to, SeenRun run) {
    for (SeenTask& task : run.tasks)
      if (const auto held = task.written.extract(from); !held.empty())
        task.written[to] += held.mapped();
    return run;
  };
  const auto moved = [&](double more) {
    std::vector<SeenRun> draws_without;
    for (const SeenRun& draw : draws()) draws_without.push_back(without("h2", "h1", draw));
    SeenRun run = without("h1", "h2", draws_without.front());
    run = Replayed(workflow(), run, [more](const SeenTask&) { return more; });
    return Compare(workflow(), draws_without, {run}, Options());
  };
  const Comparison comparison = moved(0.15);
  std::map<std::string, ComparedBytes> nodes;
  for (const ComparedBytes& node : comparison.node_bytes) nodes[node.name] = node;
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes["h2"].predicted, 0);
  EXPECT_TRUE(nodes["h2"].off && nodes["h2"].more > 0);
  EXPECT_TRUE(nodes["h1"].off && nodes["h1"].more < 0);
  EXPECT_FALSE(nodes["h3"].off || nodes["h4"].off);
  ASSERT_FALSE(comparison.anomalies.empty());
  const Anomaly& first = comparison.anomalies.front();
  EXPECT_NE(
      first.cause.find("lie on h2, predicted 0 B to 0 B: files lie elsewhere than predicted."),
      std::string::npos)
      << first.cause;
  // Moving takes far less time than the deviation.
  for (const Anomaly& anomaly : moved(60).anomalies)
    EXPECT_EQ(anomaly.cause.find("files lie elsewhere"), std::string::npos) << anomaly.cause;
}

// By shares of all bytes; runs whose records lack chunk sizes are not compared.
TEST_F(CompareTest, SaysOnceThatFilesAreInOtherChunks) {
  SeenRun run = Drawn(workflow(), Known(), 781);
  ASSERT_EQ(run.bytes_by_chunk.size(), 1U);
  const auto [chunk_bytes, bytes] = *run.bytes_by_chunk.begin();
  const auto with = [&](std::map<uint64_t, uint64_t> chunks) {
    run.bytes_by_chunk = std::move(chunks);
    return CompareWith({run});
  };
  EXPECT_EQ(with({{chunk_bytes, 3 * bytes}}).other_chunks, "");
  EXPECT_EQ(with({{chunk_bytes, bytes - bytes / 20}, {64 << 10, bytes / 20}}).other_chunks, "");
  EXPECT_TRUE(with({}).chunks.empty());
  const Comparison comparison = with({{chunk_bytes, bytes - bytes / 4}, {64 << 10, bytes / 4}});
  EXPECT_EQ(comparison.chunks.size(), 2U);
  EXPECT_EQ(
      comparison.other_chunks.find("25 % of all bytes are in chunks of 64.0 KiB, predicted 0 %"),
      0U)
      << comparison.other_chunks;
  EXPECT_EQ(Said(comparison).find("chunks"), std::string::npos) << Said(comparison);
}

// The host is compared with the others, so the model's error does not hide it.
TEST_F(CompareTest, FindsASlowHostAndNamesTheEffect) {
  const auto runs = Runs([](const SeenRun& run) {
    return Replayed(workflow(), run, [](const SeenTask& task) {
      return task.host.value == 2 ? 0.5 * SecondsOf(task.end - task.start) : 0;
    });
  });
  const Comparison comparison = CompareWith(runs);
  const ComparedCell* cell = Find(comparison, Level::kHost, "h3");
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->verdict, Verdict::kAnomaly);
  EXPECT_NEAR(cell->residual_share, 0.5, 0.15);
  EXPECT_LT(cell->residual_share_interval.low, 0.5);
  EXPECT_GT(cell->residual_share_interval.high, 0.5);
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kHost, "h3");
  ASSERT_NE(anomaly, nullptr);
  EXPECT_NE(anomaly->sentence.find("Tasks on host h3 took"), std::string::npos);
  EXPECT_NE(anomaly->sentence.find("in 3 of 3 runs, since run-1"), std::string::npos)
      << anomaly->sentence;
  EXPECT_EQ(anomaly->open_first.find("h3: "), 0) << anomaly->open_first;
  // Others are faster than it is, which is not an anomaly.
  for (const char* host : {"h1", "h2", "h4"}) {
    EXPECT_EQ(FindAnomaly(comparison, Level::kHost, host), nullptr) << Said(comparison);
    EXPECT_NE(Find(comparison, Level::kHost, host)->verdict, Verdict::kAnomaly);
  }
}

// It is slower than the others, whatever their common deviation: nothing that they share is to
// blame.
TEST_F(CompareTest, BlamesAHostForWhatOthersDoNot) {
  const struct {
    const char* name;
    double share, share_on_h3;
    const char* said;
  } rows[] = {{"all faster", -0.2, 0.2, "times as long as elsewhere"},
              {"all slower", 0.3, 1.6, "times as long as predicted"},
              {"all much slower", 1.5, 2.75, "times as long as elsewhere"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Comparison comparison = CompareWith(Runs([&](const SeenRun& run) {
      return Replayed(workflow(), run, [&](const SeenTask& task) {
        const double share = task.host.value == 2 ? row.share_on_h3 : row.share;
        return share * SecondsOf(task.end - task.start);
      });
    }));
    const Anomaly* anomaly = FindAnomaly(comparison, Level::kHost, "h3");
    ASSERT_NE(anomaly, nullptr) << Said(comparison);
    ASSERT_FALSE(anomaly->blamed.empty()) << Said(comparison);
    const auto& blamed = anomaly->blamed;
    const auto host = std::find_if(blamed.begin(), blamed.end(), [](const Blame& blame) {
      return blame.suspect == Suspect{Part::kHost, "h3"};
    });
    ASSERT_NE(host, blamed.end()) << anomaly->cause;
    // With three runs, its link may explain a little more by chance.
    EXPECT_GT(host->explained, blamed.front().explained - 0.05) << anomaly->cause;
    EXPECT_NE(anomaly->cause.find("ost h3"), std::string::npos) << anomaly->cause;
    EXPECT_EQ(blamed.front().suspect.host, "h3") << anomaly->cause;
    if (host == blamed.begin()) {
      EXPECT_NE(anomaly->cause.find(row.said), std::string::npos) << anomaly->cause;
    }
  }
}

// A slower task in a faster stage is not explained further.
TEST_F(CompareTest, BlamesNothingThatIsOffTheOtherWay) {
  const Comparison comparison = CompareWith(Runs([](const SeenRun& run) {
    SeenRun changed = Replayed(workflow(), run, [](const SeenTask& task) {
      return -0.4 * SecondsOf(task.end - task.start);
    });
    for (size_t i = 0; i < changed.tasks.size(); ++i)
      if (workflow().tasks[i].id == "turn_5")
        changed.tasks[i].end = changed.tasks[i].start + Milliseconds(1'500);
    return changed;
  }));
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kTask, "turn_5");
  ASSERT_NE(anomaly, nullptr) << Said(comparison);
  EXPECT_TRUE(anomaly->slower);
  for (const Blame& blame : anomaly->blamed) EXPECT_GT(blame.factor, 0) << anomaly->cause;
}

TEST_F(CompareTest, DoesNotTakeLargerFilesForFilesElsewhere) {
  const Comparison comparison = CompareWith(Runs([](const SeenRun& run) {
    SeenRun larger = Replayed(
        workflow(), run, [](const SeenTask& task) { return SecondsOf(task.end - task.start); });
    for (SeenTask& task : larger.tasks)
      for (BytesByNodeName* found : {&task.read, &task.written})
        for (auto& [node, bytes] : *found) bytes *= 3;
    return larger;
  }));
  ASSERT_FALSE(comparison.anomalies.empty());
  EXPECT_EQ(Said(comparison).find("files lie elsewhere"), std::string::npos) << Said(comparison);
  for (const ComparedBytes& bytes : comparison.stage_bytes) EXPECT_FALSE(bytes.off) << bytes.name;
}

TEST_F(CompareTest, SaysFilesLieElsewhereOnlyIfThatTakesLong) {
  const auto draws = Draws(workflow(), "hosts=4,slots=1,manager=apart,system=wass");
  SeenRun run = Drawn(workflow(), Known(), 780);
  run = Replayed(workflow(), run, [](const SeenTask& task) {
    return task.computing > Milliseconds(350) ? 30 : 0;  // Stage 'sum'.
  });
  const Comparison comparison = Compare(workflow(), draws, {run}, Options());
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kWorkflow, workflow().name);
  ASSERT_NE(anomaly, nullptr) << Said(comparison);
  EXPECT_EQ(anomaly->cause.find("files lie elsewhere"), std::string::npos) << anomaly->cause;
}

TEST(CompareManyTest, ExplainsTheLargestOfManyTasks) {
  WorkflowMaker maker;
  for (uint32_t i = 0; i < 150; ++i)
    maker.Task(fmt::format("work_{}", i), {}, {}, Milliseconds(100 + i));
  const Workflow workflow = maker.Build();
  std::vector<SeenRun> runs;
  for (uint64_t repeat = 0; repeat < 3; ++repeat)
    runs.push_back(Replayed(workflow, Drawn(workflow, Known(), 777, repeat),
                            [](const SeenTask& t) { return 19 * SecondsOf(t.end - t.start); }));
  const Comparison comparison = Compare(workflow, Draws(workflow), runs, Options());
  const auto tasks = std::count_if(
      comparison.anomalies.begin(), comparison.anomalies.end(), [&](const Anomaly& anomaly) {
        return comparison.cells[anomaly.cell].cell.level == Level::kTask;
      });
  EXPECT_EQ(tasks, 100);
  EXPECT_EQ(comparison.anomalies_left_out, 50U);
  EXPECT_NE(FindAnomaly(comparison, Level::kTask, "work_149"), nullptr);
  EXPECT_EQ(FindAnomaly(comparison, Level::kTask, "work_0"), nullptr);
}

// A host that is an eighth slower would not stand among so many tests of single tasks.
TEST(CompareManyTest, FindsAHostAmongManyTasks) {
  WorkflowMaker maker;
  for (uint32_t i = 0; i < 600; ++i)
    maker.Task(fmt::format("work_{}", i), {}, {}, Milliseconds(100 + i % 50));
  const Workflow workflow = maker.Build();
  std::vector<SeenRun> runs;
  for (uint64_t repeat = 0; repeat < 3; ++repeat)
    runs.push_back(Replayed(workflow, Drawn(workflow, Known(), 777, repeat), [](const SeenTask& t) {
      return t.host.value == 2 ? 0.12 * SecondsOf(t.end - t.start) : 0;
    }));
  const Comparison comparison = Compare(workflow, Draws(workflow), runs, Options());
  const Anomaly* anomaly = FindAnomaly(comparison, Level::kHost, "h3");
  ASSERT_NE(anomaly, nullptr) << Find(comparison, Level::kHost, "h3")->p;
  EXPECT_GT(comparison.cells[anomaly->cell].p * 600, 0.01) << "too sure to test that";
}

// If each takes one second more, the workflow takes this many seconds more.
TEST(CellsTest, CountsWhatFollowsOneAnother) {
  WorkflowMaker chain, wide;
  SeenRun spread, on_one;
  spread.hosts = on_one.hosts = kHosts;
  for (uint32_t i = 0; i < 8; ++i) {
    const std::string before = fmt::format("f.{}", i), after = fmt::format("f.{}", i + 1);
    chain.File(after, 1);
    chain.Task(fmt::format("step_{}", i), i == 0 ? std::vector<std::string>() : std::vector{before},
               {after}, Milliseconds(100));
    wide.Task(fmt::format("step_{}", i), {}, {}, Milliseconds(100));
    SeenTask task;
    task.ran = true;
    task.start = Milliseconds(100 * i);
    task.end = Milliseconds(100 * (i + 1));
    on_one.tasks.push_back(task);
    task.host.value = i % 4;
    spread.tasks.push_back(task);
  }
  wide.Task("end", {}, {}, Milliseconds(100));
  const std::vector<double> typical_s(9, 0.1);
  const CellName step{Level::kTasks, "step"};
  EXPECT_EQ(CellsOf(chain.Build(), spread, typical_s, 1).at(step).rounds, 8);
  on_one.tasks.push_back(on_one.tasks.back());
  spread.tasks.push_back(spread.tasks.back());
  EXPECT_EQ(CellsOf(wide.Build(), on_one, typical_s, 1).at(step).rounds, 8);
  EXPECT_EQ(CellsOf(wide.Build(), on_one, typical_s, 2).at(step).rounds, 4);
  const Cells cells = CellsOf(wide.Build(), spread, typical_s, 1);
  EXPECT_EQ(cells.at(step).rounds, 2);
  // A stage with a single task has one time.
  EXPECT_TRUE(cells.contains({Level::kTasks, "end"}));
  EXPECT_FALSE(cells.contains({Level::kStage, "end"}));
  EXPECT_FALSE(cells.contains({Level::kTask, "end"}));
}

// In one run it is chance which host is the last where streams meet.
TEST_F(CompareTest, WantsAHostTwiceHoweverSlow) {
  const auto slower = [](double share) {
    return [share](const SeenRun& run) {
      return Replayed(workflow(), run, [share](const SeenTask& task) {
        return task.host.value == 2 ? share * SecondsOf(task.end - task.start) : 0;
      });
    };
  };
  const auto clean = Runs([](const SeenRun& run) { return run; });
  const auto some = Runs(slower(0.5));
  const auto much = Runs(slower(4));
  const auto found = [](const std::vector<SeenRun>& runs) {
    const Comparison comparison = CompareWith(runs);
    const Anomaly* anomaly = FindAnomaly(comparison, Level::kHost, "h3");
    return anomaly == nullptr
               ? std::string(ToText(Find(comparison, Level::kHost, "h3")->verdict))
               : fmt::format("since {}, in {}", anomaly->since, anomaly->shown_in.size());
  };
  EXPECT_EQ(found({clean[0], clean[1], clean[2]}), "as predicted");
  EXPECT_EQ(found({clean[0], some[1], clean[2]}), "as predicted");
  EXPECT_EQ(found({clean[0], some[1], some[2]}), "since run-2, in 2");
  EXPECT_EQ(found({some[1], some[2]}), "since run-2, in 2");
  EXPECT_EQ(found({clean[0], some[0], some[1], some[2]}), "since run-1, in 3");
  EXPECT_EQ(found({clean[0], clean[1], much[2]}), "as predicted");
  EXPECT_EQ(found({much[2]}), "not yet");
  const Comparison once = CompareWith({much[2]});
  EXPECT_NE(FindAnomaly(once, Level::kWorkflow, workflow().name), nullptr) << Said(once);
  // Old runs do not count.
  EXPECT_EQ(found({much[0], some[0], clean[0], clean[1], clean[2]}), "as predicted");
  // Counts from the run where it began, not from the first judged run.
  EXPECT_EQ(found({clean[0], some[0], some[1], some[2], some[0], some[1]}), "since run-1, in 3");
}

TEST_F(CompareTest, ComparesWhatIsLeftOfAFailedRun) {
  auto runs = Runs([](const SeenRun& run) {
    return Replayed(workflow(), run, [](const SeenTask& task) {
      return task.host.value == 2 ? SecondsOf(task.end - task.start) : 0;
    });
  });
  for (SeenRun& run : runs) {
    run.whole = false;
    for (uint32_t i = 0; i < run.tasks.size(); ++i)
      if (workflow().tasks[i].stage == "sum") run.tasks[i] = SeenTask();
  }
  const Comparison comparison = CompareWith(runs);
  EXPECT_NE(FindAnomaly(comparison, Level::kHost, "h3"), nullptr) << Said(comparison);
  for (const auto& [level, name] :
       std::vector<std::pair<Level, std::string>>{{Level::kWorkflow, workflow().name},
                                                  {Level::kStage, "make"},
                                                  {Level::kTasks, "sum"},
                                                  {Level::kStart, "make"},
                                                  {Level::kTask, "sum_0"}}) {
    const ComparedCell* cell = Find(comparison, level, name);
    ASSERT_NE(cell, nullptr) << name;
    EXPECT_EQ(cell->verdict, Verdict::kNotMeasured) << ToText(level) << " " << name;
  }
  EXPECT_EQ(Find(comparison, Level::kTasks, "make")->runs, 3U);
  EXPECT_TRUE(comparison.stage_bytes.empty()) << "of runs that moved less";
}

TEST(SeenRunTest, CountsBytesWhereTheyAreFound) {
  BytesByNodeName found;
  AddFile(100, {{"h1", 60}, {"h2", 40}}, "h1", found);
  EXPECT_EQ(found, (BytesByNodeName{{"h1", 60}, {"h2", 40}}));
  found.clear();
  // Every file has two copies: the one on its own host counts.
  AddFile(100, {{"h1", 100}, {"h2", 100}}, "h1", found);
  EXPECT_EQ(found, (BytesByNodeName{{"h1", 100}}));
  found.clear();
  AddFile(100, {{"h1", 100}, {"h2", 100}}, "h3", found);
  EXPECT_EQ(found, (BytesByNodeName{{"h1", 50}, {"h2", 50}}));
  found.clear();
  AddFile(100, {}, "h3", found);
  EXPECT_TRUE(found.empty()) << "inline";
}

}  // namespace
}  // namespace mosa::predict
