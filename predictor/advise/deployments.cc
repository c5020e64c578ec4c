#include "predictor/advise/deployments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "common/base/time.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

constexpr uint32_t kHostValuesMax = 8;
constexpr size_t kFastestMax = 8;
constexpr size_t kCheapestMax = 3;
// A deployment must save at least 2 % to count as cheaper.
constexpr double kCheaperShare = 0.98;

template <typename Number>
Dimension DimensionOf(const char* name, const std::set<Number>& values) {
  Dimension dimension{name, {}};
  for (const Number value : values) dimension.values.push_back(fmt::format("{}", value));
  return dimension;
}

double NodeHoursOf(const Configuration& configuration, double seconds) {
  return NodeHours(HostsInAll(configuration), Nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

void Sum(Deployment& deployment, const std::vector<TrialOutcome>& as_is,
         const AdviseOptions& options) {
  deployment.run = RunTimeOf(deployment.draws, options);
  deployment.node_hours = NodeHoursOf(deployment.configuration, deployment.run.median_s);
  deployment.over_as_is = GainOf(deployment.draws, as_is, options);
}

}  // namespace

std::vector<Dimension> DefaultSpace(const Configuration& as_is) {
  std::set<uint32_t> hosts;
  const uint32_t steps = std::min(as_is.hosts, kHostValuesMax);
  for (uint32_t i = 1; i <= steps; ++i) {
    Configuration fewer = as_is;
    fewer.hosts = static_cast<uint32_t>(uint64_t{as_is.hosts} * i / steps);
    if (NodesOf(fewer) >= as_is.replicas) hosts.insert(fewer.hosts);
  }
  std::set<uint32_t> stripes = {0, 1, as_is.stripe_width};
  if (NodesOf(as_is) > 2) stripes.insert(2);
  return {DimensionOf("hosts", hosts),
          DimensionOf("chunk", std::set<uint64_t>{256 << 10, 1 << 20, 4 << 20, as_is.chunk_bytes}),
          DimensionOf("stripe", stripes),
          {"placement", {"stripe", "near", "local"}}};
}

std::vector<size_t> Finalists(const std::vector<Point>& points,
                              const std::vector<Explored>& explored) {
  std::vector<size_t> like_best;
  for (size_t i = 0; i < points.size(); ++i)
    if (explored[i].like_best) like_best.push_back(i);
  const auto seconds = [&](size_t i) {
    return explored[i].median_s.value_or(explored[i].objectives.time_s);
  };
  std::set<size_t> finalists;
  std::stable_sort(like_best.begin(), like_best.end(),
                   [&](size_t a, size_t b) { return seconds(a) < seconds(b); });
  for (size_t i = 0; i < std::min(kFastestMax, like_best.size()); ++i)
    finalists.insert(like_best[i]);
  std::stable_sort(like_best.begin(), like_best.end(), [&](size_t a, size_t b) {
    return explored[a].objectives.node_hours < explored[b].objectives.node_hours;
  });
  for (size_t i = 0; i < std::min(kCheapestMax, like_best.size()); ++i)
    finalists.insert(like_best[i]);
  return {finalists.begin(), finalists.end()};
}

DeploymentAdvice JudgeDeployments(Deployment as_is, std::vector<Deployment> finalists,
                                  const AdviseOptions& options) {
  DeploymentAdvice advice;
  Sum(as_is, as_is.draws, options);
  const Deployment* best = &as_is;
  for (Deployment& each : finalists) {
    Sum(each, as_is.draws, options);
    if (each.over_as_is.pays && each.run.median_s < best->run.median_s) best = &each;
  }
  advice.best = *best;
  finalists.push_back(as_is);
  for (const Deployment& each : finalists)
    if (each.run.draws_failed == 0 && each.node_hours < kCheaperShare * advice.best.node_hours &&
        !GainOf(advice.best.draws, each.draws, options).pays)
      advice.cheaper.push_back(each);
  std::stable_sort(
      advice.cheaper.begin(), advice.cheaper.end(),
      [](const Deployment& a, const Deployment& b) { return a.node_hours < b.node_hours; });
  if (advice.cheaper.size() > kCheapestMax) advice.cheaper.resize(kCheapestMax);
  advice.as_is = std::move(as_is);
  return advice;
}

}  // namespace mosa::predict
