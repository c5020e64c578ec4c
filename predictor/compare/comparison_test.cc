#include "predictor/compare/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

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

const ComparedCell* Find(const Comparison& comparison, Level level, const std::string& name) {
  for (const ComparedCell& cell : comparison.cells)
    if (cell.cell == CellName{level, name}) return &cell;
  return nullptr;
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
  static Comparison CompareWith(const std::vector<SeenRun>& runs) {
    return Compare(workflow(), draws(), runs, 1);
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

// Nine of ten further runs lie in the interval of each time, or nearly so many.
TEST_F(CompareTest, SoundRunsLieInTheirIntervals) {
  std::map<Level, std::pair<int, int>> inside;
  for (uint64_t seed = 5001; seed <= 5040; ++seed) {
    for (const ComparedCell& cell : CompareWith({Drawn(workflow(), Known(), seed)}).cells) {
      auto& [in, all] = inside[cell.cell.level];
      in += cell.verdict == Verdict::kAsPredicted ? 1 : 0;
      ++all;
    }
  }
  for (const auto& [level, counts] : inside)
    EXPECT_GE(counts.first, 0.8 * counts.second) << ToText(level) << " of " << counts.second;
}

// The host is compared with the others, so the model's error does not hide it.
TEST_F(CompareTest, ShowsASlowHostBesideTheOthers) {
  const auto runs = Runs([](const SeenRun& run) {
    return Replayed(workflow(), run, [](const SeenTask& task) {
      return task.host.value == 2 ? 0.5 * SecondsOf(task.end - task.start) : 0;
    });
  });
  const Comparison comparison = CompareWith(runs);
  const ComparedCell* cell = Find(comparison, Level::kHost, "h3");
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->verdict, Verdict::kSlower);
  EXPECT_EQ(cell->runs, 3U);
  EXPECT_NEAR(cell->residual_share, 0.5, 0.15);
  EXPECT_LE(cell->measured_range_s.low, cell->measured_s);
  EXPECT_LE(cell->measured_s, cell->measured_range_s.high);
  const ComparedCell* whole = Find(comparison, Level::kWorkflow, workflow().name);
  ASSERT_NE(whole, nullptr);
  EXPECT_NEAR(whole->effect_share, whole->measured_s / whole->predicted_s - 1, 1e-9);
  for (const char* host : {"h1", "h2", "h4"})
    EXPECT_NE(Find(comparison, Level::kHost, host)->verdict, Verdict::kSlower) << host;
}

TEST_F(CompareTest, FasterRunsAreFaster) {
  const auto runs = Runs([](const SeenRun& run) {
    return Replayed(workflow(), run,
                    [](const SeenTask& task) { return -0.6 * SecondsOf(task.end - task.start); });
  });
  EXPECT_EQ(Find(CompareWith(runs), Level::kWorkflow, workflow().name)->verdict, Verdict::kFaster);
}

// Old runs are named, but the tables show the last ones.
TEST_F(CompareTest, ShowsTheLastRuns) {
  std::vector<SeenRun> runs;
  for (uint64_t repeat = 0; repeat < 5; ++repeat)
    runs.push_back(Drawn(workflow(), Known(), 777, repeat));
  const Comparison comparison = CompareWith(runs);
  EXPECT_EQ(comparison.runs.size(), 5U);
  EXPECT_EQ(comparison.judged, (std::vector<std::string>{"run-3", "run-4", "run-5"}));
  const Comparison without = CompareWith({});
  EXPECT_EQ(without.cells.size(), comparison.cells.size());
  EXPECT_EQ(without.cells.front().verdict, Verdict::kNotMeasured);
}

TEST_F(CompareTest, SaysThatFilesAreInOtherChunks) {
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
  EXPECT_EQ(Find(comparison, Level::kHost, "h3")->verdict, Verdict::kSlower);
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
