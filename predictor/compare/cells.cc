#include "predictor/compare/cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "predictor/model/cost.h"
#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

// Seconds of a time in the run, multiplied by the model's error.
double Off(const SeenRun& run, Duration time, Duration computing) {
  return SecondsOf(time) * FactorOfWhole(run.factor, time, std::min(time, computing));
}

double PlaceOf(double seconds) { return std::log(seconds + kSmallSeconds); }

// What a stage's tasks took in total, over all hosts or on one.
struct TaskSum {
  size_t tasks = 0;
  double seconds = 0;
  double typical_s = 0;

  void Add(double taken_s, double usual_s) {
    ++tasks;
    seconds += taken_s;
    typical_s += usual_s;
  }
};

struct StageSums {
  TaskSum all;           // Tasks that ran; `tasks` as below.
  size_t tasks = 0;      // All of the stage, whether they ran or not.
  double typical_s = 0;  // For these.
  Duration begin, end;
  double waits_s = 0;
  size_t chain = 0;  // The most tasks in a chain of predecessors.
  std::map<uint32_t, TaskSum> on_host;
};

// How many tasks of the stage follow one another: in a chain, or on the same slot, with tasks that
// did not run spread evenly.
double RoundsOf(const StageSums& stage, size_t hosts, uint32_t slots) {
  const auto even = static_cast<double>(stage.tasks) / static_cast<double>(hosts);
  double on_host = even;
  for (const auto& [host, sum] : stage.on_host)
    on_host = std::max(on_host, static_cast<double>(sum.tasks));
  return std::max(static_cast<double>(stage.chain), std::ceil(on_host / std::max(1U, slots)));
}

// For each task, the number of tasks of its stage in the longest chain of predecessors that ends
// with it.
std::vector<size_t> ChainsOf(const Workflow& workflow, const SeenRun& run) {
  std::vector<size_t> order(run.tasks.size()), chains(run.tasks.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&run](size_t a, size_t b) { return run.tasks[a].start < run.tasks[b].start; });
  for (const size_t i : order) {
    for (const TaskIndex before : workflow.tasks[i].predecessors)
      if (workflow.at(before).stage == workflow.tasks[i].stage)
        chains[i] = std::max(chains[i], chains[before.value]);
    ++chains[i];
  }
  return chains;
}

// The ends of tasks on each host, ascending.
std::vector<std::vector<Duration>> EndsByHost(const SeenRun& run) {
  std::vector<std::vector<Duration>> ends(run.hosts.size());
  for (const SeenTask& task : run.tasks)
    if (task.ran) ends[task.host.value].push_back(task.end);
  for (auto& of_host : ends) std::sort(of_host.begin(), of_host.end());
  return ends;
}

Duration WaitBefore(const Task& task, const SeenTask& seen, const SeenRun& run,
                    const std::vector<Duration>& ends_there) {
  Duration could;  // The earliest possible start.
  for (const TaskIndex before : task.predecessors) {
    const SeenTask& its = run.tasks[before.value];
    const bool streams = std::ranges::binary_search(task.stream_writers, before);
    could = std::max(could, streams ? its.start : its.end);
  }
  const auto later = std::upper_bound(ends_there.begin(), ends_there.end(), seen.start);
  if (later != ends_there.begin()) could = std::max(could, *(later - 1));
  return std::max(Duration(), seen.start - could);
}

std::map<std::string, StageSums> SumsOf(const Workflow& workflow, const SeenRun& run,
                                        const std::vector<double>& typical_s) {
  std::map<std::string, StageSums> sums;
  const auto ends = EndsByHost(run);
  const auto chains = ChainsOf(workflow, run);
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    StageSums& stage = sums[workflow.tasks[i].stage];
    ++stage.tasks;
    stage.typical_s += typical_s[i];
    const SeenTask& task = run.tasks[i];
    if (!task.ran) continue;
    if (stage.all.tasks == 0 || task.start < stage.begin) stage.begin = task.start;
    stage.end = std::max(stage.end, task.end);
    stage.chain = std::max(stage.chain, chains[i]);
    const double seconds = SecondsOf(run, task);
    stage.all.Add(seconds, typical_s[i]);
    stage.on_host[task.host.value].Add(seconds, typical_s[i]);
    const Duration wait = WaitBefore(workflow.tasks[i], task, run, ends[task.host.value]);
    stage.waits_s += Off(run, wait, Duration());
  }
  return sums;
}

