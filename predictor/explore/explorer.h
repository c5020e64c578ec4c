// Explorer: which configurations of a space are worth choosing. It says what to simulate next and
// is told the outcomes; whoever simulates may do so on many cores.
//
// 1. Points that cannot differ (canonical.h) are simulated once.
// 2. Points are simulated in the order of their lower bounds (lower_bound.h). A point is *pruned*,
//    which is never simulated, if its bounds in time, cost and energy are dominated by what a
//    simulated point takes: then its own figures are, and it is not on the front; and if besides no
//    draw of its time could be within the best one's interval.
// 3. Platforms are drawn from their figures' spread, the same draws for all points. The points on
//    the front get an interval, and so do those whose time could be within the best one's interval:
//    if no figure of any draw is less than f of what was measured, a time below f of the simulated
//    one is ruled out. (That is a rule of thumb: a schedule may happen to be better by more.)
//    What cannot be told apart from the best are the points whose intervals overlap its own.
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
  HostUse use;          // Of all hosts.
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
  size_t same_as = 0;  // If collapsed: the point that was simulated for it.
  Duration time_at_least;
  std::optional<Outcome> outcome;  // If simulated. The rest: if it also ends well.
  Objectives objectives;
  std::optional<Interval<double>> time_s;
  std::optional<Interval<double>> joules;
  uint32_t draws_failed = 0;
  bool on_front = false;
  bool like_best = false;  // Cannot be told apart from the best; the best itself too.
};

class Explorer {
 public:
  // Everything outlives this. `power` may be null: then energy is no objective. NotFound: a point's
  // frequency is none of its levels.
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
  // The point with the least time that ends well; none if all fail.
  std::optional<size_t> best() const { return best_; }

 private:
  struct Level {
    std::vector<Platform> platforms;  // By draw.
    std::vector<PowerLevel> powers;   // By draw.
    // By draw; storage on the tasks' hosts, and apart.
    std::vector<LeastWork> least_together, least_apart;
    double least_factor = 1;
  };
  struct Bound {
    Objectives objectives;
    double least_draw_s = 0;  // No draw's time is below.
  };

  Explorer(const Workflow& workflow, const std::vector<Point>& points,
           const ExploreOptions& options)
      : workflow_(workflow), points_(points), options_(options) {}
  Status AddLevels(const Platform& platform, const PowerProfile* power);
  void Collapse(const Platform& platform);
  void FindBounds();
  std::vector<Job> NextPoints();
  std::vector<Job> NextDraws();
  bool IsPruned(size_t point) const;
  bool Revive();
  void AskForDraws(size_t point, std::vector<Job>& jobs);
  void Settle(size_t point);
  void Judge();
  const Level& LevelOf(size_t point) const { return levels_.at(points_[point].frequency_mhz); }
  bool EndsWell(size_t point) const;

  const Workflow& workflow_;
  const std::vector<Point>& points_;
  const ExploreOptions options_;
  bool with_energy_ = false;
  std::map<uint32_t, Level> levels_;  // By frequency.
  std::vector<Explored> explored_;
  std::vector<Bound> bounds_;
  std::vector<size_t> queue_;  // To be simulated, the next at the back.
  std::map<size_t, std::vector<Outcome>> draws_;
  Front front_;
  std::optional<size_t> best_;
  double limit_s_ = 0;  // The upper end of the best one's interval, as far as it is known.
  std::optional<double> revived_at_s_;  // The limit for which pruned points were looked at.
  size_t candidate_ = 0;                // Points below have the draws that they need.
  size_t jobs_asked_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_EXPLORER_H_
