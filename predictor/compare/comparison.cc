#include "predictor/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/check.h"
#include "predictor/compare/busy.h"
#include "predictor/compare/judging.h"
#include "predictor/compare/statistics.h"

namespace mosa::predict {
namespace {

// A cell of the draws and of the judged runs.
struct SeenCell {
  std::vector<CellValue> drawn, measured;
};

double MeanPlaceOf(const std::vector<CellValue>& values) {
  std::vector<double> places;
  for (const CellValue& value : values) places.push_back(value.place);
  return MeanOf(places);
}
std::vector<double> SecondsOf(const std::vector<CellValue>& values) {
  std::vector<double> seconds;
  for (const CellValue& value : values) seconds.push_back(value.seconds);
  return seconds;
}

// A host is predicted from what the other hosts took in the same run, as the draws differ from
// theirs.
ComparedCell HostBeside(const SeenCell& seen, ComparedCell cell) {
  const double usual = MeanPlaceOf(seen.drawn);
  std::vector<double> predicted, places;
  for (const CellValue& value : seen.measured)
    predicted.push_back(value.expected_s * std::exp(usual));
  for (const CellValue& value : seen.drawn) places.push_back(value.place);
  if (!predicted.empty()) cell.predicted_s = Median(std::move(predicted));
  if (const auto interval = NineOfTen(std::move(places)))
    cell.predicted_interval_s = {cell.predicted_s * std::exp(interval->low - usual),
                                 cell.predicted_s * std::exp(interval->high - usual)};
  return cell;
}

ComparedCell CompareCell(const CellName& name, const SeenCell& seen, double workflow_s) {
  ComparedCell cell;
  cell.cell = name;
  cell.predicted_s = Median(SecondsOf(seen.drawn));
  cell.predicted_interval_s = NineOfTen(SecondsOf(seen.drawn));
  if (name.level == Level::kHost) cell = HostBeside(seen, cell);
  cell.runs = static_cast<uint32_t>(seen.measured.size());
  if (seen.measured.empty()) return cell;
  const std::vector<double> seconds = SecondsOf(seen.measured);
  const auto [least, most] = std::ranges::minmax(seconds);
  cell.measured_s = Median(seconds);
  cell.measured_range_s = {least, most};
  cell.residual_share = std::expm1(MeanPlaceOf(seen.measured) - MeanPlaceOf(seen.drawn));
  if (workflow_s > 0)
    cell.effect_share =
        (cell.measured_s - cell.predicted_s) * seen.measured.back().rounds / workflow_s;
  cell.verdict = Verdict::kAsPredicted;
  if (!cell.predicted_interval_s) return cell;
  if (cell.measured_s > cell.predicted_interval_s->high) cell.verdict = Verdict::kSlower;
  if (cell.measured_s < cell.predicted_interval_s->low) cell.verdict = Verdict::kFaster;
  return cell;
}

std::vector<ComparedCell> CompareCells(const Workflow& workflow, const std::vector<SeenRun>& draws,
                                       const std::vector<SeenRun>& judged, uint32_t slots,
                                       double& workflow_s) {
  const std::vector<double> typical_s = TypicalSeconds(workflow, draws);
  std::map<CellName, SeenCell> seen;
  for (const SeenRun& draw : draws)
    for (const auto& [name, value] : CellsOf(workflow, draw, typical_s, slots))
      seen[name].drawn.push_back(value);
  for (const SeenRun& run : judged)
    for (const auto& [name, value] : CellsOf(workflow, run, typical_s, slots))
      if (const auto found = seen.find(name); found != seen.end())
        found->second.measured.push_back(value);
  std::vector<ComparedCell> cells;
  for (const auto& [name, cell] : seen) {
    if (cell.drawn.size() < kDrawsMin) continue;
    if (name.level == Level::kWorkflow) workflow_s = Median(SecondsOf(cell.drawn));  // The first.
    cells.push_back(CompareCell(name, cell, workflow_s));
  }
  return cells;
}

void ComparePlaces(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& judged, Comparison& comparison) {
  std::vector<const SeenRun*> whole;
  for (const SeenRun& run : judged)
    if (run.whole) whole.push_back(&run);
  ComparedPlaces places = CompareBytes(workflow, draws, whole);
  comparison.stage_bytes = std::move(places.stages);
  comparison.link_bytes = std::move(places.links);
  comparison.node_bytes = std::move(places.nodes);
  comparison.chunks = CompareChunks(draws.front(), whole);
  if (AreInOtherChunks(comparison.chunks))
    comparison.other_chunks = SayOtherChunks(comparison.chunks);
}

}  // namespace

const char* ToText(Verdict verdict) {
  static constexpr const char* kNames[] = {"as predicted", "not measured", "slower", "faster"};
  return kNames[static_cast<size_t>(verdict)];
}

Comparison Compare(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& runs, uint32_t slots) {
  MOSA_CHECK(draws.size() >= kDrawsMin);
  const std::vector<SeenRun> judged(runs.begin() + static_cast<ptrdiff_t>(FirstJudged(runs.size())),
                                    runs.end());
  Comparison comparison;
  for (const SeenRun& run : runs) comparison.runs.push_back(run.name);
  std::vector<const SeenRun*> on_machines;
  for (const SeenRun& run : judged) {
    comparison.judged.push_back(run.name);
    on_machines.push_back(&run);
    for (const SeenMachine& machine : run.machines)
      comparison.machines.emplace_back(run.name, machine);
  }
  comparison.draws = static_cast<uint32_t>(draws.size());
  comparison.machine_busy = SayBusy(on_machines);
  double workflow_s = 0;
  comparison.cells = CompareCells(workflow, draws, judged, slots, workflow_s);
  ComparePlaces(workflow, draws, judged, comparison);
  const bool are_asked =
      std::ranges::any_of(judged, [](const SeenRun& run) { return !run.requests.empty(); });
  if (draws.front().requests.empty() || (!are_asked && !runs.empty())) return comparison;
  comparison.requests = CompareRequests(draws, runs, workflow_s);
  ExplainRequests(comparison.requests);
  return comparison;
}

}  // namespace mosa::predict
