#include "predictor/explore/explorer.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "predictor/explore/canonical.h"
#include "predictor/model/cost.h"
#include "predictor/model/platform_fields.h"

namespace mosa::predict {
namespace {

// The first batches are small: what they find spares later ones much.
constexpr size_t kBatchJobsMin = 8;
constexpr size_t kBatchJobsMax = 64;

double SecondsOf(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

// What may be off in a draw, so that less is faster.
std::vector<double> Burdens(const Platform& platform) {
  std::vector<double> burdens;
  VisitFields(platform, [&burdens](const char*, const char*, const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Cost>) {
      burdens.push_back(value.ns_per_call);
      burdens.push_back(value.ns_per_byte);
    }
  });
  burdens.push_back(1.0 / static_cast<double>(platform.host.in_bytes_per_second));
  burdens.push_back(1.0 / static_cast<double>(platform.host.out_bytes_per_second));
  return burdens;
}

// The least that any figure of `drawn` is of what was measured; at most 1.
double LeastFactor(const Platform& measured, const Platform& drawn) {
  const std::vector<double> before = Burdens(measured);
  const std::vector<double> after = Burdens(drawn);
  double least = 1;
  for (size_t i = 0; i < before.size(); ++i)
    if (before[i] > 0) least = std::min(least, after[i] / before[i]);
  return least;
}

template <typename T>
bool Overlap(const Interval<T>& a, const Interval<T>& b) {
  return a.low <= b.high && b.low <= a.high;
}

}  // namespace

Outcome OutcomeOf(const Prediction& prediction) {
  Outcome outcome;
  outcome.time = prediction.turnaround;
  for (const PredictedMachine& machine : prediction.machines) outcome.use += machine.use;
  outcome.failure = prediction.failure.value_or("");
  return outcome;
}

Result<Explorer> Explorer::Make(const Workflow& workflow, const Platform& platform,
                                const PowerProfile* power, const std::vector<Point>& points,
                                const ExploreOptions& options) {
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
          "the space: 'frequency' needs a power file, which says how fast "
          "processors are at each");
    }
    Level& level = levels_[point.frequency_mhz];
    const Platform at_level = AtLevel(platform, measured);
    for (uint32_t draw = 0; draw <= options_.draws; ++draw) {
      level.platforms.push_back(draw == 0 ? at_level : Perturbed(at_level, draw));
      level.powers.push_back(draw == 0 ? measured : Perturbed(measured, draw));
      const Platform& drawn = level.platforms.back();
      level.least_together.push_back(LeastWorkOf(workflow_, drawn, false));
      level.least_apart.push_back(LeastWorkOf(workflow_, drawn, true));
      level.least_factor = std::min(level.least_factor, LeastFactor(at_level, drawn));
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

void Explorer::FindBounds() {
  for (const size_t i : queue_) {
    const Configuration& configuration = points_[i].configuration;
    const Level& level = LevelOf(i);
    const auto& work = configuration.storage_hosts > 0 ? level.least_apart : level.least_together;
    const Duration time = TimeAtLeast(work[0], level.platforms[0], configuration);
    Bound& bound = bounds_[i];
    bound.objectives.time_s = SecondsOf(time);
    bound.objectives.node_hours = NodeHours(HostsInAll(configuration), time);
    if (with_energy_)
      bound.objectives.joules =
          EnergyAtLeast(work[0], level.platforms[0], configuration, level.powers[0], time);
    bound.least_draw_s = bound.objectives.time_s;
    for (uint32_t draw = 1; draw <= options_.draws; ++draw)
      bound.least_draw_s =
          std::min(bound.least_draw_s,
                   SecondsOf(TimeAtLeast(work[draw], level.platforms[draw], configuration)));
    explored_[i].time_at_least = time;
  }
  std::sort(queue_.begin(), queue_.end(), [this](size_t a, size_t b) {
    const double time_a = bounds_[a].objectives.time_s;
    const double time_b = bounds_[b].objectives.time_s;
    return time_a != time_b ? time_a > time_b : a > b;
  });
}

std::vector<Job> Explorer::NextBatch() {
  for (;;) {
    std::vector<Job> jobs = NextPoints();
    if (jobs.empty() && best_) jobs = NextDraws();
    if (jobs.empty() && best_ && Revive()) continue;
    jobs_asked_ += jobs.size();
    if (jobs.empty()) Judge();
    return jobs;
  }
}

std::vector<Job> Explorer::NextPoints() {
  std::vector<Job> jobs;
  const size_t most = std::clamp(jobs_asked_, kBatchJobsMin, kBatchJobsMax);
  while (!queue_.empty() && jobs.size() < most) {
    const size_t point = queue_.back();
    queue_.pop_back();
    if (IsPruned(point))
      explored_[point].fate = Fate::kPruned;
    else
      jobs.push_back({point, 0});
  }
  return jobs;
}

bool Explorer::IsPruned(size_t point) const {
  const Bound& bound = bounds_[point];
  return options_.prune && best_ && bound.least_draw_s > limit_s_ &&
         front_.DominatesAny(bound.objectives);
}

// Of the best, so that its interval is known; then of all that may matter beside it, once no pruned
// point can.
std::vector<Job> Explorer::NextDraws() {
  std::vector<Job> jobs;
  if (options_.draws == 0) return jobs;
  AskForDraws(*best_, jobs);
  if (!jobs.empty()) return jobs;
  limit_s_ = explored_[*best_].objectives.time_s;
  std::vector<double> times;
  for (const Outcome& draw : draws_.at(*best_))
    if (draw.failure.empty()) times.push_back(SecondsOf(draw.time));
  if (const auto interval = NineOfTen(std::move(times)); interval)
    limit_s_ = std::max(limit_s_, interval->high);
  if (Revive()) return NextPoints();
  for (; candidate_ < points_.size() && jobs.size() < kBatchJobsMax; ++candidate_) {
    const size_t i = candidate_;
    if (!EndsWell(i)) continue;
    const Objectives& own = explored_[i].objectives;
    if (front_.Contains(own) || own.time_s * LevelOf(i).least_factor <= limit_s_)
      AskForDraws(i, jobs);
  }
  return jobs;
}

// Puts pruned points back that may not be told apart from the best after all.
bool Explorer::Revive() {
  if (revived_at_s_ == limit_s_) return false;
  revived_at_s_ = limit_s_;
  const size_t before = queue_.size();
  for (size_t i = 0; i < points_.size(); ++i) {
    if (explored_[i].fate != Fate::kPruned || bounds_[i].least_draw_s > limit_s_) continue;
    explored_[i].fate = Fate::kWaiting;
    queue_.push_back(i);
  }
  return queue_.size() > before;
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
  candidate_ = 0;
  const auto rank = [this](size_t i) { return std::pair(explored_[i].outcome->time, i); };
  if (best_ && rank(*best_) < rank(point)) return;
  best_ = point;
  limit_s_ = explored.objectives.time_s;
  revived_at_s_.reset();
}

void Explorer::Judge() {
  for (const auto& [point, draws] : draws_) {
    Explored& explored = explored_[point];
    const Level& level = LevelOf(point);
    const uint32_t hosts = HostsInAll(points_[point].configuration);
    std::vector<double> times, joules;
    for (size_t i = 0; i < draws.size(); ++i) {
      if (!draws[i].failure.empty()) continue;
      times.push_back(SecondsOf(draws[i].time));
      joules.push_back(EnergyOf(level.powers[i + 1], level.platforms[i + 1].host.cores, hosts,
                                draws[i].time, draws[i].use));
    }
    explored.draws_failed = static_cast<uint32_t>(draws.size() - times.size());
    explored.time_s = NineOfTen(std::move(times));
    if (with_energy_) explored.joules = NineOfTen(std::move(joules));
  }
  for (size_t i = 0; best_ && i < points_.size(); ++i) {
    if (!EndsWell(i)) continue;
    Explored& explored = explored_[i];
    const Explored& best = explored_[*best_];
    explored.on_front = front_.Contains(explored.objectives);
    explored.like_best = explored.time_s && best.time_s
                             ? Overlap(*explored.time_s, *best.time_s)
                             : explored.objectives.time_s == best.objectives.time_s;
  }
}

const Platform& Explorer::PlatformOf(const Job& job) const {
  return LevelOf(job.point).platforms[job.draw];
}

size_t Explorer::jobs_known() const {
  return jobs_asked_ + queue_.size() + (draws_.empty() ? options_.draws : 0);
}

}  // namespace mosa::predict
