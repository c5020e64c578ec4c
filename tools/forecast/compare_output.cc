#include "tools/forecast/compare_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/units.h"
#include "predictor/compare/sentence.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::ComparedCell;
using predict::Interval;
using predict::Level;
using predict::Verdict;

// Rows and sentences that are printed. The JSON has the rest.
constexpr size_t kTasksShownMax = 10;
constexpr size_t kAnomaliesShownMax = 8;
constexpr size_t kRequestsShownMax = 10;
constexpr size_t kRequestSentencesMax = 3;

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
                 {"residual_s", nullptr},
                 {"residual_share", nullptr},
                 {"residual_share_interval", nullptr},
                 {"p", nullptr},
                 {"effect_share", nullptr},
                 {"verdict", predict::ToText(cell.verdict)}};
  if (cell.predicted_interval_s)
    object["predicted_interval_s"] = ToJson(*cell.predicted_interval_s);
  if (cell.runs == 0) return object;
  object["measured_s"] = cell.measured_s;
  object["measured_range_s"] = ToJson(cell.measured_range_s);
  object["residual_s"] = cell.residual_s;
  object["residual_share"] = cell.residual_share;
  object["residual_share_interval"] = ToJson(cell.residual_share_interval);
  object["p"] = cell.p;
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

json ToJson(const std::vector<predict::Blame>& blamed) {
  json list = json::array();
  for (const predict::Blame& blame : blamed)
    list.push_back({{"part", predict::ToText(blame.suspect.part)},
                    {"host", blame.suspect.host.empty() ? json() : json(blame.suspect.host)},
                    {"explained", blame.explained},
                    {"of_requests", blame.of_requests ? json(*blame.of_requests) : json()},
                    {"evidence", blame.evidence}});
  return list;
}

json ToJson(const std::vector<predict::SlowRequests>& slow) {
  json list = json::array();
  for (const predict::SlowRequests& requests : slow)
    list.push_back({{"component", requests.which.component},
                    {"host", requests.which.host},
                    {"class", requests.which.name},
                    {"peer", requests.which.peer},
                    {"runs", requests.runs},
                    {"count", requests.count},
                    {"mean_s", requests.mean_s},
                    {"elsewhere_s", requests.elsewhere_s},
                    {"more_s", requests.more_s}});
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

json OddRunsToJson(const predict::Comparison& comparison) {
  json list = json::array();
  for (const predict::OddRun& odd : comparison.odd_runs)
    list.push_back({{"run", odd.run}, {"sentence", odd.sentence}});
  return list;
}

json ToJson(const predict::Anomaly& anomaly, const predict::Comparison& comparison) {
  const predict::CellName& cell = comparison.cells[anomaly.cell].cell;
  return {{"level", predict::ToText(cell.level)},
          {"name", cell.name},
          {"slower", anomaly.slower},
          {"predicted_s", anomaly.predicted_s},
          {"measured_s", anomaly.measured_s},
          {"residual_share_interval", ToJson(anomaly.residual_share_interval)},
          {"effect_share", anomaly.effect_share},
          {"shown_in", anomaly.shown_in},
          {"judged", anomaly.judged},
          {"since", anomaly.since},
          {"blamed", ToJson(anomaly.blamed)},
          {"sentence", anomaly.sentence},
          {"cause", anomaly.cause},
          {"open_first", anomaly.open_first}};
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
               "95 %", "EFFECT", "VERDICT"});
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
               measured ? fmt::format("{} to {}", ShowShare(cell.residual_share_interval.low),
                                      ShowShare(cell.residual_share_interval.high))
                        : "-",
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

void PrintRequests(const predict::Comparison& comparison) {
  if (comparison.slow_requests.empty()) return;
  Table table({"SLOW REQUESTS", "HOST", "CLASS", "PEER", "RUNS", "COUNT", "MEAN MS", "ELSEWHERE",
               "MORE S"});
  const size_t shown = std::min(comparison.slow_requests.size(), kRequestsShownMax);
  for (size_t i = 0; i < shown; ++i) {
    const predict::SlowRequests& requests = comparison.slow_requests[i];
    table.Add({requests.which.component, requests.which.host, requests.which.name,
               requests.which.peer.empty() ? "-" : requests.which.peer,
               fmt::format("{}", requests.runs), fmt::format("{:.0f}", requests.count),
               fmt::format("{:.3f}", requests.mean_s * 1e3),
               fmt::format("{:.3f}", requests.elsewhere_s * 1e3), ShowSeconds(requests.more_s)});
  }
  fmt::print("\n");
  table.Print();
}

