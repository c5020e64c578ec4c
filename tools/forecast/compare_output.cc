#include "tools/forecast/compare_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/units.h"
#include "predictor/compare/suspect.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::ComparedCell;
using predict::Interval;
using predict::Level;
using predict::Verdict;

// Rows that are printed. The JSON has the rest.
constexpr size_t kTasksShownMax = 10;
constexpr size_t kRequestsShownMax = 10;

std::string ShowSeconds(double seconds) { return fmt::format("{:.3f}", seconds); }
std::string ShowShare(double share) { return fmt::format("{:+.1f}%", share * 100); }
std::string ShowBytes(double bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

json ToJson(const Interval<double>& interval) { return {interval.low, interval.high}; }

json ToJson(const ComparedCell& cell) {
  json object = {{"level", predict::ToText(cell.cell.level)},
                 {"name", cell.cell.name},
                 {"predicted_s", cell.predicted_s},
                 {"predicted_interval_s", nullptr},
                 {"runs", cell.runs},
                 {"measured_s", nullptr},
                 {"measured_range_s", nullptr},
                 {"residual_share", nullptr},
                 {"effect_share", nullptr},
                 {"verdict", predict::ToText(cell.verdict)}};
  if (cell.predicted_interval_s)
    object["predicted_interval_s"] = ToJson(*cell.predicted_interval_s);
  if (cell.runs == 0) return object;
  object["measured_s"] = cell.measured_s;
  object["measured_range_s"] = ToJson(cell.measured_range_s);
  object["residual_share"] = cell.residual_share;
  object["effect_share"] = cell.effect_share;
  return object;
}

json ToJson(const std::vector<predict::ComparedBytes>& compared) {
  json list = json::array();
  for (const predict::ComparedBytes& bytes : compared)
    list.push_back({{"name", bytes.name},
                    {"predicted_bytes", bytes.predicted},
                    {"predicted_range_bytes", ToJson(bytes.drawn)},
                    {"measured_bytes", bytes.measured},
                    {"off", bytes.off}});
  return list;
}

json ToJson(const std::vector<predict::ChunkShare>& chunks) {
  json list = json::array();
  for (const predict::ChunkShare& share : chunks)
    list.push_back({{"chunk_bytes", share.chunk_bytes},
                    {"predicted_share", share.predicted},
                    {"measured_share", share.measured}});
  return list;
}

json ToJson(const predict::RequestFigures& figures) {
  return {{"count", figures.count},
          {"mean_s", figures.mean_s},
          {"p50_s", figures.median_s},
          {"p90_s", figures.p90_s}};
}

json ToJson(const std::vector<predict::RequestCell>& cells) {
  json list = json::array();
  for (const predict::RequestCell& cell : cells) {
    json object = {{"component", cell.which.component},
                   {"host", cell.which.host},
                   {"class", cell.which.name},
                   {"peer", cell.which.peer},
                   {"predicted", nullptr},
                   {"predicted_interval_s", nullptr},
                   {"runs", cell.runs},
                   {"measured", nullptr},
                   {"modes", nullptr},
                   {"residual_share", nullptr},
                   {"residual_share_interval", nullptr},
                   {"p", nullptr},
                   {"more_s", nullptr},
                   {"effect_share", nullptr},
                   {"verdict", predict::ToText(cell.verdict)},
                   {"shown_in", cell.shown_in},
                   {"sentence", cell.sentence},
                   {"open_first", cell.open_first}};
    if (cell.interval_s) {
      object["predicted"] = ToJson(cell.predicted);
      object["predicted_interval_s"] = ToJson(*cell.interval_s);
    }
    if (cell.runs > 0) object["measured"] = ToJson(cell.measured);
    if (cell.modes)
      object["modes"] = {{"slow_share", cell.modes->slow_share},
                         {"quick_s", cell.modes->quick_s},
                         {"slow_s", cell.modes->slow_s}};
    if (cell.p) {
      object["residual_share"] = cell.residual_share;
      object["residual_share_interval"] = ToJson(cell.residual_share_interval);
      object["p"] = *cell.p;
      object["more_s"] = cell.more_s;
      object["effect_share"] = cell.effect_share;
    }
    list.push_back(std::move(object));
  }
  return list;
}

json MachinesToJson(const predict::Comparison& comparison) {
  json list = json::array();
  for (const auto& [run, machine] : comparison.machines)
    list.push_back({{"run", run},
                    {"hosts", machine.hosts},
                    {"others_share", machine.others_share},
                    {"stolen_share", machine.stolen_share},
                    {"waited_share", machine.waited_share ? json(*machine.waited_share) : json()}});
  return list;
}

// Returns all cells, but only those single tasks that deviate most.
std::vector<const ComparedCell*> CellsShown(const predict::Comparison& comparison) {
  std::vector<const ComparedCell*> shown, tasks;
  for (const ComparedCell& cell : comparison.cells) {
    if (cell.cell.level != Level::kTask)
      shown.push_back(&cell);
    else if (cell.verdict != Verdict::kAsPredicted && cell.verdict != Verdict::kNotMeasured)
      tasks.push_back(&cell);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const ComparedCell* a, const ComparedCell* b) {
    return std::abs(a->effect_share) > std::abs(b->effect_share);
  });
  tasks.resize(std::min(tasks.size(), kTasksShownMax));
  shown.insert(shown.end(), tasks.begin(), tasks.end());
  return shown;
}

