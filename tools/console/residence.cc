#include "tools/console/residence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "tools/console/parallel.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr uint32_t kAskedAtOnce = 16;
constexpr size_t kRecordRowsMax = 2'000;

std::map<std::string, std::string> NamesOf(const ClusterStatus& status) {
  std::map<std::string, std::string> names;
  for (const NodeStatus& node : status.nodes) {
    const std::string& address = node.address.address;
    const auto [at, fresh] =
        names.emplace(address.substr(0, address.rfind(':')), node.address.name);
    if (!fresh) at->second.clear();
  }
  std::erase_if(names, [](const auto& item) { return item.second.empty(); });
  return names;
}

// The daemons in the order of ClusterResidence, and where to ask each.
std::vector<std::pair<DaemonResidence, ResidenceSource>> DaemonsOf(const ClusterStatus& status) {
  std::vector<std::pair<DaemonResidence, ResidenceSource>> daemons;
  const auto add = [&](const char* component, const std::string& host, std::string id,
                       ResidenceSource source) {
    DaemonResidence daemon{.component = component,
                           .host = host.empty() ? "-" : host,
                           .id = std::move(id),
                           .failure = {},
                           .since_start = false,
                           .between = {},
                           .snapshot = {}};
    daemons.emplace_back(std::move(daemon), source);
  };
  add("manager", "", "", std::monostate());
  for (const NodeStatus& node : status.nodes)
    add("storage", node.address.name, fmt::format("{}", node.address.node.value),
        node.address.node);
  for (const SessionStatus& session : status.sessions)
    add("mount", session.start.node_name, fmt::format("{:016x}", session.start.client.value),
        session.start.client);
  std::stable_sort(daemons.begin(), daemons.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const DaemonResidence& daemon) {
      return daemon.component == "manager" ? 0 : daemon.component == "storage" ? 1 : 2;
    };
    if (rank(a.first) != rank(b.first)) return rank(a.first) < rank(b.first);
    return strverscmp(a.first.host.c_str(), b.first.host.c_str()) < 0;
  });
  return daemons;
}

bool IsSame(const DaemonResidence& a, const DaemonResidence& b) {
  return a.component == b.component && a.id == b.id;
}

const DaemonResidence* FindSame(const ClusterResidence& residence, const DaemonResidence& like) {
  const auto found = std::ranges::find_if(
      residence.daemons, [&](const DaemonResidence& daemon) { return IsSame(daemon, like); });
  return found == residence.daemons.end() ? nullptr : &*found;
}

