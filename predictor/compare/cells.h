// Cells: the times of a run that are compared, predicted and measured: those of the workflow, its
// stages, the tasks of a stage, the waits before them, hosts, and single tasks.
//
// Compares logarithms of times, since models and machines are wrong by factors. Adds kSmallSeconds
// first, so that differences nobody would notice are not large factors.
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
  kStart,     // The mean wait before a stage's tasks: from the end of a task's predecessors and of
              // the task before it on its host, to its start.
  kHost,      // The tasks on a host, compared with what the same stages take on other hosts.
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
  double place = 0;       // A logarithm.
  // How many times the cell's seconds count in those of the workflow, at most: if each takes one
  // second more, the workflow takes this many more.
  double rounds = 1;
};
using Cells = std::map<CellName, CellValue>;

// Seconds of a task in `run`, multiplied by the model's error. Precondition: it ran.
double SecondsOf(const SeenRun& run, const SeenTask& task);

// By task: the median over the draws in which it ran; 0 if it ran in none.
std::vector<double> TypicalSeconds(const Workflow& workflow, const std::vector<SeenRun>& draws);

// The cells of a run. A stage with a single task has a kTasks cell only, since the others would
// repeat it. Workflow, stages and waits need a whole run; a host needs tasks of the same stages on
// other hosts. `typical_s` is by task; `slots` is the number on each host.
Cells CellsOf(const Workflow& workflow, const SeenRun& run, const std::vector<double>& typical_s,
              uint32_t slots);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_CELLS_H_
