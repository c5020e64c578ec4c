// What the work of others on a run's machines explains.
#include "predictor/compare/busy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mosa::predict {
namespace {

TEST(SayBusy, NamesTheRunsAndTheHosts) {
  SeenRun quiet, busy;
  quiet.name = "r1";
  quiet.machines = {{{"h1", "h2"}, 0.05, 0.9}};
  busy.name = "r2";
  busy.machines = {{{"h1", "h2"}, 0.3, 0.9}};
  EXPECT_EQ(SayBusy({&quiet}), "");
  EXPECT_EQ(SayBusy({&quiet, &busy})
                .find("machine busy: the processors of h1 and h2 were 30 % "
                      "busy with other work in 1 of 2 runs (r2): "),
            0U)
      << SayBusy({&quiet, &busy});
}

TEST(TakenShare, IsWhereThatIs) {
  SeenRun run;
  run.machines = {{{"h1"}, 0.5, 0.2}, {{"s1"}, 0.3, std::nullopt, 0.1}, {{}, 0.4, std::nullopt}};
  run.machines[1].has_manager = run.machines[2].has_runner = true;
  EXPECT_NEAR(TakenShareAt(run, "h1"), 0.2, 1e-12);
  EXPECT_NEAR(TakenShareAt(run, "s1"), 0.4, 1e-12);
  EXPECT_EQ(TakenShareAt(run, "h2"), 0);
  EXPECT_NEAR(TakenShareAtManager(run), 0.4, 1e-12);
  EXPECT_NEAR(TakenShare(run), 0.4, 1e-12);
  run.machines.clear();
  EXPECT_EQ(TakenShareAtManager(run) + TakenShare(run), 0);
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