// Leaves out rows without requests in between, rows for which this is unknown, and totals that went
// back, as a kernel's may.
ResidenceSnapshot Since(const ResidenceSnapshot& later, const ResidenceSnapshot& earlier) {
  std::map<std::pair<std::string, std::string>, const DurationCounts*> before;
  for (const ResidenceRow& row : earlier.rows) before[{row.name, row.peer}] = &row.times;
  ResidenceSnapshot since = later;
  since.is_truncated = later.is_truncated || earlier.is_truncated;
  std::erase_if(since.rows, [&](ResidenceRow& row) {
    const auto found = before.find({row.name, row.peer});
    if (found == before.end()) return earlier.is_truncated;
    if (!row.times.Contains(*found->second)) return true;
    row.times = row.times.Since(*found->second);
    return row.times.Count() == 0;
  });
  std::erase_if(since.amounts, [&](ResidenceAmount& amount) {
    const auto then = std::ranges::find(earlier.amounts, amount.name, &ResidenceAmount::name);
    if (!amount.is_total || then == earlier.amounts.end()) return false;
    if (then->value > amount.value) return true;
    amount.value -= then->value;
    return false;
  });
  return since;
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

json ToJson(const ResidenceRow& row) {
  const DurationCounts& times = row.times;
  json buckets = json::array();
  for (size_t bucket = 0; bucket < kDurationBuckets; ++bucket)
    if (times.counts[bucket] > 0)
      buckets.push_back({DurationBucketLimit(bucket).ns, times.counts[bucket]});
  return {{"class", row.name},
          {"peer", row.peer},
          {"count", times.Count()},
          {"mean_us", Microseconds(times.Mean().ns)},
          {"p50_us", Microseconds(times.Quantile(500).ns)},
          {"p90_us", Microseconds(times.Quantile(900).ns)},
          {"p99_us", Microseconds(times.Quantile(990).ns)},
          {"max_us", Microseconds(static_cast<int64_t>(times.max_ns))},
          {"sum_ns", times.sum_ns},
          {"max_ns", times.max_ns},
          {"buckets", std::move(buckets)}};
}

// Throws what the JSON library throws, and std::out_of_range.
DurationCounts ReadTimes(const json& row) {
  DurationCounts times;
  times.sum_ns = row.at("sum_ns");
  times.max_ns = row.at("max_ns");
  if (std::max(times.sum_ns, times.max_ns) > static_cast<uint64_t>(INT64_MAX))
    throw std::out_of_range("sum_ns or max_ns");
  for (const json& bucket : row.at("buckets")) {
    const int64_t limit_ns = bucket.at(0);
    const size_t index = limit_ns > 0 ? DurationBucketOf({limit_ns - 1}) : 0;
    if (DurationBucketLimit(index).ns != limit_ns) throw std::out_of_range("buckets");
    times.counts[index] = bucket.at(1);
  }
  return times;
}
ResidenceRow RowFromJson(const json& object) {
  return {.name = object.at("class"), .peer = object.at("peer"), .times = ReadTimes(object)};
}

DaemonResidence DaemonFromJson(const json& object) {
  DaemonResidence daemon{.component = object.at("component"),
                         .host = object.at("host"),
                         .id = object.at("id"),
                         .failure = object.at("failure"),
                         .since_start = object.at("since_start"),
                         .between = {},
                         .snapshot = {}};
  daemon.snapshot.component = daemon.component;
  daemon.snapshot.started.ns = object.at("started_ns");
  daemon.snapshot.taken.ns = object.at("taken_ns");
  daemon.snapshot.is_truncated = object.at("truncated");
  for (const json& row : object.at("requests")) daemon.snapshot.rows.push_back(RowFromJson(row));
  for (const auto& [name, value] : object.at("totals").items())
    daemon.snapshot.amounts.push_back({name, value.get<uint64_t>(), /*is_total=*/true});
  for (const auto& [name, value] : object.at("now").items())
    daemon.snapshot.amounts.push_back({name, value.get<uint64_t>(), /*is_total=*/false});
  return daemon;
}

}  // namespace

std::string Describe(const DaemonResidence& daemon) {
  if (daemon.component == "manager") return "the manager";
  return fmt::format("the {} of {}", daemon.component, daemon.host);
}

Result<ClusterResidence> TakeResidence(sai::AdminClient& manager, const ResidenceQuery& query) {
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, manager.GetClusterStatus());
  auto daemons = DaemonsOf(status);
  const auto ask = [&](size_t i) {
    auto& [daemon, source] = daemons[i];
    auto answer = manager.GetResidence(source, query);
    if (answer.ok()) {
      daemon.snapshot = *std::move(answer);
    } else {
      daemon.failure = MessageOf(answer.status());
    }
    return OkStatus();
  };
  MOSA_RETURN_IF_ERROR(InParallel(daemons.size(), kAskedAtOnce, ask));
  ClusterResidence residence{
      .cluster = status.cluster_name, .names = NamesOf(status), .daemons = {}};
  for (auto& [daemon, source] : daemons) residence.daemons.push_back(std::move(daemon));
  return residence;
}

