// What the work of others on a run's machines explains, with synthetic runs.
#include "predictor/compare/busy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "predictor/compare/compare_fixture.h"
#include "predictor/compare/comparison.h"

namespace mosa::predict {
namespace {

constexpr uint32_t kTasks = 32;
constexpr double kTask_s = 1.2;  // A second of it is computing.

Workflow Computing() {
  WorkflowMaker maker;
  for (uint32_t i = 0; i < kTasks; ++i)
    maker.Task(fmt::format("work_{}", i), {}, {}, Milliseconds(1'000));
  return maker.Build();
}

Duration Nearly(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

// Each host runs its tasks one after the other, with `gap_s` between them; a task takes `times` of
// its index as long as usual.
SeenRun Made(const std::string& name, const std::function<double(uint32_t)>& times,
             double gap_s = 0) {
  SeenRun run;
  run.name = name;
  run.hosts = kHosts;
  std::vector<Duration> free(kHosts.size());
  for (uint32_t i = 0; i < kTasks; ++i) {
    SeenTask& task = run.tasks.emplace_back();
    task.ran = true;
    task.host = HostIndex{i % 4};
    task.start = free[i % 4] + Nearly(gap_s);
    task.end = free[i % 4] = task.start + Nearly(kTask_s * times(i));
    task.computing = Milliseconds(1'000);
  }
  return run;
}

std::vector<SeenRun> UndisturbedDraws() {
  std::vector<SeenRun> draws;
  for (int k = 0; k < 40; ++k)
    draws.push_back(Made("", [k](uint32_t i) { return 1 + 0.03 * std::sin(k) + 0.002 * (i % 3); }));
  return draws;
}

struct Case {
  double times = 1.4;  // As a factor on the predicted time.
  double own = 1;      // Own processor seconds.
  std::vector<SeenMachine> machines;
  double times_on_h2 = 0;  // 0: as on the other hosts.
};

Comparison CompareCase(const Case& given) {
  std::vector<SeenRun> runs;
  for (int k = 1; k <= 3; ++k) {
    runs.push_back(Made(fmt::format("r{}", k), [&](uint32_t i) {
      const bool is_h2 = i % 4 == 1 && given.times_on_h2 > 0;
      return (is_h2 ? given.times_on_h2 : given.times) + 0.01 * std::sin(k);
    }));
    runs.back().machines = given.machines;
    for (SeenTask& task : runs.back().tasks) {
      task.computing = {};
      if (given.own > 0) task.processor = Nearly(0.03 + given.own);
    }
  }
  return Compare(Computing(), UndisturbedDraws(), runs, {.slots = 1});
}

Verdict VerdictOn(const Comparison& comparison, Level level, const std::string& name) {
  for (const ComparedCell& cell : comparison.cells)
    if (cell.cell.level == level && (name.empty() || cell.cell.name == name)) return cell.verdict;
  return Verdict::kNotMeasured;
}
std::string SaidOfBusy(const Comparison& comparison) {
  std::string said = comparison.machine_busy + "\n";
  for (const Anomaly& anomaly : comparison.anomalies)
    said += anomaly.sentence + " " + anomaly.cause + " Open first: " + anomaly.open_first + "\n";
  return said;
}

TEST(BusyMachine, IsNoAnomaly) {
  const Comparison busy = CompareCase({.machines = {{kHosts, 0.3, 0.9}}});
  EXPECT_TRUE(busy.anomalies.empty()) << SaidOfBusy(busy);
  EXPECT_EQ(VerdictOn(busy, Level::kWorkflow, ""), Verdict::kMachineBusy);
  EXPECT_EQ(VerdictOn(busy, Level::kTasks, ""), Verdict::kMachineBusy);
  EXPECT_EQ(busy.machine_busy.find("machine busy: the processors of h1, h2, h3 and h4 were 30 % "
                                   "busy with other work in 3 of 3 runs (r1, r2, r3): "),
            0U)
      << busy.machine_busy;
  EXPECT_EQ(busy.machines.size(), 3U);
}

TEST(BusyMachine, AloneExcusesAndNoFurtherThanItExplains) {
  const struct {
    const char* name;
    Case given;
    const char* cause;
    const char* open_first;
  } rows[] = {
      {"nobody else was there",
       {.machines = {{kHosts, 0.03, std::nullopt}}},
       "The tasks' own processor time is 1.01 times the workload's runtime, and other work used 3 "
       "% "
       "of the processors: tasks wait, but not for processors that other work uses.",
       "a CPU quota of the tasks' cgroups"},
      {"others are not known", {}, "omputing on all hosts", "the machines' load during the runs"},
      {"nobody waited for what others had",
       {.machines = {{kHosts, 0.8, 0.04}}},
       "other work used 80 % of the processors: tasks wait, but not for processors that other "
       "work uses.",
       "a CPU quota of the tasks' cgroups"},
      {"it is off by more",
       {.times = 4, .machines = {{kHosts, 0.3, std::nullopt}}},
       "Other work used 30 % of the processors: the deviation is larger than that explains",
       "the machines' load"},
      {"tasks compute longer",
       {.times = 1.8, .own = 1.9, .machines = {{kHosts, 0.12, std::nullopt}}},
       "The tasks' own processor time is 1.91 times the workload's runtime: they compute longer.",
       "the workload's runtimes"},
      {"tasks compute longer, and nobody else was there",
       {.times = 1.8, .own = 1.9, .machines = {{kHosts, 0, std::nullopt}}},
       "they compute longer.",
       "the workload's runtimes"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Comparison comparison = CompareCase(row.given);
    ASSERT_FALSE(comparison.anomalies.empty());
    EXPECT_EQ(VerdictOn(comparison, Level::kWorkflow, ""), Verdict::kAnomaly)
        << SaidOfBusy(comparison);
    const Anomaly& first = comparison.anomalies.front();
    EXPECT_NE(first.cause.find(row.cause), std::string::npos) << first.cause;
    EXPECT_NE(first.open_first.find(row.open_first), std::string::npos) << first.open_first;
  }
}

TEST(BusyMachine, HidesNoHostThatIsSlowBesideOthers) {
  const Comparison same =
      CompareCase({.times = 1.3, .machines = {{kHosts, 0.3, std::nullopt}}, .times_on_h2 = 2.2});
  EXPECT_EQ(VerdictOn(same, Level::kHost, "h2"), Verdict::kAnomaly) << SaidOfBusy(same);
  EXPECT_EQ(VerdictOn(same, Level::kTasks, ""), Verdict::kMachineBusy) << SaidOfBusy(same);
  // A host with a machine of its own, and this machine is busy.
  const Comparison own = CompareCase(
      {.times = 1,
       .machines = {{{"h1", "h3", "h4"}, 0.02, std::nullopt}, {{"h2"}, 0.4, std::nullopt}},
       .times_on_h2 = 1.6});
  EXPECT_EQ(VerdictOn(own, Level::kHost, "h2"), Verdict::kMachineBusy) << SaidOfBusy(own);
  EXPECT_TRUE(own.anomalies.empty()) << SaidOfBusy(own);
  EXPECT_EQ(own.machine_busy.find("machine busy: the processors of h2 were 40 %"), 0U);
}

TEST(BusyMachine, OneRunAmongSoundOnesIsToldAlone) {
  std::vector<SeenRun> runs;
  for (int k = 1; k <= 3; ++k)
    runs.push_back(Made(fmt::format("r{}", k), [k](uint32_t) { return k == 2 ? 30 : 1; }));
  const Comparison comparison = Compare(Computing(), UndisturbedDraws(), runs, {.slots = 1});
  EXPECT_TRUE(comparison.anomalies.empty()) << SaidOfBusy(comparison);
  ASSERT_EQ(comparison.odd_runs.size(), 1U);
  EXPECT_EQ(comparison.odd_runs[0].run, "r2");
  EXPECT_EQ(comparison.odd_runs[0].sentence.find("r2 alone was off: "), 0U);
  runs[1].machines = {{kHosts, 0.9, std::nullopt}};  // The excuse is capped at seven times.
  EXPECT_EQ(Compare(Computing(), UndisturbedDraws(), runs, {.slots = 1}).odd_runs.size(), 1U);
  runs[1] = Made("r2", [](uint32_t) { return 6; });
  runs[1].machines = {{kHosts, 0.9, std::nullopt}};
  EXPECT_TRUE(Compare(Computing(), UndisturbedDraws(), runs, {.slots = 1}).odd_runs.empty());
}

// Only what others took where the tasks ran is excused.
TEST(BusyMachine, ElsewhereExcusesNoTask) {
  SeenMachine runner{{}, 0.6, std::nullopt};
  runner.has_runner = true;
  const SeenMachine idle{kHosts, 0.02, std::nullopt}, storage{{"s1"}, 0.6, std::nullopt};
  for (const std::vector<SeenMachine>& machines :
       {std::vector{runner}, std::vector{runner, idle}, std::vector{idle, storage}}) {
    const Comparison slow = CompareCase({.machines = machines});
    EXPECT_EQ(VerdictOn(slow, Level::kWorkflow, ""), Verdict::kAnomaly) << SaidOfBusy(slow);
    EXPECT_EQ(VerdictOn(slow, Level::kTasks, ""), Verdict::kAnomaly) << SaidOfBusy(slow);
    EXPECT_EQ(VerdictOn(slow, Level::kTask, "work_1"), Verdict::kAnomaly) << SaidOfBusy(slow);
  }
  EXPECT_NE(CompareCase({.machines = {runner}}).machine_busy.find("the machine of 'mosa run'"),
            std::string::npos);
  // A single task on a host other than the busy one, and one on the busy host.
  const Comparison one =
      CompareCase({.machines = {{{"h1", "h3", "h4"}, 0.02, std::nullopt}, {{"h2"}, 0.4, {}}}});
  EXPECT_EQ(VerdictOn(one, Level::kTask, "work_0"), Verdict::kAnomaly);
  EXPECT_EQ(VerdictOn(one, Level::kTask, "work_1"), Verdict::kMachineBusy);
}

TEST(BusyMachine, StolenTimeCountsThoughNobodyWaits) {
  const Comparison stolen = CompareCase({.machines = {{kHosts, 0.01, 0.02, 0.4}}});
  EXPECT_TRUE(stolen.anomalies.empty()) << SaidOfBusy(stolen);
  EXPECT_EQ(VerdictOn(stolen, Level::kWorkflow, ""), Verdict::kMachineBusy);
  EXPECT_NE(stolen.machine_busy.find("41 % busy"), std::string::npos) << stolen.machine_busy;
}

// Excusing two runs does not make the judgement of later runs surer.
TEST(BusyMachine, WhatIsTakenOffIsNotKnownExactly) {
  std::vector<SeenRun> runs;
  const double times[] = {1.15, 1.8, 1.22, 1.22};
  for (const double each : times) {
    runs.push_back(Made(fmt::format("r{}", runs.size() + 1), [each](uint32_t) { return each; }));
    runs.back().machines = {{kHosts, runs.size() <= 2 ? 0.3 : 0.09, std::nullopt}};
  }
  const Comparison comparison = Compare(Computing(), UndisturbedDraws(), runs, {.slots = 1});
  EXPECT_NE(VerdictOn(comparison, Level::kWorkflow, ""), Verdict::kAnomaly)
      << SaidOfBusy(comparison);
}

// ---- with requests

constexpr uint64_t kRequests = 100;

// Requests of mounts to each other's nodes, and the nodes' work for them; `node_times` and
// `own_times` are factors for h2.
void AddRequests(double node_times, double own_times, double seed, SeenRun& run) {
  const auto add = [&](const RequestClass& which, double mean_s) {
    mean_s *= 1 + 0.02 * std::sin(seed + static_cast<double>(run.requests.size()));
    run.requests[which] = {kRequests, mean_s * kRequests, mean_s, mean_s};
  };
  for (const std::string& peer : kHosts) {
    const bool is_h2 = peer == "h2";
    for (const std::string& host : kHosts)
      if (host != peer) add({"mount", "node.write", host, peer}, 0.02 * (is_h2 ? node_times : 1));
    add({"storage", "write.object", peer, ""}, 0.01 * (is_h2 ? own_times : 1));
  }
}

// Six runs in which all tasks take `task_times` as long as predicted.
Comparison CompareRequestsOfH2(double node_times, double own_times,
                               const std::vector<SeenMachine>& machines, double task_times = 1.25,
                               double gap_s = 0) {
  std::vector<SeenRun> draws = UndisturbedDraws(), runs;
  for (size_t k = 0; k < draws.size(); ++k) AddRequests(1, 1, static_cast<double>(k), draws[k]);
  for (int k = 1; k <= 6; ++k) {
    runs.push_back(Made(
        fmt::format("r{}", k), [&](uint32_t) { return task_times + 0.01 * std::sin(k); }, gap_s));
    runs.back().machines = machines;
    AddRequests(node_times, own_times, 50 + k, runs.back());
  }
  return Compare(Computing(), draws, runs, {.slots = 1});
}

TEST(BusyMachine, HidesNoNodeThatIsSlowBesideOthersOnIt) {
  const Comparison same = CompareRequestsOfH2(2, 1, {{kHosts, 0.3, std::nullopt}});
  ASSERT_EQ(VerdictOn(same, Level::kWorkflow, ""), Verdict::kAnomaly) << SaidOfBusy(same);
  for (const Anomaly& anomaly : same.anomalies) EXPECT_EQ(anomaly.since, "r1");
  EXPECT_TRUE(same.odd_runs.empty());
  // h2 has a machine of its own, which is busy: others may have delayed its requests.
  const Comparison apart = CompareRequestsOfH2(
      2, 1, {{{"h1", "h3", "h4"}, 0.02, std::nullopt}, {{"h2"}, 0.4, std::nullopt}});
  EXPECT_EQ(VerdictOn(apart, Level::kWorkflow, ""), Verdict::kMachineBusy) << SaidOfBusy(apart);
}

TEST(BusyMachine, HidesNoOwnWorkBeyondWhatItExplains) {
  const Comparison far = CompareRequestsOfH2(2, 6, {{kHosts, 0.3, std::nullopt}});
  EXPECT_EQ(VerdictOn(far, Level::kWorkflow, ""), Verdict::kAnomaly) << SaidOfBusy(far);
  EXPECT_NE(SaidOfBusy(far).find("its own work shows it"), std::string::npos) << SaidOfBusy(far);
}

// A deviation at the lower bar is an anomaly only with a part's evidence; that evidence alone is
// not one.
TEST(Witnessed, NeedsBothThatItIsOffAndAPartThatSaysSo) {
  const auto verdict = [](double task_times, double node_times, double gap_s = 0) {
    const Comparison comparison = CompareRequestsOfH2(node_times, 1, {}, task_times, gap_s);
    return VerdictOn(comparison, Level::kWorkflow, "");
  };
  EXPECT_EQ(verdict(1.12, 1), Verdict::kAsPredicted);
  EXPECT_EQ(verdict(1.12, 2), Verdict::kAnomaly);
  EXPECT_EQ(verdict(1.06, 2), Verdict::kAsPredicted);
  // No node explains time that lies between tasks.
  EXPECT_EQ(verdict(1.03, 2, 0.1), Verdict::kAsPredicted);
}

// Two stages. In the first, mounts wait for requests to h2 and h2 waits for its own requests to
// others; in the second, tasks on h2 take far longer than anything has waited.
Comparison CompareLateStage(bool is_computing) {
  const auto computing = [is_computing](uint32_t i) {
    return Milliseconds(is_computing || i % 8 >= 4 ? 1'000 : 100);
  };
  WorkflowMaker maker;
  for (const char* stage : {"work", "end"})
    for (uint32_t i = 0; i < kTasks; ++i)
      maker.Task(fmt::format("{}_{}", stage, i), {}, {}, computing(i));
  const auto both = [&](const std::string& name, const std::function<double(uint32_t)>& work,
                        const std::function<double(uint32_t)>& end) {
    SeenRun run = Made(name, work);
    const SeenRun after = Made(name, end);
    const Duration began = std::ranges::max(run.tasks, {}, &SeenTask::end).end;
    for (SeenTask task : after.tasks) {
      task.start = task.start + began;
      task.end = task.end + began;
      run.tasks.push_back(task);
    }
    for (uint32_t i = 0; i < 2 * kTasks; ++i) run.tasks[i].computing = computing(i % kTasks);
    return run;
  };
  const auto add_requests = [](double times, double seed, SeenRun& run) {
    for (const std::string& host : kHosts)
      for (const std::string& peer : kHosts) {
        const double wave = 0.02 * std::sin(seed + static_cast<double>(run.requests.size()));
        const double mean_s = 0.02 * (host == "h2" || peer == "h2" ? times : 1) * (1 + wave);
        if (host == peer) {
          run.requests[{"storage", "write.object", host, ""}] = {kRequests, 1, 0.01, 0.01};
        } else {
          run.requests[{"mount", "node.write", host, peer}] = {kRequests, mean_s * kRequests,
                                                               mean_s, mean_s};
        }
      }
  };
  std::vector<SeenRun> draws, runs;
  for (int k = 0; k < 40; ++k) {
    const auto usual = [k](uint32_t i) { return 1 + 0.03 * std::sin(k) + 0.002 * (i % 3); };
    add_requests(1, k, draws.emplace_back(both("", usual, usual)));
  }
  for (int k = 1; k <= 3; ++k) {
    const double wave = 0.01 * std::sin(k);
    runs.push_back(both(
        fmt::format("r{}", k), [=](uint32_t i) { return (i % 4 == 1 ? 1.0 : 1.2) + wave; },
        [=](uint32_t i) { return (i % 4 == 1 ? 4.5 : 1.0) + wave; }));
    add_requests(2, 50 + k, runs.back());
  }
  return Compare(maker.Build(), draws, runs, {.slots = 1});
}

// What mounts waited for in the whole run tells which part of a host is at fault when a stage
// blames the host, unless the stage's tasks tell more: a slow link does not slow computing.
TEST(WholeRun, TellsThePartOfTheHostThatAStageBlames) {
  for (const bool is_computing : {false, true}) {
    SCOPED_TRACE(is_computing);
    const Comparison comparison = CompareLateStage(is_computing);
    const auto found = std::ranges::find_if(comparison.anomalies, [&](const Anomaly& anomaly) {
      const CellName& cell = comparison.cells[anomaly.cell].cell;
      return cell.level == Level::kTasks && cell.name == "end";
    });
    ASSERT_NE(found, comparison.anomalies.end()) << SaidOfBusy(comparison);
    const Part part = is_computing ? Part::kProcessor : Part::kLink;
    EXPECT_EQ(found->blamed.front().suspect, (Suspect{part, "h2"})) << found->cause;
    EXPECT_EQ(found->cause.find("over the whole run, ") != std::string::npos, !is_computing)
        << found->cause;
  }
}

// The manager's work is excused by the machine of the manager, not by those of tasks.
TEST(BusyMachine, ExcusesTheManagerWhereItIs) {
  const RequestClass which = {"manager", "open.core", "-", ""};
  const auto verdict_on = [&](const std::vector<SeenMachine>& machines) {
    std::vector<SeenRun> draws(40), runs(3);
    for (size_t k = 0; k < draws.size(); ++k) {
      const double mean_s = 0.02 * (1 + 0.01 * std::sin(k));
      draws[k].requests[which] = {kRequests, mean_s * kRequests, mean_s, mean_s};
    }
    for (SeenRun& run : runs) {
      run.machines = machines;
      run.requests[which] = {kRequests, 0.05 * kRequests, 0.05, 0.05};
    }
    return CompareRequests(draws, runs, {}, 10).at(0).verdict;
  };
  SeenMachine busy{{"h1"}, 0.45, std::nullopt};
  EXPECT_EQ(verdict_on({busy}), RequestVerdict::kAnomaly);
  busy.has_manager = true;
  EXPECT_EQ(verdict_on({busy}), RequestVerdict::kMachineBusy);
}

// ---- own processor seconds

OwnSeconds OwnIn(const std::vector<SeenRun>& runs, size_t run) {
  const std::vector<double> typical_s(kTasks, kTask_s);
  const auto usual =
      UsualSecondsOf(runs, typical_s, std::vector<Duration>(kTasks, Milliseconds(1'000)));
  return OwnSecondsOf(Computing(), runs[run], typical_s, usual, "");
}
SeenRun MadeWith(double times, double own_s) {
  SeenRun run = Made("", [times](uint32_t) { return times; });
  for (SeenTask& task : run.tasks) task.processor = Nearly(own_s);
  return run;
}

TEST(OwnSeconds, AreHeldAgainstRunsThatWereAsPredicted) {
  // Eight threads: one second of wall-clock time is eight processor seconds.
  const OwnSeconds threads = OwnIn({MadeWith(1, 8), MadeWith(2, 8)}, 1);
  EXPECT_NEAR(threads.times(), 1, 0.01);
  EXPECT_TRUE(threads.is_beside_runs());
  EXPECT_FALSE(ComputeLonger(threads, 0));
  EXPECT_EQ(OwnIn({MadeWith(2, 8)}, 0).tasks, 0U);  // Several threads.
  // Most of the workload's runtime is moving bytes: computing has doubled.
  const OwnSeconds moving = OwnIn({MadeWith(1, 0.5), MadeWith(1.4, 1)}, 1);
  EXPECT_NEAR(moving.times(), 2, 0.1);
  EXPECT_TRUE(ComputeLonger(moving, 0));
  const OwnSeconds first = OwnIn({MadeWith(2, 1.9)}, 0);
  EXPECT_FALSE(first.is_beside_runs());
  EXPECT_TRUE(ComputeLonger(first, 0));
}

TEST(TakenShare, IsWhereThatIs) {
  SeenRun run;
  run.machines = {{{"h1"}, 0.5, 0.2}, {{"s1"}, 0.3, std::nullopt, 0.1}, {{}, 0.4, std::nullopt}};
  run.machines[1].has_manager = run.machines[2].has_runner = true;
  EXPECT_NEAR(TakenShareAt(run, "h1"), 0.2, 1e-12);
  EXPECT_NEAR(TakenShareAt(run, "s1"), 0.4, 1e-12);
  EXPECT_EQ(TakenShareAt(run, "h2"), 0);
  EXPECT_NEAR(TakenShareAtManager(run), 0.4, 1e-12);
  EXPECT_NEAR(TakenShareAtRunner(run), 0.4, 1e-12);
  run.machines.clear();
  EXPECT_EQ(TakenShareAtManager(run) + TakenShareAtRunner(run), 0);
}

TEST(WithoutOthers, TakesOffWhatTheyExplain) {
  JudgedRun run;
  run.place = std::log(2.0);
  run.effect_share = 0.6;
  EXPECT_EQ(WithoutOthers(run, 0, ExcuseFor(0.05)).place, run.place);
  EXPECT_EQ(WithoutOthers(run, 1, ExcuseFor(0.5)).place, run.place);  // Faster.
  const JudgedRun rest = WithoutOthers(run, 0, {ExcuseFor(0.2).share, 0});
  EXPECT_NEAR(rest.place, std::log(2 / 1.5), 1e-12);
  EXPECT_NEAR(rest.excused, std::log(1.5), 1e-12);
  EXPECT_NEAR(rest.effect_share, 0.6 * (2 / 1.5 - 1), 1e-12);
  EXPECT_NEAR(WithoutOthers(run, 0, ExcuseFor(0.4)).place, 0, 1e-12);
  EXPECT_NEAR(WithoutOthers(run, 0, {0.5, 0.25}).place, std::log(2 / 1.75), 1e-12);
}

// A tenth of the processors does not delay a request by a whole scheduling slice.
TEST(ExcuseFor, BeginsWithNothing) {
  EXPECT_EQ(ExcuseFor(0.1).share, 0);
  EXPECT_EQ(ExcuseFor(0.1).delay_s, 0);
  EXPECT_LT(ExcuseFor(0.101).share, 0.01);
  EXPECT_LT(ExcuseFor(0.12).delay_s, 0.0003);
  EXPECT_NEAR(ExcuseFor(0.2).share, 0.5, 1e-12);
  EXPECT_NEAR(ExcuseFor(0.5).delay_s, 0.005, 1e-12);
  EXPECT_NEAR(ExcuseFor(1).share, 6, 1e-12);
}

}  // namespace
}  // namespace mosa::predict
