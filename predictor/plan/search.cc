#include "predictor/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "predictor/plan/partition.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

constexpr double kImbalances[] = {0.02, 0.1, 0.3};
constexpr uint64_t kDivisionsOfEach = 2;
// Draws on which all candidates are tried, and how many of them are tried on all.
constexpr uint32_t kScreenDraws = 2;
constexpr size_t kFinalistsMax = 3;
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
using Candidates = std::vector<std::shared_ptr<const Workflow>>;

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

// What each task takes apart from moving bytes, on a host of speed 1.
std::vector<double> SecondsOfTasks(const Prediction& prediction, const Platform& platform,
                                   const Configuration& configuration) {
  std::vector<double> seconds;
  for (const PredictedTask& task : prediction.tasks) {
    const double read = static_cast<double>(task.read_local + task.read_cached);
    const double all = read + static_cast<double>(task.read_remote);
    const double near = all > 0 ? read / all : 1;
    const double speed = HostOf(platform, configuration, task.host.value).speed;
    seconds.push_back(speed * SecondsOf(task.launching + task.computing) + SecondsOf(task.writing) +
                      near * SecondsOf(task.reading));
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
                 const Places& division, Writes way, Duration patience) {
  Workflow planned = workflow;
  for (size_t i = 0; i < planned.tasks.size(); ++i)
    planned.tasks[i].planned = PlannedHost{division[i], patience};
  planned.hints_are_whole = true;
  const auto readers_hosts = ReadersHosts(workflow, division);
  for (const FileHints& each : by_graph) {
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
    const Duration patience = std::max(seen.turnaround, kPatienceMin);
    Candidates candidates;
    for (const Places& division : AllPlaces(SecondsOfTasks(seen, platform_, configuration_)))
      for (const Writes way : kWays)
        candidates.push_back(std::make_shared<const Workflow>(
            Planned(workflow_, by_graph_, division, way, patience)));
    MOSA_ASSIGN_OR_RETURN(const std::vector<size_t> finalists, Screen(candidates));
    Plan plan = Unplanned(unplanned);
    std::optional<Workflow> best;
    for (const size_t finalist : finalists) {
      MOSA_ASSIGN_OR_RETURN(Workflow patient, WithPatience(*candidates[finalist]));
      MOSA_ASSIGN_OR_RETURN(const auto draws, AllDraws(patient));
      const RunTime time = RunTimeOf(draws, how_);
      const Gain gain = GainOf(draws, unplanned, how_);
      if (!gain.pays || (best && time.median_s >= plan.seconds)) continue;
      best = std::move(patient);
      plan.seconds = time.median_s;
      plan.seconds_interval = time.interval_s;
      plan.gain_s = gain.median_s;
      plan.gain_interval_s = gain.interval_s;
      plan.link_bytes = time.link_bytes;
    }
    if (!best && !plan.unplanned_failure.empty())
      return FailedPreconditionError(
          fmt::format("the run would fail with and without a plan: {}", plan.unplanned_failure));
    MOSA_RETURN_IF_ERROR(Describe(best ? *best : workflow_, best.has_value(), plan));
    return plan;
  }

 private:
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

  // The candidates that are fastest in the first draws.
  Result<std::vector<size_t>> Screen(const Candidates& candidates) {
    const uint32_t first = options_.draws == 0 ? 0 : 1;
    const uint32_t last = std::min(options_.draws, kScreenDraws);
    std::vector<PlanTrial> trials;
    for (const auto& candidate : candidates)
      for (uint32_t draw = first; draw <= last; ++draw) trials.push_back({candidate, draw});
    MOSA_ASSIGN_OR_RETURN(const std::vector<TrialOutcome> outcomes, simulate_(trials));
    std::vector<std::pair<std::pair<size_t, int64_t>, size_t>> ranks;
    const size_t each = last - first + 1;
    for (size_t i = 0; i < candidates.size(); ++i) {
      std::pair<size_t, int64_t> rank;
      for (size_t k = i * each; k < (i + 1) * each; ++k) {
        rank.first += outcomes[k].failure.empty() ? 0 : 1;
        rank.second += outcomes[k].time.ns;
      }
      ranks.emplace_back(rank, i);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.resize(std::min(ranks.size(), kFinalistsMax));
    std::vector<size_t> best;
    for (const auto& [rank, candidate] : ranks) best.push_back(candidate);
    return best;
  }

  // Each task may wait twice as long as predicted, and as long as it runs.
  Result<Workflow> WithPatience(Workflow planned) {
    MOSA_ASSIGN_OR_RETURN(const Prediction prediction, Predict(planned, platform_, configuration_));
    for (size_t i = 0; i < planned.tasks.size(); ++i) {
      const PredictedTask& task = prediction.tasks[i];
      if (!task.ran) continue;
      Duration ready;
      for (const TaskIndex before : planned.tasks[i].predecessors)
        ready = std::max(ready, prediction.tasks[before.value].end);
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
