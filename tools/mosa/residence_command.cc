// `mosa residence`: how long requests stay in each daemon.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/text_file.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr size_t kSnapshotBytesMax = size_t{256} << 20;

struct ResidenceOptions {
  ManagerChoice manager;
  std::string since;
  size_t top = 40;
};

// Three digits and a unit.
std::string Human(int64_t ns) {
  const auto number = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", number / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", number / 1e6);
  return fmt::format("{:.4g} s", number / 1e9);
}

void PrintResidence(const ClusterResidence& residence, size_t top) {
  struct Line {
    const DaemonResidence* daemon;
    const ResidenceRow* row;
  };
  std::vector<Line> lines;
  for (const DaemonResidence& daemon : residence.daemons)
    for (const ResidenceRow& row : daemon.snapshot.rows) lines.push_back({&daemon, &row});
  std::ranges::stable_sort(lines, [](const Line& a, const Line& b) {
    return a.row->times.sum_ns > b.row->times.sum_ns;
  });
  const size_t shown = top == 0 ? lines.size() : std::min(top, lines.size());
  Table table({"COMPONENT", "HOST", "CLASS", "PEER", "COUNT", "TOTAL", "MEAN", "50 %", "90 %",
               "99 %", "MAX"});
  for (const Line& line : std::span(lines).first(shown)) {
    const DurationCounts& times = line.row->times;
    table.Add({line.daemon->component, line.daemon->host, line.row->name,
               line.row->peer.empty() ? "-" : line.row->peer, fmt::format("{}", times.Count()),
               Human(static_cast<int64_t>(times.sum_ns)), Human(times.Mean().ns),
               Human(times.Quantile(500).ns), Human(times.Quantile(900).ns),
               Human(times.Quantile(990).ns), Human(static_cast<int64_t>(times.max_ns))});
  }
  table.Print();
  if (shown < lines.size())
    fmt::print(stderr,
               "mosa: {} rows with smaller totals are not shown: use --top 0 to show them\n",
               lines.size() - shown);
}

Result<ClusterResidence> ReadSnapshot(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kSnapshotBytesMax));
  auto read = ResidenceFromJson(nlohmann::json::parse(text, nullptr, false));
  if (read.ok()) return read;
  return InvalidArgumentError(fmt::format("--since {}: {}", path, MessageOf(read.status())));
}

Status ShowResidence(const ResidenceOptions& options, const CommandLine& line) {
  ClusterResidence earlier;
  if (!options.since.empty()) {
    MOSA_ASSIGN_OR_RETURN(earlier, ReadSnapshot(options.since));
  }
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(ClusterResidence residence, TakeResidence(*manager));
  if (!options.since.empty()) {
    if (earlier.cluster != residence.cluster)
      return FailedPreconditionError(
          fmt::format("--since {} was written for cluster '{}', but this is cluster '{}'",
                      options.since, earlier.cluster, residence.cluster));
    residence = Since(residence, earlier);
  }
  for (const DaemonResidence& daemon : residence.daemons) {
    if (!daemon.failure.empty())
      fmt::print(stderr, "mosa: the {} of host {} is left out: {}\n", daemon.component, daemon.host,
                 daemon.failure);
    if (daemon.since_start)
      fmt::print(stderr,
                 "mosa: the {} of host {} is new: its rows cover all the time since its start\n",
                 daemon.component, daemon.host);
  }
  if (line.json) {
    PrintJson(ToJson(residence));
  } else {
    NamePeers(residence);
    PrintResidence(residence, options.top);
  }
  return OkStatus();
}

}  // namespace

void AddResidence(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<ResidenceOptions>();
  CLI::App* command = app.add_subcommand(
      "residence",
      "Show how long requests stay in each daemon, by class and peer, largest total first\n\n"
      "  mosa residence\n"
      "  mosa residence --json > before.json; ...; mosa residence --since before.json");
  command->add_option(
      "--since", options->since,
      "Output of an earlier 'mosa residence --json'; shows only what came after it");
  command->add_option("--top", options->top, "Number of rows to show; 0: all")
      ->capture_default_str();
  AddManagerChoice(*command, options->manager);
  command->callback([options, &line] {
    line.action = [options, &line] { return ShowResidence(*options, line); };
  });
}

}  // namespace mosa::cli
