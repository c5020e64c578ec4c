#include "tools/observe/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace mosa::cli {
namespace {

using nlohmann::json;

// Name of a daemon's amount, and the sum it is added to.
using Sum = std::pair<const char*, double*>;

template <size_t kSums>
void AddAmounts(const ResidenceSnapshot& snapshot, double seconds, const Sum (&sums)[kSums]) {
  for (const ResidenceAmount& amount : snapshot.amounts)
    for (const auto& [name, sum] : sums)
      if (amount.name == name) *sum += static_cast<double>(amount.value) / seconds;
}

void AddMount(const ResidenceSnapshot& snapshot, double seconds, TopHost& host) {
  for (const ResidenceRow& row : snapshot.rows)
    if (row.name.starts_with("fuse."))
      host.kernel_requests += static_cast<double>(row.times.Count()) / seconds;
  AddAmounts(snapshot, seconds,
             {{"bytes_read_local", &host.read.own_node},
              {"bytes_read_remote", &host.read.network},
              {"bytes_read_inline", &host.read.with_name},
              {"bytes_written_passthrough", &host.written.kernel},
              {"bytes_written_local", &host.written.own_node},
              {"bytes_written_remote", &host.written.network},
              {"bytes_written_inline", &host.written.with_name}});
}

void AddStorage(const ResidenceSnapshot& snapshot, double seconds, TopHost& host) {
  // A name with a dot is a part of a request, or a request of the node's own.
  for (const ResidenceRow& row : snapshot.rows)
    if (row.name.find('.') == std::string::npos)
      host.node_requests += static_cast<double>(row.times.Count()) / seconds;
  AddAmounts(
      snapshot, seconds,
      {{"bytes_read_remote", &host.served_bytes}, {"bytes_written_remote", &host.taken_bytes}});
  for (const ResidenceAmount& amount : snapshot.amounts) {
    if (amount.name == "used_bytes") host.used_bytes += amount.value;
    if (amount.name == "limit_bytes") host.limit_bytes += amount.value;
  }
}

}  // namespace

TopView MakeTopView(const ClusterResidence& since, double seconds) {
  TopView view;
  view.seconds = seconds;
  std::map<std::string, TopHost> hosts;
  std::map<std::pair<std::string, std::string>, TopClass> classes;
  for (const DaemonResidence& daemon : since.daemons) {
    if (!daemon.failure.empty() || daemon.since_start) {
      view.notes.push_back(fmt::format("{}: {}", Describe(daemon),
                                       daemon.since_start
                                           ? "it has just started, so there are no figures yet"
                                           : daemon.failure));
      continue;
    }
    if (daemon.snapshot.is_truncated)
      view.notes.push_back(fmt::format(
          "{}: it has more classes and peers of requests than it can report", Describe(daemon)));
    // Falls back to `seconds` if the daemon's clock was set back meanwhile.
    const double own_seconds =
        daemon.between > Duration() ? static_cast<double>(daemon.between.ns) / 1e9 : seconds;
    for (const ResidenceRow& row : daemon.snapshot.rows) {
      TopClass& one = classes[{daemon.component, row.name}];
      one.times.Add(row.times);
      one.per_second += static_cast<double>(row.times.Count()) / own_seconds;
    }
    if (daemon.component == "mount") AddMount(daemon.snapshot, own_seconds, hosts[daemon.host]);
    if (daemon.component == "storage") AddStorage(daemon.snapshot, own_seconds, hosts[daemon.host]);
  }
  for (auto& [name, host] : hosts) {
    host.name = name;
    view.hosts.push_back(std::move(host));
  }
  std::stable_sort(view.hosts.begin(), view.hosts.end(), [](const TopHost& a, const TopHost& b) {
    return strverscmp(a.name.c_str(), b.name.c_str()) < 0;
  });
  for (auto& [name, one] : classes) {
    std::tie(one.component, one.name) = name;
    view.classes.push_back(std::move(one));
  }
  std::stable_sort(
      view.classes.begin(), view.classes.end(),
      [](const TopClass& a, const TopClass& b) { return a.times.sum_ns > b.times.sum_ns; });
  return view;
}

json ToJson(const TopView& view) {
  const auto rounded = [](double rate) { return std::round(rate * 1000) / 1000; };
  const auto microseconds = [](Duration time) { return static_cast<double>(time.ns) / 1e3; };
  const auto paths = [&rounded](const PathRates& rates) -> json {
    return {{"own_node", rounded(rates.own_node)},
            {"network", rounded(rates.network)},
            {"with_name", rounded(rates.with_name)}};
  };
  json hosts = json::array();
  for (const TopHost& host : view.hosts) {
    hosts.push_back({{"name", host.name},
                     {"read_bytes_per_second", paths(host.read)},
                     {"written_bytes_per_second", paths(host.written)},
                     {"kernel_requests_per_second", rounded(host.kernel_requests)},
                     {"node_requests_per_second", rounded(host.node_requests)},
                     {"node_served_bytes_per_second", rounded(host.served_bytes)},
                     {"node_taken_bytes_per_second", rounded(host.taken_bytes)},
                     {"node_used_bytes", host.used_bytes},
                     {"node_limit_bytes", host.limit_bytes}});
    hosts.back()["written_bytes_per_second"]["kernel"] = rounded(host.written.kernel);
  }
  json classes = json::array();
  for (const TopClass& one : view.classes)
    classes.push_back(
        {{"component", one.component},
         {"class", one.name},
         {"count", one.times.Count()},
         {"per_second", rounded(one.per_second)},
         {"sum_ns", one.times.sum_ns},
         {"mean_us", microseconds(one.times.Mean())},
         {"predicted_mean_us", one.predicted_s ? json(*one.predicted_s * 1e6) : json()},
         {"p50_us", microseconds(one.times.Quantile(500))},
         {"p90_us", microseconds(one.times.Quantile(900))},
         {"p99_us", microseconds(one.times.Quantile(990))}});
  return {{"seconds", view.seconds},
          {"hosts", std::move(hosts)},
          {"classes", std::move(classes)},
          {"notes", view.notes}};
}

}  // namespace mosa::cli
