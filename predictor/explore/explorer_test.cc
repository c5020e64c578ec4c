#include "predictor/explore/explorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "predictor/explore/explore_fixture.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

PowerProfile TwoLevels() {
  PowerProfile profile;
  profile.levels = {{2400, 1, 90, 60, 40, 30, 0.02}, {1200, 0.5, 80, 20, 30, 30, 0.02}};
  return profile;
}

struct Study {
  std::vector<Explored> explored;
  std::optional<size_t> best;

  size_t Count(Fate fate) const {
    return static_cast<size_t>(std::count_if(explored.begin(), explored.end(),
                                             [&](const Explored& e) { return e.fate == fate; }));
  }
  std::set<size_t> Marked(bool Explored::*mark) const {
    std::set<size_t> marked;
    for (size_t i = 0; i < explored.size(); ++i)
      if (explored[i].*mark) marked.insert(i);
    return marked;
  }
};

Study Explore(const Workflow& workflow, const Platform& platform, const PowerProfile* power,
              const std::vector<Point>& points, const ExploreOptions& options) {
  auto explorer = Explorer::Make(workflow, platform, power, points, options);
  EXPECT_TRUE(explorer.ok()) << explorer.status();
  SimulateAll(workflow, *explorer);
  EXPECT_LE(explorer->jobs_asked(), explorer->jobs_known());
  return {explorer->explored(), explorer->best()};
}

TEST(Front, KeepsWhatNothingDominates) {
  const struct {
    std::vector<Objectives> added;
    std::vector<Objectives> expected;
  } rows[] = {
      {{}, {}},
      {{{1, 2, 0}, {2, 1, 0}}, {{1, 2, 0}, {2, 1, 0}}},
      {{{2, 2, 0}, {1, 2, 0}}, {{1, 2, 0}}},
      {{{1, 2, 0}, {2, 2, 0}}, {{1, 2, 0}}},
      {{{1, 1, 0}, {1, 1, 0}}, {{1, 1, 0}}},
      {{{3, 1, 5}, {2, 2, 5}, {1, 3, 4}, {2, 3, 5}}, {{3, 1, 5}, {2, 2, 5}, {1, 3, 4}}},
      {{{3, 3, 3}, {2, 4, 3}, {1, 1, 1}}, {{1, 1, 1}}},
  };
  for (const auto& row : rows) {
    Front front;
    for (const Objectives& each : row.added) front.Add(each);
    EXPECT_EQ(front.members(), row.expected);
    for (const Objectives& each : row.added)
      EXPECT_NE(front.DominatesAny(each), front.Contains(each));
  }
  EXPECT_FALSE(Dominates({1, 1, 1}, {1, 1, 1}));
  EXPECT_FALSE(Dominates({1, 2, 1}, {2, 1, 1}));
  EXPECT_TRUE(Dominates({1, 1, 1}, {1, 1, 2}));
}

// No pruned point is on the front or like the best: the result is as if all had been simulated.
TEST(Explorer, LosesNothingByPruning) {
  const PowerProfile power = TwoLevels();
  const std::vector<Point> points = PointsOf(
      {"nodes=2,4,8", "storage=0..2", "chunk=256K,64M", "system=dss,wass", "frequency=1200,2400"});
  size_t pruned = 0;
  for (const uint32_t draws : {0U, 20U}) {
    for (const Workflow& workflow : {Reduce(6, 20 * kMiB), Pipelines(6, 5 * kMiB)}) {
      Platform platform = BusyPlatform();
      platform.network.spread = 0.02;
      const Study all =
          Explore(workflow, platform, &power, points, {.draws = draws, .prune = false});
      const Study some = Explore(workflow, platform, &power, points, {.draws = draws});
      EXPECT_EQ(all.Count(Fate::kPruned), 0U);
      EXPECT_EQ(all.Count(Fate::kCollapsed), some.Count(Fate::kCollapsed));
      EXPECT_EQ(all.best, some.best);
      EXPECT_EQ(all.Marked(&Explored::on_front), some.Marked(&Explored::on_front));
      EXPECT_EQ(all.Marked(&Explored::like_best), some.Marked(&Explored::like_best));
      EXPECT_EQ(all.Marked(&Explored::undecided), some.Marked(&Explored::undecided));
      for (size_t i = 0; i < points.size(); ++i) {
        EXPECT_NE(some.explored[i].fate, Fate::kWaiting);
        if (some.explored[i].fate == Fate::kSimulated) {
          EXPECT_EQ(some.explored[i].outcome, all.explored[i].outcome) << i;
        }
        if (all.explored[i].outcome) {
          EXPECT_LE(all.explored[i].time_at_least, all.explored[i].outcome->time) << i;
        }
      }
      pruned += some.Count(Fate::kPruned);
    }
  }
  EXPECT_GT(pruned, 10U);
}

