#include "predictor/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/rng.h"
#include "predictor/model/cost.h"
#include "predictor/plan/estimate.h"
#include "predictor/plan/file_places.h"
#include "predictor/plan/partition.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/streams.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

constexpr double kImbalances[] = {0.02, 0.1, 0.3};
constexpr uint64_t kDivisionsOfEach = 2;
// How many runs the search simulates, besides the draws of the run without a plan and of the best
// plans: so many that they have this many tasks together, within these limits.
constexpr size_t kTasksSimulatedMax = 40'000;
constexpr size_t kSimulationsMin = 4;
constexpr size_t kSimulationsMax = 300;
// From so many on, a candidate is tried on two draws and not on one, and so many of the best are
// simulated in all draws and not only the first.
constexpr size_t kSimulationsForTwoDraws = 60;
constexpr size_t kSimulationsForFinals = 200;
constexpr size_t kFinalistsMax = 4;
// Moves that are simulated at a time, and after how many times without a gain the search ends.
constexpr size_t kMovesAtOnce = 8;
constexpr uint32_t kFailedRoundsMax = 5;
// From how many candidates steps are estimated, and how many: so many that they have this many
// tasks together, and from each so many.
constexpr size_t kClimbs = 3;
constexpr size_t kTasksEstimatedMax = 3'000'000;
constexpr size_t kEstimatesAtOnce = 16;
constexpr size_t kEstimatesMin = 50;
constexpr size_t kEstimatesMax = 2'000;
// A task waits for its host this long and more, if the plan lets it wait at all.
constexpr Duration kPatienceMin = Seconds(1);
// In trials it never leaves it: what it needs is not known yet.
constexpr Duration kPatienceOfTrials = Seconds(100'000'000);

struct Candidate {
  Places division;
  Ways ways;
  std::shared_ptr<const Workflow> workflow;
};
// Draws that failed, and the time of all: less is better.
using Rank = std::pair<size_t, int64_t>;

