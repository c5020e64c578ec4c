#include "predictor/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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
constexpr size_t kTasksSimulatedMax = 16'000;
constexpr size_t kSimulationsMin = 4;
constexpr size_t kSimulationsMax = 300;
// From so many on, a candidate is tried on two draws and not on one, and so many of the best are
// simulated in all draws and not only the first.
constexpr size_t kSimulationsForTwoDraws = 60;
constexpr size_t kSimulationsForFinals = 200;
constexpr size_t kFinalistsMax = 4;
// Moves that are simulated at a time, and after how many times without a gain the search ends.
constexpr size_t kMovesAtOnce = 16;
constexpr uint32_t kFailedRoundsMax = 3;
// Moves that are estimated: so many that they have this many tasks together, within these limits.
constexpr size_t kTasksEstimatedMax = 2'000'000;
constexpr size_t kEstimatesMin = 100;
constexpr size_t kEstimatesMax = 2'000;
// A task waits for its host this long and more, if the plan lets it wait at all.
constexpr Duration kPatienceMin = Seconds(1);

// Where a task's output goes.
enum class Writes : uint8_t {
  kByGraph,   // As without a plan.
  kHere,      // On the host of the task.
  kToReader,  // On the host of its readers, if that is one.
};
constexpr Writes kWays[] = {Writes::kByGraph, Writes::kHere, Writes::kToReader};

using Places = std::vector<HostIndex>;
using Ways = std::vector<Writes>;  // For each file to which the graph gives hints, in order.

struct Candidate {
  Places division;
  Ways ways;
  std::shared_ptr<const Workflow> workflow;
};
// Draws that failed, and the time of all: less is better.
using Rank = std::pair<size_t, int64_t>;

std::string NameOf(HostIndex host) { return fmt::format("h{}", host.value + 1); }

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

