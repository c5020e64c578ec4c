#include "predictor/explore/explorer.h"

#include <algorithm>
#include <tuple>

#include "predictor/explore/canonical.h"
#include "predictor/model/cost.h"
#include "predictor/run/class_placement.h"

namespace mosa::predict {
namespace {

// The first batches are small, since their outcomes let later ones prune more.
constexpr size_t kBatchJobsMin = 16;
constexpr size_t kBatchJobsMax = 1024;
constexpr size_t kDrawnPointsMin = 64;

}  // namespace

Outcome OutcomeOf(const Prediction& prediction) {
  Outcome outcome;
  outcome.time = prediction.turnaround;
  outcome.computing = prediction.computing;
  outcome.use = UseOfAll(prediction);
  outcome.failure = prediction.failure.value_or("");
  return outcome;
}

Result<Explorer> Explorer::Make(const Workflow& workflow, const Platform& platform,
                                const PowerProfile* power, const std::vector<Point>& points,
                                const ExploreOptions& options) {
  if (!points.empty())
    MOSA_RETURN_IF_ERROR(WithPlacements(workflow, points.front().configuration).status());
  Explorer explorer(workflow, points, options);
  explorer.explored_.resize(points.size());
  explorer.bounds_.resize(points.size());
  MOSA_RETURN_IF_ERROR(explorer.AddLevels(platform, power));
  explorer.Collapse(platform);
  explorer.FindBounds();
  return explorer;
}

Status Explorer::AddLevels(const Platform& platform, const PowerProfile* power) {
  with_energy_ = power != nullptr;
  for (const Point& point : points_) {
    if (levels_.contains(point.frequency_mhz)) continue;
    PowerLevel measured;
    if (power != nullptr) {
      MOSA_ASSIGN_OR_RETURN(measured, LevelAt(*power, point.frequency_mhz));
    } else if (point.frequency_mhz != 0) {
      return InvalidArgumentError(
          "the space: 'frequency' needs a power file, which gives the processors' speed at each "
          "frequency");
    }
    Level& level = levels_[point.frequency_mhz];
    const Platform at_level = AtLevel(platform, measured);
    MOSA_RETURN_IF_ERROR(Check(at_level));
    for (uint32_t draw = 0; draw <= options_.draws; ++draw) {
      level.platforms.push_back(Perturbed(at_level, draw));
      level.powers.push_back(Perturbed(measured, draw));
      const Platform& drawn = level.platforms.back();
      level.least_together.push_back(LeastWorkOf(workflow_, drawn, false));
      level.least_apart.push_back(LeastWorkOf(workflow_, drawn, true));
    }
  }
  return OkStatus();
}

void Explorer::Collapse(const Platform& platform) {
  const Canonical canonical(workflow_, platform);
  std::map<Point, size_t> first;
  for (size_t i = 0; i < points_.size(); ++i) {
    const auto [found, is_new] = first.emplace(canonical.Of(points_[i]), i);
    explored_[i].same_as = found->second;
    if (is_new)
      queue_.push_back(i);
    else
      explored_[i].fate = Fate::kCollapsed;
  }
}

const LeastWork& Explorer::LeastOf(size_t point, uint32_t draw) const {
  const Level& level = LevelOf(point);
  const bool apart = points_[point].configuration.storage_hosts > 0;
  return (apart ? level.least_apart : level.least_together)[draw];
}

Duration Explorer::TimeAtLeastOf(size_t point, uint32_t draw) const {
  return TimeAtLeast(LeastOf(point, draw), LevelOf(point).platforms[draw],
                     points_[point].configuration);
}

void Explorer::FindBounds() {
  for (const size_t i : queue_) {
    const Configuration& configuration = points_[i].configuration;
    const Level& level = LevelOf(i);
    const Duration time = TimeAtLeastOf(i, 0);
    bounds_[i] = {SecondsOf(time), NodeHours(HostsInAll(configuration), time), 0};
    if (with_energy_)
      bounds_[i].joules =
          EnergyAtLeast(LeastOf(i, 0), level.platforms[0], configuration, level.powers[0], time);
    explored_[i].time_at_least = time;
    explored_[i].joules_at_least = bounds_[i].joules;
  }
  std::sort(queue_.begin(), queue_.end(), [this](size_t a, size_t b) {
    return std::pair(explored_[a].time_at_least, a) > std::pair(explored_[b].time_at_least, b);
  });
}

std::vector<Job> Explorer::NextBatch() {
  std::vector<Job> jobs = NextPoints();
  if (jobs.empty() && best_ && options_.draws > 0) jobs = NextDraws();
  jobs_asked_ += jobs.size();
  if (jobs.empty()) Judge();
  return jobs;
}

std::vector<Job> Explorer::NextPoints() {
  std::vector<Job> jobs;
  const size_t most = std::clamp(jobs_asked_ / 2, kBatchJobsMin, kBatchJobsMax);
  while (!queue_.empty() && jobs.size() < most) {
    const size_t point = queue_.back();
    queue_.pop_back();
    if (options_.prune && best_ && front_.DominatesAny(bounds_[point]) && IsRuledOut(point))
      explored_[point].fate = Fate::kPruned;
    else
      jobs.push_back({point, 0});
  }
  return jobs;
}

// Uses the draws of the best that are known so far.
bool Explorer::IsRuledOut(size_t point) const {
  if (TimeAtLeastOf(point, 0) <= explored_[*best_].outcome->time) return false;
  const auto draws = draws_.find(*best_);
  for (uint32_t draw = 1; draws != draws_.end() && draw <= options_.draws; ++draw) {
    const Outcome& best = draws->second[draw - 1];
    if (best.failure.empty() && TimeAtLeastOf(point, draw) <= best.time) return false;
  }
  return true;
}

// Asks for the best's draws first, then for all points that may matter beside it, once no pruned
// point can.
std::vector<Job> Explorer::NextDraws() {
  std::vector<Job> jobs;
  if (draws_.empty()) {
    AskForDraws(*best_, jobs);
    return jobs;
  }
  if (Revive()) return NextPoints();
  std::vector<std::tuple<bool, Duration, size_t>> candidates;
  for (size_t i = 0; i < points_.size(); ++i) {
    if (!EndsWell(i)) continue;
    const bool on_front = front_.Contains(explored_[i].objectives);
    if (on_front || !IsRuledOut(i))
      candidates.emplace_back(!on_front, explored_[i].outcome->time, i);
  }
  std::sort(candidates.begin(), candidates.end());
  const size_t most = std::max(kDrawnPointsMin, points_.size() / options_.draws);
  candidates.resize(std::min(candidates.size(), most));
  for (const auto& candidate : candidates) AskForDraws(std::get<size_t>(candidate), jobs);
  return jobs;
}

bool Explorer::Revive() {
  for (size_t i = 0; i < points_.size(); ++i) {
    if (explored_[i].fate != Fate::kPruned || IsRuledOut(i)) continue;
    explored_[i].fate = Fate::kWaiting;
    queue_.push_back(i);
  }
  return !queue_.empty();
}

void Explorer::AskForDraws(size_t point, std::vector<Job>& jobs) {
  const auto [found, is_new] = draws_.try_emplace(point, options_.draws);
  if (!is_new) return;
  for (uint32_t draw = 1; draw <= options_.draws; ++draw) jobs.push_back({point, draw});
}

void Explorer::Take(const Job& job, Outcome outcome) {
  if (job.draw > 0) {
    draws_.at(job.point)[job.draw - 1] = std::move(outcome);
    return;
  }
  explored_[job.point].fate = Fate::kSimulated;
  explored_[job.point].outcome = std::move(outcome);
  if (EndsWell(job.point)) Settle(job.point);
}

bool Explorer::EndsWell(size_t point) const {
  return explored_[point].outcome && explored_[point].outcome->failure.empty();
}

void Explorer::Settle(size_t point) {
  Explored& explored = explored_[point];
  const Configuration& configuration = points_[point].configuration;
  const Duration time = explored.outcome->time;
  const uint32_t hosts = HostsInAll(configuration);
  const Level& level = LevelOf(point);
  explored.objectives = {SecondsOf(time), NodeHours(hosts, time), 0};
  if (with_energy_)
    explored.objectives.joules = EnergyOf(level.powers[0], level.platforms[0].host.cores, hosts,
                                          time, explored.outcome->use);
  front_.Add(explored.objectives);
  const auto rank = [this](size_t i) { return std::pair(explored_[i].outcome->time, i); };
  if (best_ && rank(*best_) < rank(point)) return;
  best_ = point;
}

void Explorer::Judge() {
  for (const auto& [point, draws] : draws_) SumDraws(point, draws);
  for (size_t i = 0; best_ && i < points_.size(); ++i) {
    if (!EndsWell(i)) continue;
    Explored& explored = explored_[i];
    explored.on_front = front_.Contains(explored.objectives);
    const auto draws = draws_.find(i);
    if (draws != draws_.end())
      explored.like_best = !IsSlower(draws->second);
    else if (options_.draws == 0)
      explored.like_best = explored.outcome->time == explored_[*best_].outcome->time;
    else
      explored.undecided = !IsRuledOut(i);
  }
}

void Explorer::SumDraws(size_t point, const std::vector<Outcome>& draws) {
  Explored& explored = explored_[point];
  const Level& level = LevelOf(point);
  const uint32_t hosts = HostsInAll(points_[point].configuration);
  std::vector<double> times, intervals, joules;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (!draws[i].failure.empty()) continue;
    const double factor =
        FactorOfWhole(ModelFactor(level.platforms[0], i + 1), draws[i].time, draws[i].computing);
    times.push_back(SecondsOf(draws[i].time));
    intervals.push_back(factor * times.back());
    joules.push_back(factor * EnergyOf(level.powers[i + 1], level.platforms[i + 1].host.cores,
                                       hosts, draws[i].time, draws[i].use));
  }
  explored.draws_failed = static_cast<uint32_t>(draws.size() - times.size());
  if (!times.empty()) explored.median_s = Median(times);
  explored.time_s = NineOfTen(std::move(intervals));
  if (with_energy_) explored.joules = NineOfTen(std::move(joules));
}

// Returns false if too few draws end well for both.
bool Explorer::IsSlower(const std::vector<Outcome>& draws) const {
  const std::vector<Outcome>& of_best = draws_.at(*best_);
  size_t both = 0, not_slower = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (!draws[i].failure.empty() || !of_best[i].failure.empty()) continue;
    ++both;
    not_slower += draws[i].time <= of_best[i].time ? 1 : 0;
  }
  return both >= kDrawsMin && not_slower < BeyondNineOfTen(both);
}

const Platform& Explorer::PlatformOf(const Job& job) const {
  return LevelOf(job.point).platforms[job.draw];
}

size_t Explorer::jobs_known() const {
  return jobs_asked_ + queue_.size() + (draws_.empty() ? options_.draws : 0);
}

}  // namespace mosa::predict
