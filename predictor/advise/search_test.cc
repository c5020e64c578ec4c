#include "predictor/advise/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "predictor/advise/deployments.h"
#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

// Classes with two alternatives each: none, and a hint that `mosa run` gives.
std::vector<HintClass> Classes(size_t count, size_t by_itself = 1) {
  std::vector<HintClass> classes;
  for (size_t i = 0; i < count; ++i) {
    HintAlternative hinted;
    hinted.text = "hint";
    hinted.hints.emplace(PathIndex{static_cast<uint32_t>(i)}, HintMap{{"placement", "local"}});
    classes.push_back({fmt::format("s{}", i), "1:1", {}, 0, {{}, hinted}, by_itself});
  }
  return classes;
}

// Seconds of a run by choice; the draws differ only by a share of their own.
using Seconds = std::function<double(const HintChoice&, uint32_t draw)>;

HintAdvice Find(const std::vector<HintClass>& classes, const Seconds& seconds,
                const AdviseOptions& options = {}, size_t* simulations = nullptr,
                uint64_t (*bytes)(const HintChoice&) = nullptr) {
  const auto advice = FindHints(
      classes, options, [&](const std::vector<Trial>& trials) -> Result<std::vector<TrialOutcome>> {
        std::vector<TrialOutcome> outcomes;
        for (const Trial& trial : trials) {
          TrialOutcome outcome;
          outcome.time = Nanoseconds(static_cast<int64_t>(1e9 * seconds(trial.choice, trial.draw)));
          outcome.link_bytes = bytes == nullptr ? 0 : bytes(trial.choice);
          outcomes.push_back(outcome);
        }
        if (simulations != nullptr) *simulations += trials.size();
        return outcomes;
      });
  EXPECT_TRUE(advice.ok()) << advice.status();
  return *advice;
}

TEST(FindHints, KeepsTwoThatPayOnlyTogether) {
  const auto advice = Find(
      Classes(2), [](const HintChoice& c, uint32_t) { return c[0] == 1 && c[1] == 1 ? 50 : 100; });
  EXPECT_EQ(advice.choice, (HintChoice{1, 1}));
  EXPECT_DOUBLE_EQ(advice.classes[0].gain.median_s, 50);
  EXPECT_TRUE(advice.classes[0].gain.pays && advice.classes[1].gain.pays);
}

TEST(FindHints, KeepsOneOfTwoThatMakeEachOtherIdle) {
  const auto advice = Find(
      Classes(2), [](const HintChoice& c, uint32_t) { return c[0] == 1 || c[1] == 1 ? 50 : 100; });
  EXPECT_EQ(advice.choice[0] + advice.choice[1], 1U);
  const ClassAdvice& left_out = advice.classes[advice.choice[0] == 0 ? 0 : 1];
  EXPECT_EQ(left_out.reason, "makes no difference");
}

TEST(FindHints, LeavesOutWhatHarms) {
  const auto advice = Find(Classes(2), [](const HintChoice& c, uint32_t draw) {
    return 100 + draw + (c[0] == 1 ? 20 : 0) - (c[1] == 1 ? 10 : 0);
  });
  EXPECT_EQ(advice.choice, (HintChoice{0, 1}));
  EXPECT_EQ(advice.classes[0].reason, "takes 20.000 s more");
  EXPECT_EQ(advice.over_by_itself.median_s, 20);
  EXPECT_TRUE(advice.over_by_itself.pays);
  EXPECT_EQ(advice.over_unhinted.median_s, 10);
}

TEST(FindHints, FindsWhatMosaRunDoesNotDoByItself) {
  const auto advice = Find(Classes(3, 0), [](const HintChoice& c, uint32_t) {
    return 100 - 10 * static_cast<double>(c[0] + c[2]) + 5 * static_cast<double>(c[1]);
  });
  EXPECT_EQ(advice.choice, (HintChoice{1, 0, 1}));
  EXPECT_EQ(advice.by_itself.median_s, 100);
  EXPECT_EQ(advice.advised.median_s, 80);
}