// The host's tasks, compared with the same stages on other hosts; nothing without such stages.
std::optional<CellValue> HostCell(const std::map<std::string, StageSums>& sums, uint32_t host,
                                  uint32_t slots) {
  CellValue cell;
  size_t stages = 0;
  for (const auto& [name, stage] : sums) {
    const auto here = stage.on_host.find(host);
    if (here == stage.on_host.end()) continue;
    const double elsewhere_s = stage.all.seconds - here->second.seconds;
    const double elsewhere_typical_s = stage.all.typical_s - here->second.typical_s;
    if (stage.all.tasks == here->second.tasks || elsewhere_typical_s <= 0) continue;
    cell.expected_s += here->second.typical_s * elsewhere_s / elsewhere_typical_s;
    cell.seconds += here->second.seconds;
    ++stages;
  }
  if (stages == 0) return std::nullopt;
  cell.place = PlaceOf(cell.seconds) - PlaceOf(cell.expected_s);
  cell.rounds = 1.0 / std::max(1U, slots);
  return cell;
}

void AddStage(const SeenRun& run, const std::string& name, const StageSums& stage, uint32_t slots,
              Cells& cells) {
  if (stage.all.tasks == 0) return;
  const double rounds = RoundsOf(stage, run.hosts.size(), slots);
  // Tasks that did not run count as if they had kept the pace of the others.
  double mean_s = stage.all.seconds / static_cast<double>(stage.all.tasks);
  if (stage.all.tasks < stage.tasks && stage.all.typical_s > 0)
    mean_s = stage.all.seconds / stage.all.typical_s * stage.typical_s /
             static_cast<double>(stage.tasks);
  cells[{Level::kTasks, name}] = {mean_s, 0, PlaceOf(mean_s), rounds};
  if (!run.whole) return;
  const auto computing = run.stage_computing.find(name);
  const double seconds =
      Off(run, stage.end - stage.begin,
          computing == run.stage_computing.end() ? Duration() : computing->second);
  if (stage.tasks > 1) cells[{Level::kStage, name}] = {seconds, 0, PlaceOf(seconds), 1};
  const double wait_s = stage.waits_s / static_cast<double>(stage.all.tasks);
  cells[{Level::kStart, name}] = {wait_s, 0, PlaceOf(wait_s), rounds};
}

}  // namespace

const char* ToText(Level level) {
  static constexpr const char* kNames[] = {"workflow", "stage", "tasks", "start", "host", "task"};
  return kNames[static_cast<size_t>(level)];
}

double SecondsOf(const SeenRun& run, const SeenTask& task) {
  return Off(run, task.end - task.start, task.computing);
}

std::vector<double> TypicalSeconds(const Workflow& workflow, const std::vector<SeenRun>& draws) {
  std::vector<double> typical_s(workflow.tasks.size(), 0);
  for (size_t i = 0; i < typical_s.size(); ++i) {
    std::vector<double> seconds;
    for (const SeenRun& draw : draws)
      if (draw.tasks[i].ran) seconds.push_back(SecondsOf(draw, draw.tasks[i]));
    if (!seconds.empty()) typical_s[i] = Median(std::move(seconds));
  }
  return typical_s;
}

Cells CellsOf(const Workflow& workflow, const SeenRun& run, const std::vector<double>& typical_s,
              uint32_t slots) {
  Cells cells;
  const auto sums = SumsOf(workflow, run, typical_s);
  for (const auto& [name, stage] : sums) AddStage(run, name, stage, slots, cells);
  for (uint32_t host = 0; host < run.hosts.size(); ++host)
    if (const auto cell = HostCell(sums, host, slots))
      cells[{Level::kHost, run.hosts[host]}] = *cell;
  Duration end;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& task = run.tasks[i];
    if (!task.ran) continue;
    const double seconds = SecondsOf(run, task);
    if (sums.at(workflow.tasks[i].stage).tasks > 1)
      cells[{Level::kTask, workflow.tasks[i].id}] = {seconds, 0, PlaceOf(seconds), 1};
    end = std::max(end, task.end);
  }
  if (run.whole) {
    const double seconds = Off(run, end, run.computing);
    cells[{Level::kWorkflow, workflow.name}] = {seconds, 0, PlaceOf(seconds), 1};
  }
  return cells;
}

}  // namespace mosa::predict