// The one host on which all readers of the file run, if there is one.
std::optional<HostIndex> ReadersHost(const WorkflowFile& file, const Places& division) {
  std::optional<HostIndex> host;
  for (const TaskIndex reader : file.consumers) {
    if (host && division[reader.value] != *host) return std::nullopt;
    host = division[reader.value];
  }
  return host;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// The one host that reads all outputs in a directory, if there is one. They then want one hint,
// which their directory carries, also for a file that a program removes and makes anew.
std::map<std::string, std::optional<HostIndex>> ReadersHosts(const Workflow& workflow,
                                                             const Places& division) {
  std::map<std::string, std::optional<HostIndex>> hosts;
  for (const WorkflowFile& file : workflow.files) {
    if (!file.producer) continue;
    const std::optional<HostIndex> reader = ReadersHost(file, division);
    const auto [known, is_new] = hosts.try_emplace(ParentOf(file.path), reader);
    if (!is_new && known->second != reader) known->second.reset();
  }
  return hosts;
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

// How a plan places an output: the hint `placement`; empty: by the graph; nothing: the workflow has
// its own placement, or nobody reads it.
std::optional<std::string> PlannedPlacement(
    const WorkflowFile& file, Writes way, const Places& division,
    const std::map<std::string, std::optional<HostIndex>>& readers_hosts) {
  const bool is_given = file.hints.contains("pattern") || file.hints.contains("placement");
  if (is_given || file.consumers.empty()) return std::nullopt;
  if (way == Writes::kByGraph) return "";
  if (way == Writes::kHere) return "local";
  const HostIndex writer = division[file.producer->value];
  const std::optional<HostIndex> reader = ReadersHost(file, division);
  if (reader == writer && !readers_hosts.at(ParentOf(file.path))) return "local";
  return reader ? "node:" + NameOf(*reader) : "";
}

// The workflow with its tasks on these hosts. Hints of the workflow itself always win.
Workflow Planned(const Workflow& workflow, const std::vector<FileHints>& by_graph,
                 const Places& division, const Ways& ways, Duration patience) {
  Workflow planned = workflow;
  for (size_t i = 0; i < planned.tasks.size(); ++i)
    planned.tasks[i].planned = PlannedHost{division[i], patience};
  planned.hints_are_whole = true;
  planned.reads_ahead = true;
  const auto readers_hosts = ReadersHosts(workflow, division);
  for (size_t i = 0; i < by_graph.size(); ++i) {
    WorkflowFile& file = planned.files[by_graph[i].file.value];
    const auto placement = PlannedPlacement(file, ways[i], division, readers_hosts);
    if (!placement) continue;
    if (placement->empty())
      file.hints = by_graph[i].hints;
    else
      file.hints["placement"] = *placement;
  }
  return planned;
}

// Roughly where a file with these hints goes.
FilePlace PlaceByHints(const WorkflowFile& file, const HintMap& hints,
                       const Configuration& configuration) {
  using Kind = FilePlace::Kind;
  const auto value_of = [&](const char* name) {
    const auto found = hints.find(name);
    return found == hints.end() ? std::string_view() : std::string_view(found->second);
  };
  const std::string_view pattern = value_of("pattern");
  std::string_view placement = value_of("placement");
  if (placement.empty() && pattern.empty()) placement = configuration.placement;
  FilePlace place;
  if (pattern == "pipeline" || placement == "local") {
    place.kind = Kind::kOnWriter;
  } else if (placement.starts_with("node:h")) {
    uint32_t number = 0;
    const std::string_view digits = placement.substr(6);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number >= 1 && number <= configuration.hosts)
      place = {Kind::kOnHost, HostIndex{number - 1}, 1};
  } else if (pattern.starts_with("reduce") || placement.starts_with("collocate")) {
    // On one node, which the store chooses: the same for all that one task reads.
    const uint32_t reader = file.consumers.empty() ? 0 : file.consumers.front().value;
    place = {Kind::kOnHost, HostIndex{reader % configuration.hosts}, 1};
  } else if (pattern.starts_with("broadcast:")) {
    const std::string_view digits = pattern.substr(10);
    std::from_chars(digits.data(), digits.data() + digits.size(), place.copies);
  }
  return place;
}

std::vector<FilePlace> OwnPlaces(const Workflow& workflow, const Configuration& configuration) {
  std::vector<FilePlace> places;
  for (const WorkflowFile& file : workflow.files)
    places.push_back(PlaceByHints(file, file.hints, configuration));
  return places;
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
        estimator_(workflow, platform, configuration),
        places_(OwnPlaces(workflow, configuration)) {}

  Result<Plan> Run() {
    MOSA_ASSIGN_OR_RETURN(const Draws unplanned, AllDraws(workflow_));
    const Prediction& seen = *unplanned.prediction;
    patience_ = std::max(seen.turnaround, kPatienceMin);
    Plan plan = Unplanned(unplanned.outcomes);
    const size_t least = 2 * SimulationsMax() / 3 + options_.draws + 1;
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
    auto planned =
        std::make_shared<const Workflow>(Planned(workflow_, by_graph_, division, ways, patience_));
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
    return std::clamp(kTasksSimulatedMax / workflow_.tasks.size(), kSimulationsMin,
                      kSimulationsMax);
  }
  uint32_t ScreenDraws() const {
    return SimulationsMax() < kSimulationsForTwoDraws ? 1
                                                      : std::min(2U, std::max(1U, options_.draws));
  }
  // Whether the search may simulate so many more runs.
  bool MaySimulate(size_t runs) const {
    return simulated_ + runs <= SimulationsMax() && !options_.is_too_much(runs);
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
    std::vector<Candidate> candidates = ByEstimate(seen);
    const size_t some = std::max<size_t>(2, SimulationsMax() / 4 / ScreenDraws());
    candidates.resize(std::min(candidates.size(), some));
    MOSA_ASSIGN_OR_RETURN(std::vector<Rank> ranks, RanksOf(candidates));
    std::vector<Candidate> best = Best(std::move(candidates), ranks, FinalsMax());
    // The moves are judged by a few draws, so what they begin with stays in the contest.
    Candidate improved = best.front();
    MOSA_RETURN_IF_ERROR(Improve(improved, *std::ranges::min_element(ranks)));
    if (improved.workflow != best.front().workflow) best.insert(best.begin(), std::move(improved));
    return best;
  }

  size_t FinalsMax() const { return SimulationsMax() < kSimulationsForFinals ? 1 : kFinalistsMax; }

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

  // Every division with every way to place files, the fastest by estimate first; before them the
  // best one, improved.
  std::vector<Candidate> ByEstimate(const Prediction& seen) {
    std::vector<Places> divisions =
        AllPlaces(SecondsOfTasks(workflow_, seen, platform_, configuration_));
    divisions.push_back(PlacesOf(seen));
    std::map<double, std::pair<Places, Ways>> by_seconds;
    for (const Places& division : divisions) {
      for (const Writes way : kWays) {
        const Ways ways(by_graph_.size(), way);
        by_seconds.try_emplace(Estimate(division, ways).seconds, division, ways);
      }
    }
    std::vector<Candidate> candidates;
    auto [division, ways] = by_seconds.begin()->second;
    if (Climb(division, ways)) candidates.push_back(MakeCandidate(division, ways));
    for (const auto& [seconds, each] : by_seconds)
      candidates.push_back(MakeCandidate(each.first, each.second));
    return candidates;
  }

  RunEstimate Estimate(const Places& division, const Ways& ways) const {
    std::vector<FilePlace> places = places_;
    const auto readers_hosts = ReadersHosts(workflow_, division);
    for (size_t i = 0; i < by_graph_.size(); ++i)
      if (const auto place = PlannedPlace(by_graph_[i], ways[i], division, readers_hosts))
        places[by_graph_[i].file.value] = *place;
    return estimator_.Of(division, places);
  }

  // Where Planned() puts the file; nothing: where it goes by its own hints.
  std::optional<FilePlace> PlannedPlace(
      const FileHints& each, Writes way, const Places& division,
      const std::map<std::string, std::optional<HostIndex>>& readers_hosts) const {
    const WorkflowFile& file = workflow_.at(each.file);
    const auto placement = PlannedPlacement(file, way, division, readers_hosts);
    if (!placement) return std::nullopt;
    if (placement->empty()) return PlaceByHints(file, each.hints, configuration_);
    return PlaceByHints(file, {{"placement", *placement}}, configuration_);
  }

  // Hill climbing by estimates. Returns whether it found something faster.
  bool Climb(Places& division, Ways& ways) const {
    Rng rng(options_.seed);
    RunEstimate best = Estimate(division, ways);
    std::vector<TaskIndex> critical = CriticalTasks(workflow_, division, best);
    const size_t most =
        std::clamp(kTasksEstimatedMax / workflow_.tasks.size(), kEstimatesMin, kEstimatesMax);
    bool found = false;
    for (size_t i = 0; i < most && !critical.empty() && configuration_.hosts > 1; ++i) {
      auto [moved, moved_ways] = MoveFrom(division, ways, critical, rng);
      RunEstimate its = Estimate(moved, moved_ways);
      if (its.seconds >= best.seconds) continue;
      found = true;
      division = std::move(moved);
      ways = std::move(moved_ways);
      best = std::move(its);
      critical = CriticalTasks(workflow_, division, best);
    }
    return found;
  }

  // Hill climbing by simulations: tasks that delay the end go to other hosts, what they write goes
  // elsewhere, or the tasks after them come to them, as long as that makes the run faster.
  Status Improve(Candidate& best, Rank rank) {
    Rng rng(options_.seed);
    for (uint32_t failed = 0;
         failed < kFailedRoundsMax && MaySimulate(kMovesAtOnce * ScreenDraws() + 1);) {
      simulated_ += 1;
      MOSA_ASSIGN_OR_RETURN(const auto seen, simulate_({{best.workflow, 0, true}}));
      const std::vector<Candidate> moves = MovesFrom(best, *seen.front().prediction, rng);
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

  std::vector<Candidate> MovesFrom(const Candidate& from, const Prediction& seen, Rng& rng) const {
    const std::vector<TaskIndex> critical = CriticalTasks(workflow_, PlacesOf(seen), TimesOf(seen));
    std::set<std::pair<Places, Ways>> moves;
    for (size_t i = 0; i < kMovesAtOnce && !critical.empty() && configuration_.hosts > 1; ++i)
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
    const TaskIndex task = critical[rng.Below(critical.size())];
    const uint64_t kind = rng.Below(3);
    if (kind == 0) {
      MoveOutputs(task, kWays[rng.Below(std::size(kWays))], ways);
    } else if (kind == 1) {
      MoveOutputs(task, Writes::kHere, ways);
      for (const TaskIndex after : workflow_.tasks[task.value].successors)
        division[after.value] = division[task.value];
    } else {
      const auto other = static_cast<uint32_t>(1 + rng.Below(configuration_.hosts - 1));
      const HostIndex host{(division[task.value].value + other) % configuration_.hosts};
      division[task.value] = host;
      if (rng.Chance(500)) MoveChain(from, task, host, division);
    }
    return moved;
  }

  void MoveOutputs(TaskIndex task, Writes way, Ways& ways) const {
    for (size_t i = 0; i < by_graph_.size(); ++i)
      if (workflow_.files[by_graph_[i].file.value].producer == task) ways[i] = way;
  }

  // Takes along the tasks after it, as long as one follows the other on the same host.
  void MoveChain(const Places& division, TaskIndex task, HostIndex host, Places& moved) const {
    for (TaskIndex last = task;;) {
      const auto& after = workflow_.tasks[last.value].successors;
      if (after.size() != 1 || division[after[0].value] != division[task.value]) return;
      last = after[0];
      moved[last.value] = host;
    }
  }

  // Each task may wait twice as long as predicted, and as long as it runs.
  static Workflow WithPatience(Workflow planned, const Prediction& prediction) {
    for (size_t i = 0; i < planned.tasks.size(); ++i) {
      const PredictedTask& task = prediction.tasks[i];
      if (!task.ran) continue;
      Duration ready;
      for (const TaskIndex before : planned.tasks[i].predecessors) {
        const PredictedTask& its = prediction.tasks[before.value];
        ready = std::max(ready, ReadsStreamsOf(planned.tasks[i], before) ? its.start : its.end);
      }
      const Duration waits = std::max(task.start - ready, Duration{});
      planned.tasks[i].planned->patience =
          std::max(kPatienceMin, waits * 2 + (task.end - task.start));
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
    plan.streams = HasStreams(followed) == HasStreams(workflow_);
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
  const std::vector<FilePlace> places_;  // By file, without a plan.
  Duration patience_;
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