void PrintCells(const predict::Comparison& comparison) {
  Table table({"WHAT", "NAME", "PREDICTED S", "90 % INTERVAL", "MEASURED S", "RANGE", "OFF BY",
               "EFFECT", "VERDICT"});
  for (const ComparedCell* shown : CellsShown(comparison)) {
    const ComparedCell& cell = *shown;
    const auto range = [](const Interval<double>& interval) {
      return fmt::format("{} to {}", ShowSeconds(interval.low), ShowSeconds(interval.high));
    };
    const bool measured = cell.runs > 0;
    table.Add({predict::ToText(cell.cell.level), cell.cell.name, ShowSeconds(cell.predicted_s),
               cell.predicted_interval_s ? range(*cell.predicted_interval_s) : "-",
               measured ? ShowSeconds(cell.measured_s) : "-",
               measured ? range(cell.measured_range_s) : "-",
               measured ? ShowShare(cell.residual_share) : "-",
               measured ? ShowShare(cell.effect_share) : "-", predict::ToText(cell.verdict)});
  }
  table.Print();
}

void PrintBytes(const predict::Comparison& comparison) {
  if (comparison.stage_bytes.empty()) return;
  Table table({"BYTES ELSEWHERE", "NAME", "PREDICTED", "RANGE", "MEASURED", "VERDICT"});
  const auto add = [&table](const char* what, const std::vector<predict::ComparedBytes>& compared) {
    for (const predict::ComparedBytes& bytes : compared)
      table.Add({what, bytes.name, ShowBytes(bytes.predicted),
                 fmt::format("{} to {}", ShowBytes(bytes.drawn.low), ShowBytes(bytes.drawn.high)),
                 ShowBytes(bytes.measured), bytes.off ? "elsewhere" : "as predicted"});
  };
  add("stage", comparison.stage_bytes);
  add("link", comparison.link_bytes);
  add("written, on", comparison.node_bytes);
  fmt::print("\n");
  table.Print();
}

// Prints the classes that are off first, then those that took most time. The JSON has the rest.
void PrintRequestCells(const predict::Comparison& comparison) {
  if (comparison.requests.empty()) return;
  Table table({"REQUESTS", "HOST", "CLASS", "PEER", "PREDICTED MS", "90 % INTERVAL", "50 %", "90 %",
               "MEASURED MS", "50 %", "90 %", "COUNT", "OFF BY", "MORE S", "VERDICT"});
  const auto ms = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
  const size_t shown = std::min(comparison.requests.size(), kRequestsShownMax);
  for (size_t i = 0; i < shown; ++i) {
    const predict::RequestCell& cell = comparison.requests[i];
    const bool predicted = cell.interval_s.has_value();
    const bool measured = cell.runs > 0;
    const bool tested = cell.p.has_value();
    table.Add(
        {cell.which.component, cell.which.host, cell.which.name,
         cell.which.peer.empty() ? "-" : cell.which.peer,
         predicted ? ms(cell.predicted.mean_s) : "-",
         predicted ? fmt::format("{} to {}", ms(cell.interval_s->low), ms(cell.interval_s->high))
                   : "-",
         predicted ? ms(cell.predicted.median_s) : "-", predicted ? ms(cell.predicted.p90_s) : "-",
         measured ? ms(cell.measured.mean_s) : "-", measured ? ms(cell.measured.median_s) : "-",
         measured ? ms(cell.measured.p90_s) : "-",
         fmt::format("{:.0f}", measured ? cell.measured.count : cell.predicted.count),
         tested ? ShowShare(cell.residual_share) : "-", tested ? ShowSeconds(cell.more_s) : "-",
         predict::ToText(cell.verdict)});
  }
  fmt::print("\n");
  table.Print();
}

json ToJson(const predict::Witness& witness) {
  static constexpr const char* kNames[] = {"workflow", "tasks",    "own",
                                           "start",    "requests", "fetched"};
  const predict::RequestClass& which = witness.feature.which;
  return {{"of", kNames[static_cast<size_t>(witness.feature.of)]},
          {"component", which.component},
          {"name", which.name},
          {"host", which.host},
          {"peer", which.peer},
          {"measured", witness.measured},
          {"predicted", witness.predicted},
          {"replayed", witness.replayed},
          {"gain", witness.gain}};
}