// In each draw the hint gains or loses 2 s; a gain of 2 s would be worth a rule.
TEST(FindHints, LeavesOutWhatCannotBeToldApart) {
  const auto advice = Find(Classes(1), [](const HintChoice& c, uint32_t draw) {
    return 98 + draw + (c[0] == 1 ? (draw % 2 == 0 ? 4 : 0) : 2);
  });
  EXPECT_EQ(advice.choice, (HintChoice{0}));
  EXPECT_EQ(advice.classes[0].reason, "within what cannot be told apart");
  EXPECT_EQ(advice.classes[0].gain.interval_s, (Interval<double>{-2, 2}));
}

TEST(FindHints, LeavesOutWhatIsNotWorthARule) {
  const auto gain = [](const HintChoice& c, uint32_t) { return c[0] == 1 ? 99.5 : 100; };
  EXPECT_EQ(Find(Classes(1), gain).classes[0].reason,
            "0.50 % of the run, less than 1.00 % is not worth a rule");
  EXPECT_EQ(Find(Classes(1), gain, {.share_min = 0.004}).choice, (HintChoice{1}));
}

// None of ten hints is worth a rule alone, but together they are. Dropping them one by one would
// lose everything.
TEST(FindHints, DoesNotGiveManySmallGainsAwayOneByOne) {
  const auto advice = Find(Classes(10), [](const HintChoice& c, uint32_t) {
    double seconds = 100;
    for (const size_t each : c) seconds -= each == 1 ? 0.6 : 0;
    return seconds;
  });
  size_t kept = 0;
  for (size_t i = 0; i < 10; ++i) {
    kept += advice.choice[i];
    EXPECT_EQ(advice.classes[i].reason == "with the others: alone it cannot be told apart",
              advice.choice[i] == 1);
  }
  EXPECT_EQ(kept, 9U);
}

TEST(FindHints, KeepsWhatSparesTheNetworkAndCostsNoTime) {
  const auto advice = Find(
      Classes(3),
      [](const HintChoice& c, uint32_t draw) { return 100 + draw + (c[2] == 1 ? 20 : 0); }, {},
      nullptr,
      [](const HintChoice& c) -> uint64_t { return 1000 - 100 * c[0] - 20 * c[1] - 300 * c[2]; });
  EXPECT_EQ(advice.choice, (HintChoice{1, 0, 0}));
  EXPECT_EQ(advice.classes[0].reason, "for the network: in time it cannot be told apart");
  EXPECT_EQ(advice.classes[0].gain.link_bytes, 100);
  EXPECT_FALSE(advice.classes[0].gain.pays);
}

// Like Find(), for runs that fail where `fails` returns true.
HintAdvice FindFailing(const std::vector<HintClass>& classes, const Seconds& seconds,
                       bool (*fails)(const HintChoice&, uint32_t draw)) {
  const auto advice = FindHints(
      classes, {}, [&](const std::vector<Trial>& trials) -> Result<std::vector<TrialOutcome>> {
        std::vector<TrialOutcome> outcomes(trials.size());
        for (size_t i = 0; i < trials.size(); ++i) {
          const auto& [choice, system, draw] = trials[i];
          outcomes[i].time = Nanoseconds(static_cast<int64_t>(1e9 * seconds(choice, draw)));
          outcomes[i].link_bytes = choice[0] == 0 ? 1000 : 500;
          if (fails(choice, draw)) outcomes[i].failure = "full";
        }
        return outcomes;
      });
  EXPECT_TRUE(advice.ok()) << advice.status();
  return *advice;
}

TEST(FindHints, SparesNoNetworkWithARunThatFails) {
  const auto advice = FindFailing(
      Classes(1), [](const HintChoice&, uint32_t draw) { return 100 + draw; },
      [](const HintChoice& c, uint32_t draw) { return c[0] == 1 && draw > 1; });
  EXPECT_EQ(advice.choice, (HintChoice{0}));
  EXPECT_EQ(advice.advised.draws_failed, 0U);
  EXPECT_EQ(advice.classes[0].reason, "the run would fail in 19 of 20 draws: full");
}