TEST(Explorer, MarksTheFrontAndWhatIsLikeTheBest) {
  const Workflow workflow = Pipelines(4, 20 * kMiB);
  const std::vector<Point> points = PointsOf({"slots=1", "hosts=1,2,4", "manager=shared,apart"});
  const Study study = Explore(workflow, BusyPlatform(), nullptr, points, {.draws = 20});
  ASSERT_TRUE(study.best);
  for (size_t i = 0; i < points.size(); ++i) {
    const Explored& each = study.explored[i];
    ASSERT_EQ(each.fate, Fate::kSimulated) << i;
    EXPECT_GE(each.outcome->time, study.explored[*study.best].outcome->time);
    const bool dominated = std::any_of(
        study.explored.begin(), study.explored.end(),
        [&](const Explored& other) { return Dominates(other.objectives, each.objectives); });
    EXPECT_EQ(each.on_front, !dominated) << i;
    if (each.on_front) {
      EXPECT_TRUE(each.time_s) << i;
    }
  }
  // Four hosts are the fastest. Points differ in whether messages to the manager wait behind its
  // host's bytes; the next test checks which can be told apart.
  const std::set<size_t> alike = study.Marked(&Explored::like_best);
  EXPECT_TRUE(alike.contains(*study.best));
  for (const size_t point : alike) EXPECT_TRUE(point == 4 || point == 5) << point;
}

double SecondsIn(const Workflow& workflow, const Platform& platform, const Point& point) {
  const auto prediction = Predict(workflow, platform, point.configuration);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return SecondsOf(prediction->turnaround);
}

// Compares with all draws of all points, without bounds: a slower point is slower in each of twenty
// draws. Most of the difference between draws is common to all points, so intervals may overlap
// nevertheless.
TEST(Explorer, ComparesDrawByDraw) {
  const Workflow workflow = Pipelines(3, 10 * kMiB);
  Platform links = PlainPlatform();
  links.network.spread = 0.1;
  size_t overlapping = 0, like_best = 0;
  for (const Platform& platform : {links, BusyPlatform()}) {
    const std::vector<Point> points =
        PointsOf({"system=dss", "hosts=2..4", "chunk=256K,1M,4M", "seed=1,2"});
    const Study study = Explore(workflow, platform, nullptr, points, {.draws = 20});
    std::vector<std::vector<double>> times(points.size());
    for (size_t i = 0; i < points.size(); ++i)
      for (uint64_t draw = 1; draw <= 20; ++draw)
        times[i].push_back(SecondsIn(workflow, Perturbed(platform, draw), points[i]));
    const std::vector<double>& best = times[*study.best];
    for (size_t i = 0; i < points.size(); ++i) {
      const Explored& each = study.explored[i];
      std::vector<double> ratios;
      for (size_t draw = 0; draw < 20; ++draw) ratios.push_back(times[i][draw] / best[draw]);
      EXPECT_EQ(each.like_best, NineOfTen(ratios)->low <= 1) << ToText(points[i]);
      EXPECT_FALSE(each.undecided);
      like_best += each.like_best ? 1 : 0;
      overlapping += !each.like_best && NineOfTen(times[i])->low <= NineOfTen(best)->high ? 1 : 0;
      if (!each.time_s) continue;
      EXPECT_EQ(each.time_s, NineOfTen(times[i])) << ToText(points[i]);
      std::vector<double> sorted = times[i];
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(each.median_s, (sorted[9] + sorted[10]) / 2) << ToText(points[i]);
    }
  }
  EXPECT_GT(overlapping, 0U);
  EXPECT_GT(like_best, 2U);
}

// Only chance distinguishes the points, of which there are more than are drawn.
TEST(Explorer, SaysWhatItHasNotDrawn) {
  const std::vector<Point> points = PointsOf({"system=dss", "hosts=2", "seed=1..80"});
  const Study study = Explore(Reduce(3, 2 * kMiB), BusyPlatform(), nullptr, points, {.draws = 20});
  size_t drawn = 0;
  for (const Explored& each : study.explored) {
    drawn += each.time_s ? 1 : 0;
    EXPECT_FALSE(each.time_s && each.undecided);
    EXPECT_FALSE(each.like_best && each.undecided);
    if (each.undecided) {
      EXPECT_GE(each.outcome->time, study.explored[*study.best].outcome->time);
    }
  }
  EXPECT_EQ(drawn, 64U);
  EXPECT_EQ(study.Marked(&Explored::undecided).size(), points.size() - drawn);
}