json ToJson(const std::vector<predict::Diagnosis>& diagnoses) {
  json all = json::array();
  for (const predict::Diagnosis& diagnosis : diagnoses) {
    json suspects = json::array(), witnesses = json::array();
    for (const predict::Suspicion& each : diagnosis.suspicions)
      suspects.push_back({{"part", ToText(predict::PartOf(each.how))},
                          {"how", ToText(each.how)},
                          {"at", each.at},
                          {"size", each.size},
                          {"slower", predict::SizeInWords(each)}});
    for (const predict::Witness& witness : diagnosis.witnesses)
      witnesses.push_back(ToJson(witness));
    all.push_back({{"suspects", std::move(suspects)},
                   {"gain", diagnosis.gain},
                   {"predicted_s", diagnosis.predicted_s},
                   {"replayed_s", diagnosis.replayed_s},
                   {"measured_s", diagnosis.measured_s},
                   {"witnesses", std::move(witnesses)}});
  }
  return all;
}

json FindingToJson(const predict::Comparison& comparison) {
  const predict::Finding& finding = comparison.finding;
  json causes = json::array();
  for (const predict::Cause& cause : finding.causes) {
    json suspects = json::array();
    for (const predict::Suspect& suspect : cause.suspects)
      suspects.push_back({{"part", ToText(suspect.part)},
                          {"host", suspect.host.empty() ? json() : json(suspect.host)}});
    causes.push_back({{"suspects", std::move(suspects)},
                      {"gain", cause.gain},
                      {"without_s", cause.without_s},
                      {"sentence", cause.sentence},
                      {"witnesses", cause.witnesses},
                      {"open_first", cause.open_first}});
  }
  return {{"is_slower", finding.is_slower},
          {"is_replayed", finding.is_replayed},
          {"evidence", finding.evidence},
          {"excess_share", comparison.detection.excess_share},
          {"shown", comparison.detection.shown.size()},
          {"sentence", finding.sentence},
          {"causes", std::move(causes)},
          {"diagnoses", ToJson(comparison.diagnoses)}};
}

json ToJson(const CompareReport& report, const predict::Comparison& comparison, json cells) {
  json root = {{"workflow", report.workflow},
               {"platform", report.platform},
               {"configuration", report.configuration},
               {"draws", comparison.draws},
               {"draws_failed", report.draws_failed},
               {"runs", comparison.runs},
               {"judged", comparison.judged},
               {"notes", report.notes},
               {"cells", std::move(cells)},
               {"stage_bytes", ToJson(comparison.stage_bytes)},
               {"link_bytes", ToJson(comparison.link_bytes)},
               {"node_bytes", ToJson(comparison.node_bytes)},
               {"chunks", ToJson(comparison.chunks)},
               {"machines", MachinesToJson(comparison)},
               {"machine_busy", comparison.machine_busy},
               {"requests", ToJson(comparison.requests)},
               {"finding", FindingToJson(comparison)}};
  return root;
}

void PrintFinding(const predict::Finding& finding) {
  for (size_t i = 0; i < finding.causes.size(); ++i) {
    const predict::Cause& cause = finding.causes[i];
    fmt::print("{}{}\n", i == 0 ? "   Most likely: " : "   Nearly as likely: ", cause.sentence);
    if (i > 0) continue;
    for (const std::string& witness : cause.witnesses) fmt::print("     {}\n", witness);
    fmt::print("   Open first: {}.\n", cause.open_first);
  }
  if (finding.is_replayed && finding.causes.empty())
    fmt::print("   No single part explains a quarter of that: see what tasks printed.\n");
}

}  // namespace

void PrintComparison(const CompareReport& report, const predict::Comparison& comparison) {
  PrintCells(comparison);
  PrintBytes(comparison);
  PrintRequestCells(comparison);
  if (!report.notes.empty()) fmt::print("\n");
  for (const std::string& note : report.notes) fmt::print("Note: {}\n", note);
  fmt::print("\n{}\n", VerdictOf(comparison));
  if (comparison.finding.is_slower) PrintFinding(comparison.finding);
}

std::string VerdictOf(const predict::Comparison& comparison) {
  const predict::Finding& finding = comparison.finding;
  if (finding.sentence.empty())
    return "Not judged: the last run is incomplete, so how long the workflow took is not known.";
  const bool is_faster = comparison.detection.excess_share <= -predict::kExcessMin;
  return fmt::format("{}: {}",
                     finding.is_slower ? "Slower"
                     : is_faster       ? "Faster than predicted"
                                       : "Not slower",
                     finding.sentence);
}

json ToJson(const CompareReport& report, const predict::Comparison& comparison) {
  return ToJson(report, comparison, PredictedToJson(comparison));
}

json ShownToJson(const CompareReport& report, const predict::Comparison& comparison) {
  json cells = json::array();
  for (const ComparedCell* cell : CellsShown(comparison)) cells.push_back(ToJson(*cell));
  json shown = ToJson(report, comparison, std::move(cells));
  shown.erase("requests");
  return shown;
}

json RequestsToJson(const std::vector<predict::RequestCell>& cells) { return ToJson(cells); }

json PredictedToJson(const predict::Comparison& comparison) {
  json cells = json::array();
  for (const ComparedCell& cell : comparison.cells) cells.push_back(ToJson(cell));
  return cells;
}

}  // namespace mosa::cli
