#include "tools/measure/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "common/base/units.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

std::string Interval(const Summary& summary) {
  if (summary.count == 0) return "-";
  if (!summary.half_width) return fmt::format("{:.3f}", summary.mean);
  return fmt::format("{:.3f} +-{:.3f}", summary.mean, *summary.half_width);
}

std::string Bytes(const json& object, const char* name) {
  if (!object.contains(name)) return "-";
  return HumanBytes(object.at(name).get<int64_t>());
}

const Cell* FindDss(const Group& group) {
  for (const Cell& cell : group.cells) {
    if (cell.system.kind == SystemKind::kDss) return &cell;
  }
  return nullptr;
}

void AddRow(const Cell& cell, const Cell* dss, const BenchResults& results, Table& table) {
  const json* last = results.LastRun(cell);
  if (last == nullptr) return;
  const Summary seconds = Summarize(results.SecondsOf(cell, "stages"));
  std::string ratio = "-";
  if (dss != nullptr && dss != &cell) {
    const Summary ratios = Summarize(results.RatiosOf(*dss, cell));
    if (ratios.count > 0) ratio = fmt::format("{:.2f}", ratios.median);
  }
  const json& stages = last->at("stages");
  const json paths = stages.value("by_path", json::object());
  const bool measured = stages.value("network_bytes", uint64_t{0}) > 0 || !paths.empty();
  table.Add({ToText(cell.pattern), ToText(cell.size), cell.name(),
             fmt::format("{}{}", seconds.count, IsWithin(seconds, kIntervalShare) ? "" : "?"),
             Interval(seconds), ratio, Interval(Summarize(results.SecondsOf(cell, "stage-in"))),
             Interval(Summarize(results.SecondsOf(cell, "stage-out"))),
             measured ? Bytes(stages, "network_bytes") : "-",
             measured ? Bytes(stages, "busiest_link_bytes") : "-", Bytes(paths, "bytes_read_local"),
             Bytes(paths, "bytes_read_remote"), Bytes(paths, "bytes_read_kernel"),
             Bytes(paths, "bytes_written_local"), Bytes(paths, "bytes_written_remote"),
             Bytes(paths, "bytes_written_passthrough")});
}

// "2 tasks, 50 %", for a host and stage.
std::string MapCell(const json& stage, const std::string& host) {
  uint64_t all = 0;
  for (const auto& [name, own] : stage.at("hosts").items())
    all += own.value("stored_bytes", uint64_t{0});
  const json own = stage.at("hosts").value(host, json::object());
  const auto tasks = own.value("tasks", 0);
  const auto bytes = own.value("stored_bytes", uint64_t{0});
  std::string text = tasks == 0 ? "" : fmt::format("{} task{}", tasks, tasks == 1 ? "" : "s");
  if (bytes > 0)
    text += fmt::format("{}{:.0f} %", text.empty() ? "" : ", ",
                        100.0 * static_cast<double>(bytes) / static_cast<double>(all));
  return text.empty() ? "." : text;
}

void PrintMap(const Cell& cell, const json& run) {
  fmt::print(
      "\n"
      "{} {} {}: tasks by host, and each host's share of the bytes that the stage wrote\n",
      ToText(cell.pattern), ToText(cell.size), cell.name());
  std::vector<std::string> heading = {"HOST"};
  std::set<std::string> hosts;
  for (const json& stage : run.at("tasks_by_stage")) {
    heading.push_back(stage.at("stage").get<std::string>());
    for (const auto& [host, own] : stage.at("hosts").items()) hosts.insert(host);
  }
  Table table(heading);
  for (const std::string& host : hosts) {
    std::vector<std::string> row = {host};
    for (const json& stage : run.at("tasks_by_stage")) row.push_back(MapCell(stage, host));
    table.Add(std::move(row));
  }
  table.Print();
}

}  // namespace

void PrintTable(const BenchPlan& plan, const BenchResults& results) {
  Table table({"PATTERN", "SIZE", "SYSTEM", "RUNS", "SECONDS", "X DSS", "STAGE-IN", "STAGE-OUT",
               "NETWORK", "BUSIEST LINK", "READ LOCAL", "REMOTE", "KERNEL", "WRITTEN LOCAL",
               "REMOTE", "PASSTHROUGH"});
  for (const Group& group : plan.groups) {
    const Cell* dss = FindDss(group);
    for (const Cell& cell : group.cells) AddRow(cell, dss, results, table);
  }
  table.Print();
}

void PrintMaps(const BenchPlan& plan, const BenchResults& results) {
  for (const Group& group : plan.groups) {
    for (const Cell& cell : group.cells) {
      if (const json* run = results.LastRun(cell)) PrintMap(cell, *run);
    }
  }
}

}  // namespace mosa::cli
