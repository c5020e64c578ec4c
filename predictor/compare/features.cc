#include "predictor/compare/features.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "predictor/compare/cells.h"
#include "predictor/compare/request_cells.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

constexpr double kSmallBytes = 4 << 20;
constexpr double kSmallWaitSeconds = 0.05;
constexpr double kSmallTotalSeconds = 0.05;
constexpr double kSmallOwnSeconds = 0.05;

// What is known of features of one kind: the amount below which nothing matters, in seconds or
// bytes, and the two errors of features.h.
struct Known {
  double small, model_error, usual_spread;
};
const Known& KnownOf(FeatureOf of) {
  static constexpr Known kKnown[] = {{kSmallSeconds, 0.03, 0.03},    {kSmallSeconds, 0.1, 0.1},
                                     {kSmallOwnSeconds, 0.2, 0.05},  {kSmallWaitSeconds, 0.3, 0.2},
                                     {kSmallTotalSeconds, 0.4, 0.2}, {kSmallBytes, 0.1, 0.05}};
  return kKnown[static_cast<size_t>(of)];
}

double SmallOf(FeatureOf of) { return KnownOf(of).small; }

struct Mean {
  double sum = 0;
  size_t count = 0;
  void Add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return sum / static_cast<double>(count); }
};

// The totals that requests of a class count in; none if the simulator and the daemons measure
// different things. Requests to nodes count by mount and node, and where they were made and where
// they were answered: sums vary less from run to run.
std::vector<RequestClass> TotalsOf(const RequestClass& which) {
  const auto& [component, name, host, peer] = which;
  if (component == "mount" && name.starts_with("manager."))
    return {{component, "manager", host, ""}};
  if (component == "mount" && (name == "node.read" || name == "node.write"))
    return {which, {component, name, host, ""}, {component, name, "", peer}};
  if (component == "manager" && IsOwnWork(which))
    return {{component, name == "log" ? "log" : "core", host, ""}};
  if (component == "storage" && (name == "write.object" || name == "copy.read"))
    return {{component, name, host, ""}};
  return {};
}

std::optional<Duration> IfKnown(Duration work) {
  return work.ns > 0 ? std::optional(work) : std::nullopt;
}

Duration EndOfPredecessors(const Task& task, const SeenRun& run) {
  Duration end;
  for (const TaskIndex before : task.predecessors) {
    const SeenTask& its = run.tasks[before.value];
    const bool streams = std::ranges::binary_search(task.stream_writers, before);
    end = std::max(end, streams ? its.start : its.end);
  }
  return end;
}

Features Logarithms(const std::map<Feature, Mean>& means, const std::map<Feature, double>& totals) {
  Features features;
  for (const auto& [feature, mean] : means)
    features[feature] = std::log(mean.value() + SmallOf(feature.of));
  for (const auto& [feature, total] : totals)
    features[feature] = std::log(total + SmallOf(feature.of));
  return features;
}

}  // namespace

Features FeaturesOf(const Workflow& workflow, const SeenRun& run) {
  std::map<Feature, Mean> means;
  Duration end;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& seen = run.tasks[i];
    if (!seen.ran) continue;
    const Task& task = workflow.tasks[i];
    end = std::max(end, seen.end);
    means[{FeatureOf::kTasks, {"", task.stage, run.hosts[seen.host.value], ""}}].Add(
        SecondsOf(run, seen));
    if (const auto own = seen.processor ? seen.processor : IfKnown(seen.work))
      means[{FeatureOf::kOwn, {"", task.stage, "", ""}}].Add(SecondsOf(*own));
    if (run.whole)
      means[{FeatureOf::kStart, {"", task.stage, "", ""}}].Add(
          std::max(0.0, SecondsOf(seen.start - EndOfPredecessors(task, run))));
  }
  if (run.whole)
    means[{FeatureOf::kWorkflow, {}}].Add(
        SecondsOf(end) * FactorOfWhole(run.factor, end, std::min(end, run.computing)));
  std::map<Feature, double> totals;
  for (const auto& [host, bytes] : run.fetched)
    totals[{FeatureOf::kFetched, {"", "", host, ""}}] += static_cast<double>(bytes);
  if (!run.knows_all_requests) return Logarithms(means, totals);
  for (const auto& [which, seen] : run.requests)
    for (const RequestClass& total : TotalsOf(which))
      totals[{FeatureOf::kRequests, total}] += seen.seconds;
  return Logarithms(means, totals);
}

std::optional<double> PlaceIn(const Features& features, const Feature& feature) {
  const auto found = features.find(feature);
  if (found != features.end()) return found->second;
  if (feature.of != FeatureOf::kRequests) return std::nullopt;
  const bool was_asked = std::ranges::any_of(features, [&feature](const auto& other) {
    return other.first.of == FeatureOf::kRequests &&
           other.first.which.component == feature.which.component &&
           other.first.which.host == feature.which.host;
  });
  return was_asked ? std::optional(std::log(SmallOf(feature.of))) : std::nullopt;
}

double ModelErrorOf(const Feature& feature) { return KnownOf(feature.of).model_error; }

double UsualSpreadOf(const Feature& feature) { return KnownOf(feature.of).usual_spread; }

double AmountOf(const Feature& feature, double place) {
  return std::max(0.0, std::exp(place) - SmallOf(feature.of));
}

}  // namespace mosa::predict
