// Explorer: which configurations of a space are worth choosing. It says what to simulate next and
// is told the outcomes; whoever simulates may do so on many cores.
//
// 1. Points that cannot differ (canonical.h) are simulated once.
// 2. Platforms are drawn from their figures' spread, the same draws for all points. So times are
//    compared draw by draw: a point is *slower* than the best if it takes longer in all draws but
//    less than the twentieth part (draws.h); else it cannot be told apart from the best. The best
//    is the fastest on the platform as measured, draw 0. What the model is off by (ModelFactor())
//    is the same factor for all points in a draw: it is in the points' intervals, where no task
//    computes, and left out of what tells them apart.
// 3. A point is *ruled out* if in every draw, and in draw 0, its lower bound (lower_bound.h) is
//    above what the best takes there. Then its own time is, in every draw: it is slower. The front
//    is drawn, and what is not ruled out, the fastest first, until there were more draws than
//    points, and those of 64 points; the rest is *undecided*.
// 4. Points are simulated in the order of their bounds. One is *pruned*, which is never simulated,
//    if it is ruled out and its bounds in time, cost and energy are dominated by what a simulated
//    point takes: then its own figures are, and it is not on the front. As long as the best's draws
//    are not known, draw 0 alone counts; when they are, what they do not rule out is put back. That
//    changes neither best nor front: in draw 0 it takes longer than the best and is dominated.
//
// Batches do not depend on how many cores there are, so the same questions are asked in the same
// order and the same points pruned. Pure; one owner, one thread.
#ifndef MOSA_PREDICTOR_EXPLORE_EXPLORER_H_
#define MOSA_PREDICTOR_EXPLORE_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "predictor/explore/front.h"
#include "predictor/explore/lower_bound.h"
#include "predictor/explore/space.h"
#include "predictor/model/draws.h"
#include "predictor/model/energy.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {

// What counts of a prediction.
struct Outcome {
  Duration time;
  Duration computing;   // As Prediction::computing.
  HostUse use;          // All hosts together.
  std::string failure;  // Empty: the run ends well.
  bool operator==(const Outcome&) const = default;
};
Outcome OutcomeOf(const Prediction& prediction);

// One simulation: a point (by its index) on the platform as measured (draw 0), or on one drawn.
struct Job {
  size_t point = 0;
  uint32_t draw = 0;
};

struct ExploreOptions {
  uint32_t draws = 20;
  bool prune = true;
};

enum class Fate : uint8_t {
  kWaiting,
  kCollapsed,  // It cannot differ from another point.
  kPruned,
  kSimulated,
};

struct Explored {
  Fate fate = Fate::kWaiting;
  size_t same_as = 0;      // If collapsed: the point that was simulated for it.
  Duration time_at_least;  // By its lower bound, unless collapsed; 0: not known.
  double joules_at_least = 0;
  std::optional<Outcome> outcome;  // If simulated. The rest: if it also ends well.
  Objectives objectives;
  std::optional<Interval<double>> time_s;  // With what the model is off by,
  std::optional<Interval<double>> joules;  // both.
  std::optional<double> median_s;          // Over the draws' times.
  uint32_t draws_failed = 0;
  bool on_front = false;
  bool like_best = false;  // Cannot be told apart from the best; the best itself too.
  bool undecided = false;  // Not drawn, though nothing rules out that it is.
};

class Explorer {
 public:
  // Everything outlives this. `power` may be null: then energy is no objective. NotFound: a point's
  // frequency is none of its levels. InvalidArgument also: as WithPlacements() (class_placement.h).
  // Precondition: all points speak of the same classes of files, as Enumerate() makes them.
  static Result<Explorer> Make(const Workflow& workflow, const Platform& platform,
                               const PowerProfile* power, const std::vector<Point>& points,
                               const ExploreOptions& options);

  // What to simulate next; nothing: all is known. Precondition: all outcomes of the batch before
  // were taken.
  std::vector<Job> NextBatch();
  void Take(const Job& job, Outcome outcome);

  // What the job's point is simulated on.
  const Platform& PlatformOf(const Job& job) const;
  const Configuration& ConfigurationOf(const Job& job) const {
    return points_[job.point].configuration;
  }

  // How many simulations have been asked for, and how many will be at most, for all that is known.
  size_t jobs_asked() const { return jobs_asked_; }
  size_t jobs_known() const;

  // By point. Complete when there is no more batch.
  const std::vector<Explored>& explored() const { return explored_; }
  // The point with the least time in draw 0 that ends well; none if all fail.
  std::optional<size_t> best() const { return best_; }

 private:
  struct Level {
    std::vector<Platform> platforms;  // By draw.
    std::vector<PowerLevel> powers;   // By draw.
    // By draw; storage on the tasks' hosts, and apart.
    std::vector<LeastWork> least_together, least_apart;
  };

  Explorer(const Workflow& workflow, const std::vector<Point>& points,
           const ExploreOptions& options)
      : workflow_(workflow), points_(points), options_(options) {}
  Status AddLevels(const Platform& platform, const PowerProfile* power);
  void Collapse(const Platform& platform);
  void FindBounds();
  std::vector<Job> NextPoints();
  std::vector<Job> NextDraws();
  const LeastWork& LeastOf(size_t point, uint32_t draw) const;
  Duration TimeAtLeastOf(size_t point, uint32_t draw) const;
  bool IsRuledOut(size_t point) const;
  bool Revive();
  void AskForDraws(size_t point, std::vector<Job>& jobs);
  void Settle(size_t point);
  void Judge();
  void SumDraws(size_t point, const std::vector<Outcome>& draws);
  bool IsSlower(const std::vector<Outcome>& draws) const;
  const Level& LevelOf(size_t point) const { return levels_.at(points_[point].frequency_mhz); }
  bool EndsWell(size_t point) const;

  const Workflow& workflow_;
  const std::vector<Point>& points_;
  const ExploreOptions options_;
  bool with_energy_ = false;
  std::map<uint32_t, Level> levels_;  // By frequency.
  std::vector<Explored> explored_;
  std::vector<Objectives> bounds_;
  std::vector<size_t> queue_;  // To be simulated, the next at the back.
  std::map<size_t, std::vector<Outcome>> draws_;
  Front front_;
  std::optional<size_t> best_;
  size_t jobs_asked_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_EXPLORER_H_