void PrintRequestSentences(const predict::Comparison& comparison) {
  const size_t off = predict::CountOff(comparison.requests);
  if (off == 0) return;
  fmt::print("\n{} class{} of requests took longer than predicted, largest first:\n", off,
             off == 1 ? "" : "es");
  const size_t shown = std::min(off, kRequestSentencesMax);
  for (size_t i = 0; i < shown; ++i) {
    fmt::print("- {}\n", comparison.requests[i].sentence);
    if (i + 1 == shown ||
        comparison.requests[i + 1].open_first != comparison.requests[i].open_first)
      fmt::print("  Open first: {}.\n", comparison.requests[i].open_first);
  }
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
               {"odd_runs", OddRunsToJson(comparison)},
               {"requests", ToJson(comparison.requests)},
               {"slow_requests", ToJson(comparison.slow_requests)},
               {"blamed", ToJson(comparison.blamed)},
               {"finding", FindingToJson(comparison)},
               {"anomalies_left_out", comparison.anomalies_left_out},
               {"anomalies", json::array()}};
  for (const predict::Anomaly& anomaly : comparison.anomalies)
    root["anomalies"].push_back(ToJson(anomaly, comparison));
  return root;
}

void PrintFinding(const predict::Finding& finding) {
  if (!finding.is_slower) return;
  fmt::print("\n{}\n", finding.sentence);
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
  PrintRequests(comparison);
  if (!report.notes.empty()) fmt::print("\n");
  for (const std::string& note : report.notes) fmt::print("Note: {}\n", note);
  PrintFinding(comparison.finding);
  PrintRequestSentences(comparison);
  const auto& anomalies = comparison.anomalies;
  const std::string verdict = VerdictOf(comparison);
  if (anomalies.empty()) {
    if (!comparison.finding.is_slower) fmt::print("\n{}.\n", verdict);
    return;
  }
  fmt::print("\n{}, largest first:\n", verdict);
  // Neighbours with the same cause print it once, after the last of them.
  const size_t shown = std::min(anomalies.size(), kAnomaliesShownMax);
  for (size_t i = 0; i < shown; ++i) {
    fmt::print("{}. {}\n", i + 1, anomalies[i].sentence);
    if (i + 1 < shown && anomalies[i + 1].cause == anomalies[i].cause &&
        anomalies[i + 1].open_first == anomalies[i].open_first)
      continue;
    if (!anomalies[i].cause.empty()) fmt::print("   {}\n", anomalies[i].cause);
    fmt::print("   Open first: {}.\n", anomalies[i].open_first);
  }
  if (anomalies.size() > kAnomaliesShownMax)
    fmt::print("And {} more: see --json.\n", anomalies.size() - kAnomaliesShownMax);
  if (comparison.anomalies_left_out > 0)
    fmt::print("{} more single tasks are off, each by less than these.\n",
               comparison.anomalies_left_out);
}

size_t CountAnomalies(const predict::Comparison& comparison) {
  return comparison.anomalies.size() + predict::CountOff(comparison.requests);
}

size_t CountMachineBusy(const predict::Comparison& comparison) {
  const auto cells =
      std::ranges::count(comparison.cells, Verdict::kMachineBusy, &ComparedCell::verdict);
  const auto requests = std::ranges::count(
      comparison.requests, predict::RequestVerdict::kMachineBusy, &predict::RequestCell::verdict);
  return static_cast<size_t>(cells + requests);
}

std::string VerdictOf(const predict::Comparison& comparison) {
  const size_t anomalies = comparison.anomalies.size();
  const size_t requests = predict::CountOff(comparison.requests);
  const std::string judged = fmt::format("in {} run{}", comparison.judged.size(),
                                         comparison.judged.size() == 1 ? "" : "s");
  const std::string classes = fmt::format("{} class{} of requests {}", requests,
                                          requests == 1 ? "" : "es", requests == 1 ? "is" : "are");
  const size_t busy = CountMachineBusy(comparison);
  if (requests + anomalies == 0 && busy > 0)
    return fmt::format("No anomaly {}, but the machine was busy: other load explains {} time{} off",
                       judged, busy, busy == 1 ? " that is" : "s that are");
  if (requests > 0 && anomalies == 0)
    return fmt::format("No task is off {}, but {}", judged, classes);
  return fmt::format("{} anomal{} {}{}", anomalies == 0 ? "No" : fmt::format("{}", anomalies),
                     anomalies > 1 ? "ies" : "y", judged,
                     requests > 0 ? fmt::format(", and {} off", classes) : "");
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
