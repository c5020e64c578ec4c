#include "predictor/plan/file_places.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

namespace mosa::predict {
namespace {

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

// How a plan places an output: the hint `placement`; empty: by the graph; nothing: the workflow has
// its own placement, or nobody reads it.
std::optional<std::string> PlannedPlacement(
    const WorkflowFile& file, Writes way, const Places& division,
    const std::map<std::string, std::optional<HostIndex>>& readers_hosts) {
  const bool is_given = file.hints.contains("pattern") || file.hints.contains("placement");
  if (is_given || file.consumers.empty()) return std::nullopt;
  if (way == Writes::kByGraph) return "";
  if (way == Writes::kHere) return "local";
  const HostIndex writer = division[file.producer->value];
  const std::optional<HostIndex> reader = ReadersHost(file, division);
  if (reader == writer && !readers_hosts.at(ParentOf(file.path))) return "local";
  return reader ? "node:" + NameOf(*reader) : "";
}

// Roughly where a file with these hints goes.
FilePlace PlaceByHints(const WorkflowFile& file, const HintMap& hints,
                       const Configuration& configuration) {
  using Kind = FilePlace::Kind;
  const auto value_of = [&](const char* name) {
    const auto found = hints.find(name);
    return found == hints.end() ? std::string_view() : std::string_view(found->second);
  };
  const std::string_view pattern = value_of("pattern");
  std::string_view placement = value_of("placement");
  if (placement.empty() && pattern.empty()) placement = configuration.placement;
  FilePlace place;
  if (pattern == "pipeline" || placement == "local") {
    place.kind = Kind::kOnWriter;
  } else if (placement.starts_with("node:h")) {
    uint32_t number = 0;
    const std::string_view digits = placement.substr(6);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number >= 1 && number <= configuration.hosts)
      place = {Kind::kOnHost, HostIndex{number - 1}, 1};
  } else if (pattern.starts_with("reduce") || placement.starts_with("collocate")) {
    // On one node, which the store chooses: the same for all that one task reads.
    const uint32_t reader = file.consumers.empty() ? 0 : file.consumers.front().value;
    place = {Kind::kOnHost, HostIndex{reader % configuration.hosts}, 1};
  } else if (pattern.starts_with("broadcast:")) {
    const std::string_view digits = pattern.substr(10);
    std::from_chars(digits.data(), digits.data() + digits.size(), place.copies);
  }
  return place;
}

}  // namespace

std::string NameOf(HostIndex host) { return fmt::format("h{}", host.value + 1); }

Workflow Planned(const Workflow& workflow, const std::vector<FileHints>& by_graph,
                 const Places& division, const Ways& ways, Duration patience) {
  Workflow planned = workflow;
  for (size_t i = 0; i < planned.tasks.size(); ++i)
    planned.tasks[i].planned = PlannedHost{division[i], patience};
  planned.hints_are_whole = true;
  planned.reads_ahead = true;
  const auto readers_hosts = ReadersHosts(workflow, division);
  for (size_t i = 0; i < by_graph.size(); ++i) {
    WorkflowFile& file = planned.files[by_graph[i].file.value];
    const auto placement = PlannedPlacement(file, ways[i], division, readers_hosts);
    if (!placement) continue;
    if (placement->empty())
      file.hints = by_graph[i].hints;
    else
      file.hints["placement"] = *placement;
  }
  return planned;
}

std::vector<FilePlace> PlacesOfFiles(const Workflow& workflow, const Configuration& configuration,
                                     const std::vector<FileHints>& by_graph, const Places& division,
                                     const Ways& ways) {
  std::vector<FilePlace> places;
  for (const WorkflowFile& file : workflow.files)
    places.push_back(PlaceByHints(file, file.hints, configuration));
  const auto readers_hosts = ReadersHosts(workflow, division);
  for (size_t i = 0; i < by_graph.size(); ++i) {
    const WorkflowFile& file = workflow.at(by_graph[i].file);
    const auto placement = PlannedPlacement(file, ways[i], division, readers_hosts);
    if (!placement) continue;
    const HintMap hints =
        placement->empty() ? by_graph[i].hints : HintMap{{"placement", *placement}};
    places[by_graph[i].file.value] = PlaceByHints(file, hints, configuration);
  }
  return places;
}

}  // namespace mosa::predict
