#include "tools/mosa/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace mosa::cli {
namespace {

using nlohmann::json;

void AddMount(const ResidenceSnapshot& snapshot, TopHost& host) {
  for (const ResidenceRow& row : snapshot.rows)
    if (row.name.starts_with("fuse.")) host.kernel_requests += row.times.Count();
  const std::pair<const char*, uint64_t*> kPaths[] = {
      {"bytes_read_local", &host.read.own_node},
      {"bytes_read_remote", &host.read.network},
      {"bytes_read_inline", &host.read.with_name},
      {"bytes_written_passthrough", &host.written.kernel},
      {"bytes_written_local", &host.written.own_node},
      {"bytes_written_remote", &host.written.network},
      {"bytes_written_inline", &host.written.with_name}};
  for (const ResidenceAmount& amount : snapshot.amounts)
    for (const auto& [name, sum] : kPaths)
      if (amount.name == name) *sum += amount.value;
}

void AddStorage(const ResidenceSnapshot& snapshot, TopHost& host) {
  // What has a dot is a part of a request, or one of its own.
  for (const ResidenceRow& row : snapshot.rows)
    if (row.name.find('.') == std::string::npos) host.node_requests += row.times.Count();
  const std::pair<const char*, uint64_t*> kAmounts[] = {{"bytes_read_remote", &host.served_bytes},
                                                        {"bytes_written_remote", &host.taken_bytes},
                                                        {"used_bytes", &host.used_bytes},
                                                        {"limit_bytes", &host.limit_bytes}};
  for (const ResidenceAmount& amount : snapshot.amounts)
    for (const auto& [name, sum] : kAmounts)
      if (amount.name == name) *sum += amount.value;
}

}  // namespace

TopView MakeTopView(const ClusterResidence& since, double seconds) {
  TopView view;
  view.seconds = seconds;
  std::map<std::string, TopHost> hosts;
  std::map<std::pair<std::string, std::string>, DurationCounts> classes;
  for (const DaemonResidence& daemon : since.daemons) {
    if (!daemon.failure.empty() || daemon.since_start) {
      view.notes.push_back(fmt::format("the {} of host {}: {}", daemon.component, daemon.host,
                                       daemon.since_start ? "it has just begun" : daemon.failure));
      continue;
    }
    for (const ResidenceRow& row : daemon.snapshot.rows)
      classes[{daemon.component, row.name}].Add(row.times);
    if (daemon.component == "mount") AddMount(daemon.snapshot, hosts[daemon.host]);
    if (daemon.component == "storage") AddStorage(daemon.snapshot, hosts[daemon.host]);
  }
  for (auto& [name, host] : hosts) {
    host.name = name;
    view.hosts.push_back(std::move(host));
  }
  std::stable_sort(view.hosts.begin(), view.hosts.end(), [](const TopHost& a, const TopHost& b) {
    return strverscmp(a.name.c_str(), b.name.c_str()) < 0;
  });
  for (const auto& [name, times] : classes)
    view.classes.push_back({.component = name.first, .name = name.second, .times = times});
  std::stable_sort(
      view.classes.begin(), view.classes.end(),
      [](const TopClass& a, const TopClass& b) { return a.times.sum_ns > b.times.sum_ns; });
  return view;
}

json ToJson(const TopView& view) {
  const auto per_second = [&view](uint64_t count) {
    return std::round(static_cast<double>(count) / view.seconds * 1000) / 1000;
  };
  const auto microseconds = [](Duration time) { return static_cast<double>(time.ns) / 1e3; };
  const auto paths = [&per_second](const PathBytes& bytes) -> json {
    return {{"kernel", per_second(bytes.kernel)},
            {"own_node", per_second(bytes.own_node)},
            {"network", per_second(bytes.network)},
            {"with_name", per_second(bytes.with_name)}};
  };
  json hosts = json::array();
  for (const TopHost& host : view.hosts)
    hosts.push_back({{"name", host.name},
                     {"read_bytes_per_second", paths(host.read)},
                     {"written_bytes_per_second", paths(host.written)},
                     {"kernel_requests_per_second", per_second(host.kernel_requests)},
                     {"node_requests_per_second", per_second(host.node_requests)},
                     {"node_served_bytes_per_second", per_second(host.served_bytes)},
                     {"node_taken_bytes_per_second", per_second(host.taken_bytes)},
                     {"node_used_bytes", host.used_bytes},
                     {"node_limit_bytes", host.limit_bytes}});
  json classes = json::array();
  for (const TopClass& one : view.classes)
    classes.push_back({{"component", one.component},
                       {"class", one.name},
                       {"count", one.times.Count()},
                       {"per_second", per_second(one.times.Count())},
                       {"sum_ns", one.times.sum_ns},
                       {"mean_us", microseconds(one.times.Mean())},
                       {"p50_us", microseconds(one.times.Quantile(500))},
                       {"p90_us", microseconds(one.times.Quantile(900))},
                       {"p99_us", microseconds(one.times.Quantile(990))}});
  return {{"seconds", view.seconds},
          {"hosts", std::move(hosts)},
          {"classes", std::move(classes)},
          {"notes", view.notes}};
}

}  // namespace mosa::cli