// A choice that ends early because it fails is not the closest one.
TEST(FindHints, NamesNoHintThatMakesTheRunFailBeforeOneThatMakesItSlower) {
  std::vector<HintClass> classes = Classes(1, 0);
  HintAlternative slower;
  slower.text = "slower";
  classes[0].alternatives.push_back(slower);
  const auto advice = FindFailing(
      classes,
      [](const HintChoice& c, uint32_t) { return c[0] == 1   ? 0.1
                                                 : c[0] == 2 ? 130
                                                             : 100; },
      [](const HintChoice& c, uint32_t) { return c[0] == 1; });
  EXPECT_EQ(advice.choice, (HintChoice{0}));
  EXPECT_EQ(advice.classes[0].alternative, 2U);
  EXPECT_EQ(advice.classes[0].reason, "takes 30.000 s more");
}

// One draw fails with every choice, which says nothing about the hint.
TEST(FindHints, DoesNotCountDrawsThatFailEitherWay) {
  for (const size_t by_itself : {0U, 1U}) {
    const auto advice = FindFailing(
        Classes(1, by_itself), [](const HintChoice& c, uint32_t) { return c[0] == 1 ? 80 : 100; },
        [](const HintChoice&, uint32_t draw) { return draw == 1; });
    EXPECT_EQ(advice.choice, (HintChoice{1}));
    EXPECT_TRUE(advice.classes[0].gain.pays);
    EXPECT_EQ(advice.advised.draws_failed, 1U);
  }
}

TEST(FindHints, FindsTheHintWithoutWhichEveryRunFails) {
  const auto advice = FindFailing(
      Classes(2, 0), [](const HintChoice& c, uint32_t) { return c[1] == 1 ? 120 : 100; },
      [](const HintChoice& c, uint32_t) { return c[1] == 0; });
  EXPECT_EQ(advice.choice[1], 1U);
  EXPECT_EQ(advice.advised.draws_failed, 0U);
  EXPECT_EQ(advice.by_itself.draws_failed, 20U);
  EXPECT_TRUE(advice.classes[1].gain.pays);
}

TEST(FindHints, TakesTheCheapestOfThoseThatAreAlike) {
  std::vector<HintClass> classes = Classes(1, 3);
  for (int copies : {4, 8}) {
    HintAlternative more;
    more.text = fmt::format("pattern=broadcast:{}", copies);
    classes[0].alternatives.push_back(more);
  }
  const auto advice = Find(classes, [](const HintChoice& c, uint32_t) {
    return c[0] == 0 ? 100 : c[0] == 1 ? 80 : 50;
  });
  EXPECT_EQ(advice.choice, (HintChoice{2}));
  EXPECT_EQ(advice.classes[0].reason, "instead of pattern=broadcast:8");
}

TEST(FindHints, AsksForFewDrawsOfWhatTheFirstDrawsRuleOut) {
  size_t simulations = 0;
  Find(
      Classes(12, 0), [](const HintChoice&, uint32_t) { return 100; }, {.draws = 100},
      &simulations);
  // Three choices with all draws, and a last comparison for each class.
  EXPECT_LT(simulations, 101U * (3 + 12) + 12 * 16);
}

TEST(FindHints, JudgesByTheFiguresAsMeasuredWithoutDraws) {
  const auto advice =
      Find(Classes(2),
           [](const HintChoice& c, uint32_t) { return 100 - 10 * static_cast<double>(c[1]); },
           {.draws = 0});
  EXPECT_EQ(advice.choice, (HintChoice{0, 1}));
  EXPECT_FALSE(advice.classes[1].gain.interval_s);
  EXPECT_EQ(advice.classes[0].reason, "makes no difference");
}

TEST(FindHints, SaysWhatWasNotTried) {
  std::vector<HintClass> classes = Classes(2, 0);
  classes[1].alternatives.resize(1);
  const auto advice =
      Find(classes, [](const HintChoice& c, uint32_t) { return c[0] == 1 ? 50 : 100; });
  EXPECT_EQ(advice.choice, (HintChoice{1, 0}));
  EXPECT_EQ(advice.classes[1].reason, "none is tried: of all classes they move least");
}

