#include "predictor/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/rng.h"
#include "predictor/plan/partition.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/streams.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

constexpr double kImbalances[] = {0.02, 0.1, 0.3};
constexpr uint64_t kDivisionsOfEach = 2;
// Draws on which all candidates are tried, and how many of them are tried on all.
constexpr uint32_t kScreenDraws = 2;
constexpr size_t kFinalistsMax = 3;
// Moves that are tried in all and at a time, the same by the tasks that are simulated for them, and
// after how many times without a gain the search ends.
constexpr size_t kMovesMax = 192;
constexpr size_t kMovesAtOnce = 16;
constexpr size_t kTasksMovedMax = 40'000;
constexpr uint32_t kFailedRoundsMax = 3;
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
std::vector<TaskIndex> CriticalTasks(const Workflow& workflow, const Prediction& seen) {
  const auto end_of = [&](TaskIndex task) { return seen.tasks[task.value].end; };
  std::map<HostIndex, std::vector<TaskIndex>> by_host;
  std::optional<TaskIndex> last;
  for (uint32_t i = 0; i < seen.tasks.size(); ++i) {
    if (!seen.tasks[i].ran) continue;
    by_host[seen.tasks[i].host].push_back(TaskIndex{i});
    if (!last || end_of(TaskIndex{i}) > end_of(*last)) last = TaskIndex{i};
  }
  for (auto& [host, tasks] : by_host)
    std::sort(tasks.begin(), tasks.end(),
              [&](TaskIndex a, TaskIndex b) { return end_of(a) < end_of(b); });
  std::vector<TaskIndex> critical;
  while (last) {
    critical.push_back(*last);
    const PredictedTask& task = seen.tasks[last->value];
    std::optional<TaskIndex> before;
    for (const TaskIndex each : workflow.tasks[last->value].predecessors)
      if (seen.tasks[each.value].ran && (!before || end_of(each) > end_of(*before))) before = each;
    const std::vector<TaskIndex>& beside = by_host[task.host];
    auto slot =
        std::upper_bound(beside.begin(), beside.end(), task.start,
                         [&](Duration start, TaskIndex each) { return start < end_of(each); });
    if (slot != beside.begin() && (!before || end_of(*std::prev(slot)) > end_of(*before)))
      before = *std::prev(slot);
    // Tasks that take no time end where they start. The writer of a stream ends before its reader.
    const bool is_writer = before && ReadsStreamsOf(workflow.tasks[last->value], *before);
    const bool is_earlier =
        before && (is_writer ? end_of(*before) <= end_of(*last)
                             : end_of(*before) <= task.start && end_of(*before) < end_of(*last));
    last = is_earlier ? before : std::nullopt;
  }
  return critical;
}

