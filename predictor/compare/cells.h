// Cells: the times of a run laid side by side, predicted and measured: those of the workflow,
// its stages, the tasks of a stage, the waits before them, hosts, and single tasks.
//
// Times are compared by their logarithms, since models and machines are off by factors, with
// kSmallSeconds added, so that what nobody would notice is no factor.
#ifndef MOSA_PREDICTOR_COMPARE_CELLS_H_
#define MOSA_PREDICTOR_COMPARE_CELLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predictor/compare/seen_run.h"

namespace mosa::predict {

inline constexpr double kSmallSeconds = 0.01;

enum class Level : uint8_t {
  kWorkflow,  // From the run's beginning to the last end.
  kStage,     // From its first start to its last end.
  kTasks,     // The mean of a stage's tasks.
  kStart,     // The mean wait before a stage's tasks: from when a task's predecessors had ended,
              // and the last task before it on its host, to its start.
  kHost,      // The tasks on a host, beside what others' of the same stages make one expect.
  kTask,
};
const char* ToText(Level level);

struct CellName {
  Level level = Level::kWorkflow;
  std::string name;
  auto operator<=>(const CellName&) const = default;
};

struct CellValue {
  double seconds = 0;
  double expected_s = 0;  // Hosts only.
  double place = 0;       // What is tested: a logarithm.
  // How often the cell's seconds are in those of the workflow, at most: one more in each is so many
  // in that.
  double rounds = 1;
};
using Cells = std::map<CellName, CellValue>;

// Seconds of a task by `run`, with what the model is off by. Precondition: it ran.
double SecondsOf(const SeenRun& run, const SeenTask& task);

// For each task the median over the draws in which it ran, 0 if in none.
std::vector<double> TypicalSeconds(const Workflow& workflow, const std::vector<SeenRun>& draws);

// What the run shows. A stage of one task is its kTasks only, not the same twice more. Workflow,
// stages and waits only if it is whole; a host only if others had tasks of the same stages.
// `typical_s` by task; `slots` of each host.
Cells CellsOf(const Workflow& workflow, const SeenRun& run, const std::vector<double>& typical_s,
              uint32_t slots);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_CELLS_H_