TEST(FindHints, HasNoClassesNothingIsWrittenIn) {
  const auto advice = Find({}, [](const HintChoice&, uint32_t) { return 7; });
  EXPECT_TRUE(advice.choice.empty() && advice.classes.empty());
  EXPECT_EQ(advice.advised.measured_s, 7);
}

// Counts all bytes of links, like `mosa predict`.
TEST(TrialOutcome, HasAllBytesOfLinks) {
  Prediction prediction;
  prediction.machines.resize(2);
  prediction.machines[0].link = {.sent = 1000, .received = 7, .control_sent = 30};
  prediction.machines[1].link = {
      .sent = 200, .inside = 7, .control_sent = 4, .control_received = 7};
  EXPECT_EQ(TrialOutcomeOf(prediction).link_bytes, 1234U);
}

TEST(GainOf, WhatTheModelIsOffByWidensIntervalsAlone) {
  std::vector<TrialOutcome> run(21), other(21);
  for (size_t draw = 0; draw < run.size(); ++draw) {
    run[draw].time = Milliseconds(10'000);
    other[draw].time = Milliseconds(12'000);
    run[draw].factor = other[draw].factor = draw % 2 == 0 ? 0.5 : 2;
  }
  const AdviseOptions options;
  const Gain gain = GainOf(run, other, options);
  EXPECT_TRUE(gain.pays);
  EXPECT_EQ(gain.median_s, 2);
  EXPECT_EQ(gain.interval_s, (Interval<double>{1, 4}));
  const RunTime time = RunTimeOf(run, options);
  EXPECT_EQ(time.median_s, 10);
  EXPECT_EQ(time.interval_s, (Interval<double>{5, 20}));
  for (TrialOutcome& outcome : run) outcome.computing = Milliseconds(8'000);
  for (TrialOutcome& outcome : other) outcome.computing = Milliseconds(8'000);
  EXPECT_EQ(RunTimeOf(run, options).interval_s, (Interval<double>{9, 12}));
  EXPECT_EQ(GainOf(run, other, options).interval_s, (Interval<double>{1, 4}));
}

// ---- with real simulated runs

Result<HintAdvice> Advise(const Workflow& workflow, const std::string& configuration,
                          const Platform& platform = BusyPlatform()) {
  const auto parsed = ParseConfiguration(configuration);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto classes = CandidatesOf(workflow, {parsed->hosts, NodesOf(*parsed)});
  return FindHints(classes, {},
                   [&](const std::vector<Trial>& trials) -> Result<std::vector<TrialOutcome>> {
                     std::vector<TrialOutcome> outcomes;
                     for (const Trial& trial : trials) {
                       Configuration of_draw = OfDraw(*parsed, trial.draw);
                       of_draw.system = trial.system;
                       MOSA_ASSIGN_OR_RETURN(const Prediction prediction,
                                             Predict(WithHints(workflow, classes, trial.choice),
                                                     Perturbed(platform, trial.draw), of_draw));
                       outcomes.push_back(TrialOutcomeOf(prediction));
                     }
                     return outcomes;
                   });
}

TEST(FindHints, KeepsPipelinesOnTheirHosts) {
  const auto advice = Advise(Pipelines(4, 16 * kMiB), "hosts=4,slots=1");
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->choice, (HintChoice{1, 1, 0}));
  const Gain& gain = advice->classes[0].gain;
  EXPECT_TRUE(gain.pays && gain.interval_s->low > 0);
  EXPECT_GT(gain.link_bytes, 64.0 * kMiB);
  EXPECT_LT(advice->advised.median_s, advice->unhinted.median_s);
}

TEST(FindHints, LeavesOutCopiesOfWhatIsReadOnce) {
  WorkflowMaker maker;
  maker.File("all", 64 * kMiB, {{"pattern", "broadcast:4"}}).File("out", 1000);
  maker.Task("write", {}, {"all"}).Task("read", {"all"}, {"out"});
  const auto advice = Advise(maker.Build(), "hosts=4");
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->choice, (HintChoice{1, 0}));
  EXPECT_EQ(advice->classes[0].reason, "instead of pattern=broadcast:4");
  EXPECT_TRUE(advice->over_by_itself.pays);
  EXPECT_GT(advice->over_by_itself.store_bytes, 150.0 * kMiB);
}

TEST(FindHints, FindsNothingOnOneHost) {
  const auto advice = Advise(Pipelines(4, kMiB), "hosts=1");
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->choice, (HintChoice{0, 0, 0}));
}

// The whole reduce exceeds one node, and with `strict` nothing may spill.
TEST(FindHints, LeavesOutWhatWouldFillANode) {
  WorkflowMaker maker;
  std::vector<std::string> parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back("part." + std::to_string(i));
    maker.File(parts.back(), 40 * kMiB, {{"strict", "1"}});
    maker.Task("map_" + std::to_string(i), {}, {parts.back()}, Milliseconds(50));
  }
  maker.File("sum", 1000).Task("reduce", parts, {"sum"});
  const auto advice = Advise(maker.Build(), "hosts=4,slots=1,store=100M");
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_GT(advice->by_itself.draws_failed, 0U);
  EXPECT_EQ(advice->advised.draws_failed, 0U);
  EXPECT_NE(advice->choice[0], 2U);
}

