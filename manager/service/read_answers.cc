#include "manager/service/read_answers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace mosa::manager {
namespace {

// The hosts of an answer.
struct Hosts {
  std::vector<std::string> names;  // Without repetitions.
  std::unordered_map<uint64_t, uint32_t> index_of_node;
};

Result<Hosts> FindHosts(const ManagerCore& core, Time now, const std::vector<std::string>& asked) {
  std::map<std::string, NodeId> nodes;
  std::vector<std::string> answering;
  for (const NodeStatus& node : core.GetClusterStatus(now).nodes) {
    nodes.emplace(node.address.name, node.address.node);
    if (node.address.state == NodeState::kLive || node.address.state == NodeState::kDraining)
      answering.push_back(node.address.name);
  }
  Hosts hosts;
  for (const std::string& host : asked.empty() ? answering : asked) {
    const auto node = nodes.find(host);
    if (node == nodes.end())
      return InvalidArgumentError(fmt::format(
          "'{}' is not one of the {} storage nodes of this cluster", host, nodes.size()));
    const auto index = static_cast<uint32_t>(hosts.names.size());
    if (hosts.index_of_node.emplace(node->second.value, index).second) hosts.names.push_back(host);
  }
  return hosts;
}

Status CheckWork(size_t count, const char* what, size_t hosts, size_t most) {
  if (count * hosts <= most) return OkStatus();
  return InvalidArgumentError(
      fmt::format("{} {} on {} hosts make {} combinations: ask for at most {} at once", count, what,
                  hosts, count * hosts, most));
}

// Unsigned sums wrap, so a difference may be added to what it was taken from.
ReadCost Sum(const ReadCost& a, const ReadCost& b) {
  return {a.time + b.time, a.local_bytes + b.local_bytes, a.remote_bytes + b.remote_bytes};
}
ReadCost Difference(const ReadCost& a, const ReadCost& b) {
  return {a.time - b.time, a.local_bytes - b.local_bytes, a.remote_bytes - b.remote_bytes};
}

// One file of the question, which several sets may name.
struct File {
  std::optional<Failure> failure;
  ReadCost elsewhere;
  // For hosts that hold some of it: how their cost differs from `elsewhere`.
  std::vector<HostReadCost> holders;
};

File FileOf(const ReadCosts& costs, const Hosts& hosts, const ReadableFile& readable) {
  if (readable.failure) return {readable.failure, {}, {}};
  const FileCosts found = CostsOf(costs, readable);
  File file{std::nullopt, found.elsewhere, {}};
  for (const auto& [node, cost] : found.holders) {
    const auto host = hosts.index_of_node.find(node.value);
    if (host != hosts.index_of_node.end())
      file.holders.push_back({host->second, Difference(cost, found.elsewhere)});
  }
  return file;
}

void AddFile(const File& file, ReadCost& elsewhere, ReadSetCost& set) {
  set.failure = file.failure;
  elsewhere = Sum(elsewhere, file.elsewhere);
  for (const HostReadCost& holder : file.holders) {
    ReadCost& sum = set.hosts[holder.host].cost;
    sum = Sum(sum, holder.cost);
  }
}

}  // namespace

Result<ReadCostAnswer> AnswerReads(const ManagerCore& core, Time now, const ReadCosts& costs,
                                   const ReadCostQuery& query) {
  MOSA_ASSIGN_OR_RETURN(Hosts hosts, FindHosts(core, now, query.hosts));
  const auto host_count = static_cast<uint32_t>(hosts.names.size());
  // Each path once.
  std::unordered_map<std::string_view, size_t> known;
  std::vector<std::string> paths;
  size_t path_count = 0;
  for (const std::vector<std::string>& set : query.sets) {
    path_count += set.size();
    for (const std::string& path : set)
      if (known.emplace(path, paths.size()).second) paths.push_back(path);
  }
  MOSA_RETURN_IF_ERROR(CheckWork(query.sets.size(), "sets", host_count, kReadAnswersMax));
  MOSA_RETURN_IF_ERROR(CheckWork(path_count, "files", host_count, kReadAddendsMax));
  std::vector<File> files;
  for (const ReadableFile& readable : core.ListReadable(paths))
    files.push_back(FileOf(costs, hosts, readable));

  ReadCostAnswer answer;
  for (const std::vector<std::string>& paths_of_set : query.sets) {
    ReadSetCost& set = answer.sets.emplace_back();
    for (uint32_t i = 0; i < host_count; ++i) set.hosts.push_back({i, {}});
    ReadCost elsewhere;
    for (size_t i = 0; i < paths_of_set.size() && !set.failure; ++i)
      AddFile(files[known.at(paths_of_set[i])], elsewhere, set);
    if (set.failure) set.hosts.clear();
    for (HostReadCost& host : set.hosts) host.cost = Sum(host.cost, elsewhere);
    std::stable_sort(
        set.hosts.begin(), set.hosts.end(),
        [](const HostReadCost& a, const HostReadCost& b) { return a.cost.time < b.cost.time; });
  }
  answer.hosts = std::move(hosts.names);
  return answer;
}

}  // namespace mosa::manager
