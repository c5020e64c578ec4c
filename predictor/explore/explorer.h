// Explorer: finds which configurations of a space are worth choosing. It says what to simulate next
// and receives the outcomes; the caller may simulate on many cores.
//
// 1. Points that cannot differ (canonical.h) are simulated once.
// 2. Platforms are drawn from their figures' spread, with the same draws for all points, so that
//    times are compared draw by draw. The best point is the fastest on the platform as measured,
//    draw 0. A point is *slower* than the best if fewer than a twentieth of the draws say otherwise
//    (draws.h); else it cannot be told apart from the best. The model's error (ModelFactor()) is
//    the same factor for all points in a draw. It widens the points' intervals, except where tasks
//    compute, and is left out of comparisons.
// 3. A point is *ruled out* if in draw 0, and in every draw, its lower bound (lower_bound.h) is
//    above the best's time there. Its own time then is, too: it is slower. The front is drawn
//    first, then points that are not ruled out, the fastest first: max(64, points / draws) at most.
//    The rest is *undecided*.
// 4. Points are simulated in the order of their bounds. A point is *pruned*, and never simulated,
//    if it is ruled out and its bounds in time, cost and energy are dominated by a simulated
//    point's figures: then its own figures are, too, and it is not on the front. Until the best's
//    draws are known, draw 0 alone counts. When they are known, points that they do not rule out
//    are put back. That changes neither best nor front, since in draw 0 such a point takes longer
//    than the best and is dominated.
//
// Batches do not depend on the number of cores, so that every run asks the same questions in the
// same order and prunes the same points. Pure. Not thread-safe: one owner, one thread.
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

// The part of a prediction that counts here.
struct Outcome {
  Duration time;
  Duration computing;   // As Prediction::computing.
  HostUse use;          // All hosts together.
  std::string failure;  // Empty: the run ends well.
  bool operator==(const Outcome&) const = default;
};
Outcome OutcomeOf(const Prediction& prediction);

// One simulation: a point, by index, on the measured platform (draw 0) or on a drawn one.
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
  kCollapsed,  // Cannot differ from another point.
  kPruned,
  kSimulated,
};

struct Explored {
  Fate fate = Fate::kWaiting;
  size_t same_as = 0;      // If collapsed: the point simulated in its place.
  Duration time_at_least;  // Its lower bound; 0 if collapsed.
  double joules_at_least = 0;
  // Set if simulated. The fields below are valid if the run also ends well.
  std::optional<Outcome> outcome;
  Objectives objectives;
  std::optional<Interval<double>> time_s;  // Includes the model's error.
  std::optional<Interval<double>> joules;  // Includes the model's error.
  std::optional<double> median_s;          // Over the draws' times.
  uint32_t draws_failed = 0;
  bool on_front = false;
  bool like_best = false;  // Cannot be told apart from the best; true of the best itself.
  bool undecided = false;  // Not drawn, but not ruled out either.
};

class Explorer {
 public:
  // All arguments must outlive this. `power` may be null; energy is then no objective. NotFound: a
  // point's frequency is not a level of `power`. InvalidArgument: a frequency without `power`, an
  // invalid platform, or an error of WithPlacements() (class_placement.h). Precondition: all points
  // name the same classes of files, as Enumerate() makes them.
  static Result<Explorer> Make(const Workflow& workflow, const Platform& platform,
                               const PowerProfile* power, const std::vector<Point>& points,
                               const ExploreOptions& options);

  // Returns what to simulate next; empty: everything is known. Precondition: all outcomes of the
  // previous batch were taken.
  std::vector<Job> NextBatch();
  void Take(const Job& job, Outcome outcome);

  // The platform on which the job's point is simulated.
  const Platform& PlatformOf(const Job& job) const;
  const Configuration& ConfigurationOf(const Job& job) const {
    return points_[job.point].configuration;
  }

  // Simulations asked for, and the total as far as it is known now.
  size_t jobs_asked() const { return jobs_asked_; }
  size_t jobs_known() const;

  // By point. Complete once NextBatch() has returned an empty batch.
  const std::vector<Explored>& explored() const { return explored_; }
  // The point with the shortest time in draw 0 that ends well; nothing if all fail.
  std::optional<size_t> best() const { return best_; }

 private:
  struct Level {
    std::vector<Platform> platforms;  // By draw.
    std::vector<PowerLevel> powers;   // By draw.
    // By draw; for storage on the tasks' hosts, and apart.
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