// Without later versions of a file ("a#2", from traces), which have no name of their own in a run.
std::vector<FileHints> HintsByGraph(const Workflow& workflow, const Configuration& configuration) {
  std::vector<FileHints> hints = PlanHints(workflow, {.hosts = configuration.hosts});
  const std::vector<PathIndex> later = LaterVersionsIn(workflow);
  const std::set<PathIndex> left_out(later.begin(), later.end());
  std::erase_if(hints, [&](const FileHints& each) { return left_out.contains(each.file); });
  return hints;
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
    const FileHints& each = by_graph[i];
    const Writes way = ways[i];
    WorkflowFile& file = planned.files[each.file.value];
    const bool is_given = file.hints.contains("pattern") || file.hints.contains("placement");
    if (is_given || file.consumers.empty()) continue;
    const HostIndex writer = division[file.producer->value];
    const std::optional<HostIndex> reader = ReadersHost(file, division);
    if (way == Writes::kByGraph) {
      file.hints = each.hints;
    } else if (way == Writes::kHere) {
      file.hints["placement"] = "local";
    } else if (reader == writer && !readers_hosts.at(ParentOf(file.path))) {
      file.hints["placement"] = "local";
    } else if (reader) {
      file.hints["placement"] = "node:" + NameOf(*reader);
    } else {
      file.hints = each.hints;
    }
  }
  return planned;
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
        by_graph_(HintsByGraph(workflow, configuration)) {}

  Result<Plan> Run() {
    MOSA_ASSIGN_OR_RETURN(const Prediction seen, Predict(workflow_, platform_, configuration_));
    MOSA_ASSIGN_OR_RETURN(const auto unplanned, AllDraws(workflow_));
    patience_ = std::max(seen.turnaround, kPatienceMin);
    Plan plan = Unplanned(unplanned);
    std::vector<Places> divisions =
        AllPlaces(SecondsOfTasks(workflow_, seen, platform_, configuration_));
    divisions.push_back(PlacesOf(seen));
    std::vector<Candidate> candidates;
    for (const Places& division : divisions)
      for (const Writes way : kWays)
        candidates.push_back(MakeCandidate(division, Ways(by_graph_.size(), way)));
    const size_t least = candidates.size() * kScreenDraws +
                         WaysToRun().size() * (kFinalistsMax + 1) * (options_.draws + 1);
    if (plan.unplanned_failure.empty() && options_.is_too_much(least)) return plan;
    MOSA_ASSIGN_OR_RETURN(std::vector<Candidate> finalists, Finalists(std::move(candidates)));
    // The moves are judged by a few draws, so what they begin with stays in the contest.
    Candidate improved = finalists.front();
    MOSA_RETURN_IF_ERROR(Improve(improved));
    finalists.push_back(std::move(improved));
    std::optional<Workflow> best;
    for (const Candidate& finalist : finalists) {
      for (const auto& [reads_ahead, streams] : WaysToRun()) {
        Workflow workflow = streams ? *finalist.workflow : WithoutStreams(*finalist.workflow);
        workflow.reads_ahead = reads_ahead;
        MOSA_ASSIGN_OR_RETURN(Workflow patient, WithPatience(std::move(workflow)));
        MOSA_ASSIGN_OR_RETURN(const auto draws, AllDraws(patient));
        if (Note(draws, unplanned, !best, plan)) best = std::move(patient);
      }
    }
    if (!best && !plan.unplanned_failure.empty())
      return FailedPreconditionError(fmt::format(
          "the run would fail with and without a plan: {}{}", plan.unplanned_failure,
          seen.full ? ": use more hosts, nodes with more room, or lifetime=readers:N for "
                      "files that are needed no more during the run"
                    : ""));
    MOSA_RETURN_IF_ERROR(Describe(best ? *best : workflow_, best.has_value(), plan));
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

  Result<std::vector<TrialOutcome>> AllDraws(const Workflow& workflow) {
    const auto shared = std::make_shared<const Workflow>(workflow);
    std::vector<PlanTrial> trials;
    for (uint32_t draw = 0; draw <= options_.draws; ++draw) trials.push_back({shared, draw});
    return simulate_(trials);
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

  // By the first draws.
  Result<std::vector<Rank>> RanksOf(const std::vector<Candidate>& candidates) {
    const uint32_t first = options_.draws == 0 ? 0 : 1;
    const uint32_t last = std::min(options_.draws, kScreenDraws);
    std::vector<PlanTrial> trials;
    for (const Candidate& candidate : candidates)
      for (uint32_t draw = first; draw <= last; ++draw)
        trials.push_back({candidate.workflow, draw});
    MOSA_ASSIGN_OR_RETURN(const std::vector<TrialOutcome> outcomes, simulate_(trials));
    std::vector<Rank> ranks(candidates.size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      Rank& rank = ranks[i / (last - first + 1)];
      rank.first += outcomes[i].failure.empty() ? 0 : 1;
      rank.second += outcomes[i].time.ns;
    }
    return ranks;
  }

  // The fastest, best first.
  Result<std::vector<Candidate>> Finalists(std::vector<Candidate> candidates) {
    MOSA_ASSIGN_OR_RETURN(const std::vector<Rank> ranks, RanksOf(candidates));
    std::vector<size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(ranks[a], a) < std::pair(ranks[b], b); });
    order.resize(std::min(order.size(), kFinalistsMax));
    std::vector<Candidate> best;
    for (const size_t i : order) best.push_back(std::move(candidates[i]));
    return best;
  }

  // Hill climbing: tasks that delay the end go to other hosts, what they write goes elsewhere, or
  // the tasks after them come to them, as long as that makes the run faster.
  Status Improve(Candidate& best) {
    Rng rng(options_.seed);
    MOSA_ASSIGN_OR_RETURN(const std::vector<Rank> ranks, RanksOf({best}));
    Rank rank = ranks.front();
    size_t tried = 0;
    for (uint32_t failed = 0; failed < kFailedRoundsMax && tried < MovesMax() &&
                              !options_.is_too_much(kMovesAtOnce * kScreenDraws);) {
      MOSA_ASSIGN_OR_RETURN(const Prediction seen,
                            Predict(*best.workflow, platform_, configuration_));
      const std::vector<Candidate> moves = MovesFrom(best, seen, rng);
      if (moves.empty()) break;
      tried += moves.size();
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

  size_t MovesMax() const { return std::min(kMovesMax, kTasksMovedMax / workflow_.tasks.size()); }

  std::vector<Candidate> MovesFrom(const Candidate& from, const Prediction& seen, Rng& rng) const {
    const std::vector<TaskIndex> critical = CriticalTasks(workflow_, seen);
    std::set<std::pair<Places, Ways>> moves;
    for (size_t i = 0; i < kMovesAtOnce && !critical.empty() && configuration_.hosts > 1; ++i) {
      Places division = from.division;
      Ways ways = from.ways;
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
        if (rng.Chance(500)) MoveChain(from.division, task, host, division);
      }
      moves.emplace(std::move(division), std::move(ways));
    }
    moves.erase({from.division, from.ways});
    std::vector<Candidate> candidates;
    for (const auto& [division, ways] : moves) candidates.push_back(MakeCandidate(division, ways));
    return candidates;
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
  Result<Workflow> WithPatience(Workflow planned) {
    MOSA_ASSIGN_OR_RETURN(const Prediction prediction, Predict(planned, platform_, configuration_));
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

  Status Describe(const Workflow& followed, bool is_planned, Plan& plan) {
    MOSA_ASSIGN_OR_RETURN(const Prediction prediction,
                          Predict(followed, platform_, configuration_));
    for (const PredictedMachine& machine : prediction.machines)
      if (machine.store_bytes_max > 0) plan.store_bytes_max[machine.name] = machine.store_bytes_max;
    if (!is_planned) return OkStatus();
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
    return OkStatus();
  }

  const Workflow& workflow_;
  const Platform& platform_;
  const Configuration& configuration_;
  const PlanOptions& options_;
  const SimulatePlans& simulate_;
  const AdviseOptions how_;
  const std::vector<FileHints> by_graph_;
  Duration patience_;
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