std::vector<double> SharesOf(const Platform& platform, const Configuration& configuration) {
  std::vector<double> shares(configuration.hosts);
  double sum = 0;
  for (uint32_t i = 0; i < shares.size(); ++i) {
    const HostPlatform host = HostOf(platform, configuration, i);
    const uint32_t slots = SlotsOf(platform, configuration, i);
    shares[i] = std::min(slots, host.cores) * host.speed;
    sum += shares[i];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

// What each task takes apart from moving bytes, on a host of speed 1, times its slots.
std::vector<double> SecondsOfTasks(const Workflow& workflow, const Prediction& prediction,
                                   const Platform& platform, const Configuration& configuration) {
  std::vector<double> seconds;
  for (const PredictedTask& task : prediction.tasks) {
    const double read = static_cast<double>(task.read_local + task.read_cached);
    const double all = read + static_cast<double>(task.read_remote);
    const double near = all > 0 ? read / all : 1;
    const double speed = HostOf(platform, configuration, task.host.value).speed;
    const double alone = speed * SecondsOf(task.launching + task.computing) +
                         SecondsOf(task.writing) + near * SecondsOf(task.reading);
    const uint32_t slots = SlotsOf(platform, configuration, task.host.value);
    seconds.push_back(alone * std::min(workflow.tasks[seconds.size()].needs.cores, slots));
  }
  return seconds;
}

Places PlacesOf(const Prediction& prediction) {
  Places places;
  for (const PredictedTask& task : prediction.tasks) places.push_back(task.host);
  return places;
}

bool ReadsStreamsOf(const Task& reader, TaskIndex writer) {
  return std::ranges::binary_search(reader.stream_writers, writer);
}

// The tasks that the end of the run waits for: the last one, and before each that on whose end it
// has waited, for its files or for its slot.
std::vector<TaskIndex> CriticalTasks(const Workflow& workflow, const Places& hosts,
                                     const RunEstimate& run) {
  const auto end_of = [&](TaskIndex task) { return run.ends[task.value]; };
  std::map<HostIndex, std::vector<TaskIndex>> by_host;
  std::optional<TaskIndex> last;
  for (uint32_t i = 0; i < run.ends.size(); ++i) {
    by_host[hosts[i]].push_back(TaskIndex{i});
    if (!last || end_of(TaskIndex{i}) > end_of(*last)) last = TaskIndex{i};
  }
  for (auto& [host, tasks] : by_host)
    std::sort(tasks.begin(), tasks.end(),
              [&](TaskIndex a, TaskIndex b) { return end_of(a) < end_of(b); });
  std::vector<TaskIndex> critical;
  while (last) {
    critical.push_back(*last);
    const double start = run.starts[last->value];
    std::optional<TaskIndex> before;
    for (const TaskIndex each : workflow.tasks[last->value].predecessors)
      if (!before || end_of(each) > end_of(*before)) before = each;
    const std::vector<TaskIndex>& beside = by_host[hosts[last->value]];
    auto slot = std::upper_bound(beside.begin(), beside.end(), start,
                                 [&](double at, TaskIndex each) { return at < end_of(each); });
    if (slot != beside.begin() && (!before || end_of(*std::prev(slot)) > end_of(*before)))
      before = *std::prev(slot);
    // Tasks that take no time end where they start. The writer of a stream ends before its reader.
    const bool is_writer = before && ReadsStreamsOf(workflow.tasks[last->value], *before);
    const bool is_earlier =
        before && (is_writer ? end_of(*before) <= end_of(*last)
                             : end_of(*before) <= start && end_of(*before) < end_of(*last));
    last = is_earlier ? before : std::nullopt;
  }
  return critical;
}

// Tasks that did not run take no time, at the beginning.
RunEstimate TimesOf(const Prediction& seen) {
  RunEstimate times;
  times.seconds = SecondsOf(seen.turnaround);
  for (const PredictedTask& task : seen.tasks) {
    times.starts.push_back(task.ran ? SecondsOf(task.start) : 0);
    times.ends.push_back(task.ran ? SecondsOf(task.end) : 0);
  }
  return times;
}

// Without later versions of a file ("a#2", from traces), which have no name of their own in a run.
std::vector<FileHints> HintsByGraph(const Workflow& workflow, const Configuration& configuration) {
  std::vector<FileHints> hints = PlanHints(workflow, {.hosts = configuration.hosts});
  const std::vector<PathIndex> later = LaterVersionsIn(workflow);
  const std::set<PathIndex> left_out(later.begin(), later.end());
  std::erase_if(hints, [&](const FileHints& each) { return left_out.contains(each.file); });
  return hints;
}

class PlanSearch {
 public:
  PlanSearch(const Workflow& workflow, const Platform& platform, const Configuration& configuration,
             const PlanOptions& options, const SimulatePlans& simulate)
      : workflow_(workflow),
        platform_(platform),
        configuration_(configuration),
        options_(options),
        simulate_(simulate),
        how_{.draws = options.draws},
        by_graph_(HintsByGraph(workflow, configuration)),
        estimator_(workflow, platform, configuration) {}

  Result<Plan> Run() {
    MOSA_ASSIGN_OR_RETURN(const Draws unplanned, AllDraws(workflow_));
    const Prediction& seen = *unplanned.prediction;
    Plan plan = Unplanned(unplanned.outcomes);
    const size_t least = 2 * ScreenDraws() + RunsOfFinals(1);
    if (plan.unplanned_failure.empty() && options_.is_too_much(least)) return plan;
    MOSA_ASSIGN_OR_RETURN(const std::vector<Candidate> finalists, Finalists(seen));
    Draws best;
    MOSA_ASSIGN_OR_RETURN(const std::vector<Workflow> ways, BestWaysToRun(finalists));
    for (const Workflow& way : ways) {
      MOSA_ASSIGN_OR_RETURN(Draws draws, AllDraws(way));
      if (Note(draws.outcomes, unplanned.outcomes, !best.workflow, plan)) best = std::move(draws);
    }
    if (!best.workflow && !plan.unplanned_failure.empty())
      return FailedPreconditionError(fmt::format(
          "the run would fail with and without a plan: {}{}", plan.unplanned_failure,
          seen.full ? ": use more hosts, nodes with more room, or lifetime=readers:N for "
                      "files that are needed no more during the run"
                    : ""));
    Describe(best.workflow ? best : unplanned, best.workflow != nullptr, plan);
    return plan;
  }

 private:
  // With and without reading ahead; with and without streams, whose readers hold slots while they
  // wait.
  std::vector<std::pair<bool, bool>> WaysToRun() const {
    std::vector<std::pair<bool, bool>> ways = {{false, true}, {true, true}};
    if (HasStreams(workflow_)) ways.insert(ways.end(), {{false, false}, {true, false}});
    return ways;
  }

  std::vector<Places> AllPlaces(const std::vector<double>& seconds) const {
    std::set<Places> divisions;
    for (const double imbalance : kImbalances)
      for (uint64_t i = 0; i < kDivisionsOfEach; ++i)
        divisions.insert(PartitionTasks(workflow_, seconds,
                                        {.shares = SharesOf(platform_, configuration_),
                                         .imbalance = imbalance,
                                         .seed = options_.seed + i}));
    return {divisions.begin(), divisions.end()};
  }

  // A workflow's outcome in each draw, and what happens in draw 0.
  struct Draws {
    std::shared_ptr<const Workflow> workflow;
    std::vector<TrialOutcome> outcomes;
    std::shared_ptr<const Prediction> prediction;
  };
  Result<Draws> AllDraws(const Workflow& workflow) {
    Draws all{std::make_shared<const Workflow>(workflow), {}, nullptr};
    std::vector<PlanTrial> trials;
    for (uint32_t draw = 0; draw <= options_.draws; ++draw)
      trials.push_back({all.workflow, draw, draw == 0});
    MOSA_ASSIGN_OR_RETURN(const auto outcomes, simulate_(trials));
    for (const PlanTrialOutcome& each : outcomes) all.outcomes.push_back(each.outcome);
    all.prediction = outcomes.front().prediction;
    return all;
  }

  Candidate MakeCandidate(Places division, Ways ways) const {
    auto planned = std::make_shared<const Workflow>(
        Planned(workflow_, by_graph_, division, ways, kPatienceOfTrials));
    return {std::move(division), std::move(ways), std::move(planned)};
  }

  // Takes the figures of these draws into the plan if they are better than its own.
  bool Note(const std::vector<TrialOutcome>& draws, const std::vector<TrialOutcome>& unplanned,
            bool is_first, Plan& plan) const {
    const RunTime time = RunTimeOf(draws, how_);
    const Gain gain = GainOf(draws, unplanned, how_);
    if (!gain.pays || (!is_first && time.median_s >= plan.seconds)) return false;
    plan.seconds = time.median_s;
    plan.seconds_interval = time.interval_s;
    plan.gain_s = gain.median_s;
    plan.gain_interval_s = gain.interval_s;
    plan.link_bytes = time.link_bytes;
    return true;
  }

  size_t SimulationsMax() const {
    return std::clamp(kTasksSimulatedMax / std::max<size_t>(1, workflow_.tasks.size()),
                      kSimulationsMin, kSimulationsMax);
  }
  uint32_t ScreenDraws() const {
    return SimulationsMax() < kSimulationsForTwoDraws ? 1
                                                      : std::min(2U, std::max(1U, options_.draws));
  }
  // Whether the search may simulate so many more runs.
  bool MaySimulate(size_t runs) const {
    return simulated_ + runs <= SimulationsMax() && !options_.is_too_much(runs + RunsOfFinals(1));
  }

  // By the first draws.
  Result<std::vector<Rank>> RanksOf(const std::vector<std::shared_ptr<const Workflow>>& workflows) {
    const uint32_t first = options_.draws == 0 ? 0 : 1;
    const uint32_t end = options_.draws == 0 ? 1 : first + ScreenDraws();
    std::vector<PlanTrial> trials;
    for (const auto& workflow : workflows)
      for (uint32_t draw = first; draw < end; ++draw) trials.push_back({workflow, draw, false});
    simulated_ += trials.size();
    MOSA_ASSIGN_OR_RETURN(const auto outcomes, simulate_(trials));
    std::vector<Rank> ranks(workflows.size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      Rank& rank = ranks[i / (end - first)];
      rank.first += outcomes[i].outcome.failure.empty() ? 0 : 1;
      rank.second += outcomes[i].outcome.time.ns;
    }
    return ranks;
  }
  Result<std::vector<Rank>> RanksOf(const std::vector<Candidate>& candidates) {
    std::vector<std::shared_ptr<const Workflow>> workflows;
    for (const Candidate& each : candidates) workflows.push_back(each.workflow);
    return RanksOf(workflows);
  }

  // The candidates that are simulated in every way to run, best first.
  Result<std::vector<Candidate>> Finalists(const Prediction& seen) {
    size_t some = std::max<size_t>(2, SimulationsMax() / 4 / ScreenDraws());
    while (some > 2 && options_.is_too_much(some * ScreenDraws() + RunsOfFinals(1))) some /= 2;
    std::vector<Candidate> candidates = BestByEstimate(some, seen);
    MOSA_ASSIGN_OR_RETURN(std::vector<Rank> ranks, RanksOf(candidates));
    std::vector<Candidate> best = Best(std::move(candidates), ranks, FinalsMax());
    // The moves are judged by a few draws, so what they begin with stays in the contest.
    Candidate improved = best.front();
    MOSA_RETURN_IF_ERROR(Improve(improved, *std::ranges::min_element(ranks)));
    if (improved.workflow != best.front().workflow) best.insert(best.begin(), std::move(improved));
    return best;
  }

  // How many plans are simulated in all draws.
  size_t FinalsMax() const {
    const bool one = SimulationsMax() < kSimulationsForFinals ||
                     options_.is_too_much(RunsOfFinals(kFinalistsMax));
    return one ? 1 : kFinalistsMax;
  }
  // Every way to run of so many candidates, and as many of them in draw 0 and in all draws.
  size_t RunsOfFinals(size_t count) const {
    return count * (WaysToRun().size() * ScreenDraws() + 1 + options_.draws + 1);
  }

  template <typename Value>
  static std::vector<Value> Best(std::vector<Value> values, const std::vector<Rank>& ranks,
                                 size_t count) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(ranks[a], a) < std::pair(ranks[b], b); });
    order.resize(std::min(order.size(), count));
    std::vector<Value> best;
    for (const size_t i : order) best.push_back(std::move(values[i]));
    return best;
  }

  // The fastest by estimate, in order, among every division with every way to place files, and the
  // best of these improved.
  std::vector<Candidate> BestByEstimate(size_t count, const Prediction& seen) {
    std::vector<Places> divisions =
        AllPlaces(SecondsOfTasks(workflow_, seen, platform_, configuration_));
    divisions.push_back(PlacesOf(seen));
    divisions.emplace_back(workflow_.tasks.size(), HostIndex{0});  // What it reads is there.
    using Estimated = std::pair<double, std::pair<Places, Ways>>;
    std::vector<Estimated> all;
    for (const Places& division : divisions) {
      for (const Writes way : kWays) {
        const Ways ways(by_graph_.size(), way);
        all.push_back({Estimate(division, ways).seconds, {division, ways}});
      }
    }
    const auto faster = [](const Estimated& a, const Estimated& b) { return a.first < b.first; };
    std::ranges::stable_sort(all, faster);
    for (size_t i = 0; i < std::min(kClimbs, divisions.size() * std::size(kWays)); ++i) {
      auto [division, ways] = all[i].second;
      const double seconds = Climb(division, ways);
      all.push_back({seconds, {std::move(division), std::move(ways)}});
    }
    std::ranges::stable_sort(all, faster);
    std::set<std::pair<Places, Ways>> known;
    std::vector<Candidate> candidates;
    for (const auto& [seconds, each] : all)
      if (candidates.size() < count && known.insert(each).second)
        candidates.push_back(MakeCandidate(each.first, each.second));
    return candidates;
  }

  RunEstimate Estimate(const Places& division, const Ways& ways) const {
    return estimator_.Of(division,
                         PlacesOfFiles(workflow_, configuration_, by_graph_, division, ways));
  }

  // Hill climbing by estimates. Returns the best one.
  double Climb(Places& division, Ways& ways) const {
    Rng rng(options_.seed);
    RunEstimate best = Estimate(division, ways);
    std::vector<TaskIndex> critical = CriticalTasks(workflow_, division, best);
    const size_t most =
        std::clamp(kTasksEstimatedMax / kClimbs / std::max<size_t>(1, workflow_.tasks.size()),
                   kEstimatesMin, kEstimatesMax);
    for (size_t i = 0; i < most && !critical.empty() && configuration_.hosts > 1; ++i) {
      if (i % kEstimatesAtOnce == 0 && options_.is_too_much(0)) break;
      auto [moved, moved_ways] = MoveFrom(division, ways, critical, rng);
      RunEstimate its = Estimate(moved, moved_ways);
      if (its.seconds > best.seconds) continue;
      division = std::move(moved);
      ways = std::move(moved_ways);
      best = std::move(its);
      critical = CriticalTasks(workflow_, division, best);
    }
    return best.seconds;
  }

  // Hill climbing by simulations: tasks that delay the end go to other hosts, what they write goes
  // elsewhere, or the tasks after them come to them, as long as that makes the run faster.
  Status Improve(Candidate& best, Rank rank) {
    Rng rng(options_.seed);
    for (uint32_t failed = 0;
         failed < kFailedRoundsMax && MaySimulate(kMovesAtOnce * ScreenDraws() + 1);) {
      simulated_ += 1;
      MOSA_ASSIGN_OR_RETURN(const auto seen, simulate_({{best.workflow, 0, true}}));
      const std::vector<Candidate> moves =
          MovesFrom(best, *seen.front().prediction, failed == 0, rng);
      if (moves.empty()) break;
      MOSA_ASSIGN_OR_RETURN(const std::vector<Rank> moved, RanksOf(moves));
      const auto fastest = std::min_element(moved.begin(), moved.end());
      ++failed;
      if (*fastest >= rank) continue;
      failed = 0;
      rank = *fastest;
      best = moves[static_cast<size_t>(fastest - moved.begin())];
    }
    return OkStatus();
  }

  // The best of the finalists with and without reading ahead and streams, with patience.
  Result<std::vector<Workflow>> BestWaysToRun(const std::vector<Candidate>& finalists) {
    std::vector<std::shared_ptr<const Workflow>> all;
    for (const Candidate& finalist : finalists) {
      for (const auto& [reads_ahead, streams] : WaysToRun()) {
        Workflow workflow = streams ? *finalist.workflow : WithoutStreams(*finalist.workflow);
        workflow.reads_ahead = reads_ahead;
        all.push_back(std::make_shared<const Workflow>(std::move(workflow)));
      }
    }
    MOSA_ASSIGN_OR_RETURN(const std::vector<Rank> ranks, RanksOf(all));
    std::vector<PlanTrial> trials;
    for (const auto& each : Best(std::move(all), ranks, FinalsMax()))
      trials.push_back({each, 0, true});
    MOSA_ASSIGN_OR_RETURN(const auto outcomes, simulate_(trials));
    std::vector<Workflow> patient;
    for (size_t i = 0; i < trials.size(); ++i)
      patient.push_back(WithPatience(*trials[i].workflow, *outcomes[i].prediction));
    return patient;
  }

  // `gathers`: once for each stage, those who read a critical task's outputs come to it.
  std::vector<Candidate> MovesFrom(const Candidate& from, const Prediction& seen, bool gathers,
                                   Rng& rng) const {
    const std::vector<TaskIndex> critical = CriticalTasks(workflow_, PlacesOf(seen), TimesOf(seen));
    std::set<std::pair<Places, Ways>> moves;
    std::set<std::string_view> gathered;
    for (const TaskIndex task : critical) {
      if (!gathers || moves.size() >= kMovesAtOnce) break;
      if (!gathered.insert(workflow_.at(task).stage).second) continue;
      std::pair<Places, Ways> moved{from.division, from.ways};
      Gather(task, moved);
      moves.insert(std::move(moved));
    }
    for (size_t i = moves.size(); i < kMovesAtOnce && !critical.empty() && configuration_.hosts > 1;
         ++i)
      moves.insert(MoveFrom(from.division, from.ways, critical, rng));
    moves.erase({from.division, from.ways});
    std::vector<Candidate> candidates;
    for (const auto& [division, ways] : moves) candidates.push_back(MakeCandidate(division, ways));
    return candidates;
  }

  // One step: a critical task, or what it writes, goes elsewhere, or those who read it come to it.
  std::pair<Places, Ways> MoveFrom(const Places& from, const Ways& from_ways,
                                   const std::vector<TaskIndex>& critical, Rng& rng) const {
    std::pair<Places, Ways> moved{from, from_ways};
    auto& [division, ways] = moved;
    const TaskIndex task = AnyOf(critical, rng);
    const uint64_t kind = rng.Below(3);
    if (kind == 0) {
      MoveOutputs(task, kWays[rng.Below(std::size(kWays))], ways);
    } else if (kind == 1) {
      Gather(task, moved);
    } else {
      const auto other = static_cast<uint32_t>(1 + rng.Below(configuration_.hosts - 1));
      const HostIndex host{(division[task.value].value + other) % configuration_.hosts};
      division[task.value] = host;
      const uint64_t more = rng.Below(3);
      if (more > 0) MoveAfter(from, task, host, /*only_chains=*/more == 1, division);
    }
    return moved;
  }

  // What the task writes stays on its host, and those who read it come there.
  void Gather(TaskIndex task, std::pair<Places, Ways>& moved) const {
    auto& [division, ways] = moved;
    MoveOutputs(task, Writes::kHere, ways);
    for (const TaskIndex after : workflow_.tasks[task.value].successors)
      division[after.value] = division[task.value];
  }

  // Each stage has the same chance: a task on which many wait is often the only one of its stage.
  TaskIndex AnyOf(const std::vector<TaskIndex>& tasks, Rng& rng) const {
    std::map<std::string_view, std::vector<TaskIndex>> stages;
    for (const TaskIndex task : tasks) stages[workflow_.at(task).stage].push_back(task);
    const auto& stage =
        std::next(stages.begin(), static_cast<std::ptrdiff_t>(rng.Below(stages.size())))->second;
    return stage[rng.Below(stage.size())];
  }

  void MoveOutputs(TaskIndex task, Writes way, Ways& ways) const {
    for (size_t i = 0; i < by_graph_.size(); ++i)
      if (workflow_.files[by_graph_[i].file.value].producer == task) ways[i] = way;
  }

  // Takes along the tasks after it that are on its host, and those after them; `only_chains`: as
  // long as only one follows.
  void MoveAfter(const Places& division, TaskIndex task, HostIndex host, bool only_chains,
                 Places& moved) const {
    std::vector<TaskIndex> left = {task};
    while (!left.empty()) {
      const auto& after = workflow_.tasks[left.back().value].successors;
      left.pop_back();
      if (only_chains && after.size() != 1) return;
      for (const TaskIndex next : after) {
        if (division[next.value] != division[task.value] || moved[next.value] == host) continue;
        moved[next.value] = host;
        left.push_back(next);
      }
    }
  }

  // Each task may wait twice as long as any on its host is predicted to, since tasks come in
  // another order when times differ a little, and as long as it runs.
  static Workflow WithPatience(Workflow planned, const Prediction& prediction) {
    std::map<HostIndex, Duration> waits;
    for (size_t i = 0; i < planned.tasks.size(); ++i) {
      const PredictedTask& task = prediction.tasks[i];
      if (!task.ran) continue;
      Duration ready;
      for (const TaskIndex before : planned.tasks[i].predecessors) {
        const PredictedTask& its = prediction.tasks[before.value];
        ready = std::max(ready, ReadsStreamsOf(planned.tasks[i], before) ? its.start : its.end);
      }
      Duration& longest = waits[planned.tasks[i].planned->host];
      longest = std::max(longest, task.start - ready);
    }
    for (size_t i = 0; i < planned.tasks.size(); ++i) {
      const PredictedTask& task = prediction.tasks[i];
      PlannedHost& host = *planned.tasks[i].planned;
      if (task.ran)
        host.patience = std::max(kPatienceMin, waits[host.host] * 2 + (task.end - task.start));
    }
    return planned;
  }

  Plan Unplanned(const std::vector<TrialOutcome>& draws) const {
    const RunTime time = RunTimeOf(draws, how_);
    Plan plan;
    plan.workflow = workflow_.name;
    plan.configuration = ToText(configuration_);
    for (uint32_t i = 0; i < configuration_.hosts; ++i) plan.hosts.push_back(NameOf(HostIndex{i}));
    plan.seconds = plan.unplanned_seconds = time.median_s;
    if (time.draws_failed == std::max(options_.draws, 1U)) plan.unplanned_failure = time.failure;
    plan.seconds_interval = time.interval_s;
    plan.link_bytes = plan.unplanned_link_bytes = time.link_bytes;
    return plan;
  }

  void Describe(const Draws& run, bool is_planned, Plan& plan) const {
    const Workflow& followed = *run.workflow;
    const Prediction& prediction = *run.prediction;
    for (const PredictedMachine& machine : prediction.machines)
      if (machine.store_bytes_max > 0) plan.store_bytes_max[machine.name] = machine.store_bytes_max;
    if (!is_planned) return;
    plan.reads_ahead = followed.reads_ahead;
    plan.streams = HasStreams(followed);
    for (size_t i = 0; i < followed.tasks.size(); ++i) {
      const PlannedHost& planned = *followed.tasks[i].planned;
      const PredictedTask& task = prediction.tasks[i];
      plan.tasks.push_back({followed.tasks[i].id, NameOf(planned.host), SecondsOf(task.start),
                            SecondsOf(task.end), SecondsOf(planned.patience)});
    }
    for (const WorkflowFile& file : followed.files) {
      HintMap hints;
      if (!file.producer) continue;
      for (const auto& [name, value] : file.hints)
        if (IsForSpeed(name)) hints.emplace(name, value);
      if (!hints.empty()) plan.files.emplace(file.path, std::move(hints));
    }
  }

  const Workflow& workflow_;
  const Platform& platform_;
  const Configuration& configuration_;
  const PlanOptions& options_;
  const SimulatePlans& simulate_;
  const AdviseOptions how_;
  const std::vector<FileHints> by_graph_;
  const RunEstimator estimator_;
  size_t simulated_ = 0;
};

}  // namespace

Result<Plan> FindPlan(const Workflow& workflow, const Platform& platform,
                      const Configuration& configuration, const PlanOptions& options,
                      const SimulatePlans& simulate) {
  if (configuration.system != System::kWass)
    return InvalidArgumentError("a plan places tasks, which system=dss does not: use system=wass");
  return PlanSearch(workflow, platform, configuration, options, simulate).Run();
}

}  // namespace mosa::predict