TEST(Explorer, SimulatesOnceWhatCannotDiffer) {
  const std::vector<Point> points =
      PointsOf({"hosts=3", "stripe=0,3", "chunk=64M,128M", "slots=0,4"});
  const Study study = Explore(Pipelines(3, kMiB), PlainPlatform(), nullptr, points, {.draws = 0});
  EXPECT_EQ(study.Count(Fate::kSimulated), 1U);
  EXPECT_EQ(study.Count(Fate::kCollapsed), points.size() - 1);
  for (const Explored& each : study.explored) EXPECT_EQ(each.same_as, 0U);
}

// Files that the second tasks read are best kept where they were written. Files without readers may
// lie anywhere.
TEST(Explorer, PlacesClassesOfFiles) {
  const Workflow workflow = Pipelines(4, 20 * kMiB);
  const std::vector<Point> points =
      PointsOf({"hosts=4", "system=wass,dss", "placement:a.*=stripe,local",
                "placement@third=default,local"});
  const Study study =
      Explore(workflow, BusyPlatform(), nullptr, points, {.draws = 0, .prune = false});
  EXPECT_EQ(study.Count(Fate::kSimulated), 5U);  // One is dss.
  EXPECT_EQ(points[*study.best].configuration.class_placements.at(":a.*"), "local");
  const auto seconds = [&](size_t i) { return study.explored[i].objectives.time_s; };
  for (const size_t i : {0U, 1U}) EXPECT_GT(seconds(i), 1.2 * seconds(i + 2));
  for (const size_t i : {5U, 6U, 7U}) EXPECT_EQ(study.explored[i].same_as, 4U);
  const std::vector<Point> unknown = PointsOf({"hosts=4", "placement:x.*=stripe,local"});
  EXPECT_NE(MessageOf(Explorer::Make(workflow, BusyPlatform(), nullptr, unknown, {}).status())
                .find("placement:x.*: no task of '' writes"),
            std::string::npos);
}

TEST(Explorer, TakesAFullStoreForAResult) {
  const Workflow workflow = Pipelines(4, 20 * kMiB);
  const std::vector<Point> points = PointsOf({"hosts=2", "store=32M,1G"});
  const Study study = Explore(workflow, BusyPlatform(), nullptr, points, {.draws = 20});
  EXPECT_NE(study.explored[0].outcome->failure.find(" full: '"), std::string::npos);
  EXPECT_FALSE(study.explored[0].on_front || study.explored[0].like_best);
  EXPECT_EQ(study.best, std::optional<size_t>(1));
  const Study none =
      Explore(workflow, BusyPlatform(), nullptr, PointsOf({"hosts=2", "store=32M"}), {.draws = 20});
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.Count(Fate::kSimulated), 1U);
}

// At half the speed the task takes twice as long: it draws less power, but more energy in total.
TEST(Explorer, WeighsFrequencies) {
  const PowerProfile power = TwoLevels();
  WorkflowMaker maker;
  maker.Task("compute", {}, {}, Seconds(10));
  const std::vector<Point> points = PointsOf({"hosts=1", "frequency=1200,2400"});
  const Platform platform = PlainPlatform();
  const Study study = Explore(maker.Build(), platform, &power, points, {.draws = 0});
  EXPECT_NEAR(study.explored[0].objectives.time_s, 20, 1e-6);
  EXPECT_NEAR(study.explored[0].objectives.joules, 20 * 80 + 20.0 / 4 * 20, 1e-3);
  EXPECT_NEAR(study.explored[1].objectives.time_s, 10, 1e-6);
  EXPECT_NEAR(study.explored[1].objectives.joules, 10 * 90 + 10.0 / 4 * 60, 1e-3);
  const auto missing = Explorer::Make(maker.Build(), platform, nullptr, points, {});
  EXPECT_NE(MessageOf(missing.status()).find("'frequency' needs a power file"), std::string::npos);
  const std::vector<Point> unknown = PointsOf({"hosts=1", "frequency=1800"});
  EXPECT_NE(MessageOf(Explorer::Make(maker.Build(), platform, &power, unknown, {}).status())
                .find("no level of 1800 MHz"),
            std::string::npos);
  Platform slow = platform;
  slow.host.speed = 0.0015;
  EXPECT_NE(MessageOf(Explorer::Make(maker.Build(), slow, &power, points, {}).status())
                .find("host.speed is 0.00075"),
            std::string::npos);
}

}  // namespace
}  // namespace mosa::predict
