#include "tools/observe/live.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tools/forecast/compare_draws.h"

namespace mosa::cli {
namespace {

// Hosts with a mount: they are what a prediction is of.
std::vector<std::string> HostsOf(const ClusterResidence& residence) {
  std::vector<std::string> hosts;
  for (const DaemonResidence& daemon : residence.daemons)
    if (daemon.component == "mount" && daemon.host != "-") hosts.push_back(daemon.host);
  return hosts;
}

std::vector<std::string> SayFirst(const std::vector<predict::Drift>& drifts) {
  constexpr size_t kSaid = 10;
  std::vector<std::string> said;
  for (size_t i = 0; i < std::min(kSaid, drifts.size()); ++i)
    said.push_back(predict::Say(drifts[i]));
  if (drifts.size() > kSaid)
    said.push_back(fmt::format("And {} classes more.", drifts.size() - kSaid));
  return said;
}

}  // namespace

Result<Live> Live::Predict(const PredictionWords& words, const ClusterResidence& now) {
  if (words.workload.empty())
    return InvalidArgumentError("requests cannot be predicted without a workload: add --workload");
  std::vector<std::string> hosts = HostsOf(now);
  predict::Configuration base;
  base.hosts = static_cast<uint32_t>(hosts.size());
  MOSA_ASSIGN_OR_RETURN(const Asked asked, ReadAsked(words, words.workload, base));
  if (asked.configuration.hosts != hosts.size())
    return InvalidArgumentError(fmt::format(
        "the prediction is of {} hosts, cluster '{}' has mounts on {} ({}): say --config hosts={}",
        asked.configuration.hosts, now.cluster, hosts.size(), fmt::join(hosts, ", "),
        hosts.size()));
  MOSA_ASSIGN_OR_RETURN(DrawnRuns drawn, DrawRuns(asked.inputs, asked.configuration,
                                                  DrawsOf(words, asked.inputs.workflow), hosts));
  if (drawn.failed > 0)
    fmt::print(stderr,
               "mosa: in {} draws the workload would fail, for example: {}; they are left out\n",
               drawn.failed, drawn.failure);
  return Live(drawn.draws, std::move(hosts));
}

predict::SeenRun Live::Add(const ClusterResidence& during) {
  predict::SeenRun seen;
  seen.name = TimeOfDay();
  seen.hosts = hosts_;
  for (const DaemonResidence& daemon : during.daemons) {
    // There is no interval for a daemon that is new or silent.
    if (!daemon.failure.empty() || daemon.since_start) continue;
    for (const ResidenceRow& row : daemon.snapshot.rows)
      predict::Add(predict::SeenOf(row.times),
                   seen.requests[{daemon.component, row.name, daemon.host, row.peer}]);
  }
  drifts_ = SayFirst(refreshed_.Add(seen, static_cast<double>(LengthOf(during).ns) / 1e9));
  return seen;
}

std::vector<std::string> Live::Drifting() const { return SayFirst(refreshed_.drifting()); }

std::string TimeOfDay() {
  return fmt::format("{:%H:%M:%S}", std::chrono::time_point_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now()));
}

Duration LengthOf(const ClusterResidence& during) {
  Duration length;
  for (const DaemonResidence& daemon : during.daemons) length = std::max(length, daemon.between);
  return length;
}

}  // namespace mosa::cli