TEST(FindHints, SaysWhatFailsWhateverIsSaid) {
  const auto advice = Advise(Pipelines(2, 100 * kMiB), "hosts=2,store=1M");
  ASSERT_FALSE(advice.ok());
  EXPECT_EQ(advice.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(advice.status()).find("with hints and without hints: "), std::string::npos)
      << advice.status();
}

// ---- deployments

std::vector<TrialOutcome> Draws(double seconds, double wobble = 0) {
  std::vector<TrialOutcome> draws(21);
  for (size_t i = 0; i < draws.size(); ++i)
    draws[i].time =
        Nanoseconds(static_cast<int64_t>(1e9 * (seconds + (i % 2 == 0 ? wobble : -wobble))));
  return draws;
}

Deployment Of(uint32_t hosts, std::vector<TrialOutcome> draws) {
  Deployment deployment;
  deployment.configuration.hosts = hosts;
  deployment.draws = std::move(draws);
  return deployment;
}

TEST(JudgeDeployments, StaysWithWhatIsThereUnlessAnotherIsFaster) {
  auto advice =
      JudgeDeployments(Of(4, Draws(100)), {Of(8, Draws(99, 2)), Of(2, Draws(100, 1))}, {});
  EXPECT_EQ(advice.best.configuration.hosts, 4U);
  ASSERT_EQ(advice.cheaper.size(), 1U);
  EXPECT_EQ(advice.cheaper[0].configuration.hosts, 2U);
  advice = JudgeDeployments(Of(4, Draws(100)), {Of(8, Draws(90, 2)), Of(2, Draws(120))}, {});
  EXPECT_EQ(advice.best.configuration.hosts, 8U);
  EXPECT_TRUE(advice.best.over_as_is.pays);
  EXPECT_TRUE(advice.cheaper.empty());
}

TEST(DefaultSpace, HasTheDeploymentInItWhateverItIs) {
  for (const char* text : {"hosts=1", "hosts=3,chunk=64K,stripe=3", "hosts=200,storage=5,stripe=4",
                           "hosts=4,replicas=2", "hosts=3,storage=2,replicas=2"}) {
    const auto as_is = ParseConfiguration(text);
    ASSERT_TRUE(as_is.ok()) << as_is.status();
    const auto space = Enumerate(DefaultSpace(*as_is), *as_is);
    ASSERT_TRUE(space.ok()) << text << ": " << space.status();
    EXPECT_LE(space->points.size(), 500U);
    EXPECT_TRUE(std::any_of(space->points.begin(), space->points.end(), [&](const Point& point) {
      return point.configuration == *as_is;
    })) << text;
  }
}

}  // namespace
}  // namespace mosa::predict