ClusterResidence Since(const ClusterResidence& later, const ClusterResidence& earlier) {
  ClusterResidence since = later;
  for (DaemonResidence& daemon : since.daemons) {
    if (!daemon.failure.empty()) continue;
    const DaemonResidence* const before = FindSame(earlier, daemon);
    if (before != nullptr && !before->failure.empty()) {
      daemon.failure = fmt::format("its earlier requests are unknown: {}", before->failure);
      daemon.snapshot = {};
      continue;
    }
    daemon.since_start = before == nullptr || before->snapshot.started != daemon.snapshot.started;
    if (daemon.since_start) continue;
    daemon.between = daemon.snapshot.taken - before->snapshot.taken;
    daemon.snapshot = Since(daemon.snapshot, before->snapshot);
  }
  for (const DaemonResidence& before : earlier.daemons) {
    if (FindSame(later, before) != nullptr) continue;
    DaemonResidence gone = before;
    gone.failure = "it is gone: the manager no longer knows it";
    gone.snapshot = {};
    since.daemons.push_back(std::move(gone));
  }
  return since;
}

void NamePeers(ClusterResidence& residence) {
  for (DaemonResidence& daemon : residence.daemons) {
    for (ResidenceRow& row : daemon.snapshot.rows) {
      const auto name = residence.names.find(row.peer);
      if (name != residence.names.end()) row.peer = name->second;
    }
  }
}

size_t KeepLargest(ClusterResidence& residence, size_t rows_max) {
  std::vector<uint64_t> sums;
  for (const DaemonResidence& daemon : residence.daemons)
    for (const ResidenceRow& row : daemon.snapshot.rows) sums.push_back(row.times.sum_ns);
  if (sums.size() <= rows_max) return 0;
  std::ranges::sort(sums, std::greater());
  std::multiset<uint64_t> kept(sums.begin(), sums.begin() + static_cast<ptrdiff_t>(rows_max));
  for (DaemonResidence& daemon : residence.daemons)
    std::erase_if(daemon.snapshot.rows, [&kept](const ResidenceRow& row) {
      return kept.extract(row.times.sum_ns).empty();
    });
  return sums.size() - rows_max;
}

json ToJson(const ClusterResidence& residence) {
  json daemons = json::array();
  for (const DaemonResidence& daemon : residence.daemons) {
    json requests = json::array();
    for (const ResidenceRow& row : daemon.snapshot.rows) requests.push_back(ToJson(row));
    json totals = json::object();
    json now = json::object();
    for (const ResidenceAmount& amount : daemon.snapshot.amounts)
      (amount.is_total ? totals : now)[amount.name] = amount.value;
    daemons.push_back({{"component", daemon.component},
                       {"host", daemon.host},
                       {"id", daemon.id},
                       {"failure", daemon.failure},
                       {"since_start", daemon.since_start},
                       {"started_ns", daemon.snapshot.started.ns},
                       {"taken_ns", daemon.snapshot.taken.ns},
                       {"truncated", daemon.snapshot.is_truncated},
                       {"requests", std::move(requests)},
                       {"totals", std::move(totals)},
                       {"now", std::move(now)}});
  }
  return {
      {"cluster", residence.cluster}, {"names", residence.names}, {"daemons", std::move(daemons)}};
}

Result<DurationCounts> TimesFromJson(const json& row) {
  try {
    return ReadTimes(row);
  } catch (const std::exception& error) {
    return InvalidArgumentError(fmt::format("this is not a row of requests: {}", error.what()));
  }
}

Result<ClusterResidence> ResidenceFromJson(const json& object) {
  try {
    ClusterResidence residence{
        .cluster = object.at("cluster"), .names = object.at("names"), .daemons = {}};
    for (const json& daemon : object.at("daemons"))
      residence.daemons.push_back(DaemonFromJson(daemon));
    return residence;
  } catch (const std::exception& error) {
    return InvalidArgumentError(
        fmt::format("this is not what 'mosa residence --json' prints: {}", error.what()));
  }
}

json ResidenceOfRun(const Result<ClusterResidence>& before, const Result<ClusterResidence>& after) {
  json object;
  if (before.ok() && after.ok()) {
    ClusterResidence during = Since(*after, *before);
    const size_t left_out = KeepLargest(during, kRecordRowsMax);
    NamePeers(during);
    object = ToJson(during);
    object["rows_left_out"] = left_out;
  } else {
    object["failure"] = MessageOf(before.ok() ? after.status() : before.status());
  }
  return object;
}

}  // namespace mosa::cli
