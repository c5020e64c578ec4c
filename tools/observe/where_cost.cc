#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/units.h"
#include "predictor/model/cost.h"
#include "tools/console/output.h"
#include "tools/observe/where.h"

namespace mosa::cli {
namespace {

// Limit of paths in one command, so that a mistake does not exhaust memory.
constexpr size_t kPathsMax = 1'000'000;

struct Set {
  std::vector<std::string> paths;  // As given by the user.
  std::vector<std::string> in_store;
  Status status;
  const ReadSetCost* cost = nullptr;
};

// Parses `["a", "b"]`, or a path on its own.
Result<Set> SetOf(const std::string& text, size_t line) {
  Set set;
  if (!text.starts_with('[')) {
    set.paths = {text};
    return set;
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  bool good = json.is_array();
  for (size_t i = 0; good && i < json.size(); ++i) {
    good = json[i].is_string();
    if (good) set.paths.push_back(json[i].get<std::string>());
  }
  if (good) return set;
  return InvalidArgumentError(fmt::format(
      "set {} is not a JSON list of paths: write [\"a\", \"b\"], or one path without brackets",
      line));
}

Result<std::vector<Set>> ReadSets(const CostOptions& options) {
  std::vector<Set> sets;
  if (!options.paths.empty()) sets.push_back({options.paths, {}, {}, nullptr});
  if (options.from.empty()) return sets;
  std::vector<std::string> lines;
  MOSA_RETURN_IF_ERROR(ReadLines(options.from, kPathsMax, lines));
  size_t paths = options.paths.size();
  for (size_t i = 0; i < lines.size(); ++i) {
    MOSA_ASSIGN_OR_RETURN(Set set, SetOf(lines[i], i + 1));
    paths += set.paths.size();
    if (paths > kPathsMax)
      return InvalidArgumentError(fmt::format(
          "{} names more than {} files: split it into several files", options.from, kPathsMax));
    sets.push_back(std::move(set));
  }
  return sets;
}

// Finds each set's files in the store, and the manager that knows them: null if they are on no
// mount.
Result<std::unique_ptr<sai::AdminClient>> Resolve(const CostOptions& options,
                                                  std::vector<Set>& sets) {
  if (options.in_store) {
    for (Set& set : sets) set.in_store = set.paths;
    return ConnectManager(options.manager);
  }
  std::vector<std::string> paths;
  std::vector<size_t> set_of;
  for (size_t i = 0; i < sets.size(); ++i) {
    paths.insert(paths.end(), sets[i].paths.begin(), sets[i].paths.end());
    set_of.resize(paths.size(), i);
  }
  const auto by_mount = ByMount(paths);
  std::vector<std::optional<std::string>> found(paths.size());
  std::unique_ptr<sai::AdminClient> manager;
  std::set<std::string> mounts;  // Mount points in the manager's cluster.
  Status unreachable;
  for (const auto& [mount_point, files] : by_mount) {
    if (!manager) {
      // The mount may not be a Mosa mount, and the manager may belong to another cluster.
      auto candidate = ConnectManagerOf(options.manager, mount_point);
      const Result<ClusterStatus> status =
          candidate.ok() ? (*candidate)->GetClusterStatus() : candidate.status();
      if (!status.ok()) {
        if (unreachable.ok()) unreachable = status.status();
        continue;
      }
      mounts.clear();
      for (const SessionStatus& session : status->sessions)
        mounts.insert(session.start.mount_point);
      if (mounts.contains(mount_point)) manager = *std::move(candidate);
    }
    if (!mounts.contains(mount_point)) continue;
    for (const auto& [index, path] : files) found[index] = path;
  }
  if (!manager) MOSA_RETURN_IF_ERROR(unreachable);
  for (size_t i = 0; i < paths.size(); ++i) {
    Set& set = sets[set_of[i]];
    if (found[i]) {
      set.in_store.push_back(*found[i]);
    } else if (set.status.ok()) {
      set.status = InvalidArgumentError(fmt::format(
          "{}: {}", paths[i], manager ? "not on a mount of this cluster" : "not on a Mosa mount"));
    }
  }
  return manager;
}

nlohmann::json ToJson(const Set& set, const std::vector<std::string>& hosts) {
  nlohmann::json json;
  PutBytes(json, "paths", set.paths);
  if (!set.status.ok()) {
    json["error"] = MessageOf(set.status);
    return json;
  }
  json["hosts"] = nlohmann::json::array();
  for (const HostReadCost& host : set.cost->hosts)
    json["hosts"].push_back({{"host", hosts[host.host]},
                             {"seconds", predict::SecondsOf(host.cost.time)},
                             {"local_bytes", host.cost.local_bytes},
                             {"remote_bytes", host.cost.remote_bytes}});
  return json;
}

void Print(const std::vector<Set>& sets, const std::vector<std::string>& hosts) {
  const bool one = sets.size() == 1;
  std::vector<std::string> heading = {"SET", "HOST", "SECONDS", "LOCAL", "REMOTE"};
  if (one) heading.erase(heading.begin());
  Table table(heading);
  for (size_t i = 0; i < sets.size(); ++i) {
    if (!sets[i].status.ok()) continue;
    for (const HostReadCost& host : sets[i].cost->hosts) {
      std::vector<std::string> row = {fmt::format("{}", i + 1), hosts[host.host],
                                      fmt::format("{:.6f}", predict::SecondsOf(host.cost.time)),
                                      HumanBytes(static_cast<int64_t>(host.cost.local_bytes)),
                                      HumanBytes(static_cast<int64_t>(host.cost.remote_bytes))};
      if (one) row.erase(row.begin());
      table.Add(row);
    }
  }
  table.Print();
}

}  // namespace

Status ShowReadCosts(const CostOptions& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(std::vector<Set> sets, ReadSets(options));
  ReadCostAnswer answer;
  if (!sets.empty()) {
    MOSA_ASSIGN_OR_RETURN(auto manager, Resolve(options, sets));
    ReadCostQuery query{{}, options.hosts};
    for (const Set& set : sets)
      if (set.status.ok()) query.sets.push_back(set.in_store);
    if (!query.sets.empty()) {
      // None of the sets has a file.
      if (!manager) {
        MOSA_ASSIGN_OR_RETURN(manager, ConnectManager(options.manager));
      }
      MOSA_ASSIGN_OR_RETURN(answer, manager->PredictReads(query));
    }
  }
  Status result;
  size_t next = 0;
  for (Set& set : sets) {
    if (set.status.ok()) {
      set.cost = &answer.sets[next++];
      if (set.cost->failure)
        set.status = Status(set.cost->failure->code, set.cost->failure->message);
    }
    if (result.ok()) result = set.status;
  }
  if (!as_json) {
    Print(sets, answer.hosts);
    return result;
  }
  nlohmann::json json = nlohmann::json::array();
  for (const Set& set : sets) json.push_back(ToJson(set, answer.hosts));
  PrintJson(json);
  return result;
}

}  // namespace mosa::cli
