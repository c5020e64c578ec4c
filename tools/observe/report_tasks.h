// What a run's record says of its tasks and files, as the page of a report shows it. Pure.
#ifndef MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_
#define MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/forecast/compare_record.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

// Later times in a record are no times.
inline constexpr double kSecondsMax = 1e9;

// What the record has under a name, if that is a text; else "".
std::string TextOf(const nlohmann::json& object, const char* name);

struct TasksReport {
  nlohmann::json tasks;      // Columns, a row for each task: names, times, bytes; see the .cc.
  nlohmann::json stages;     // Sums of these, in the order of their first start.
  nlohmann::json failed;     // Attempts that failed.
  nlohmann::json placement;  // Bytes of each stage's files by the node that has a copy.
  nlohmann::json traffic;    // Bytes by the host of the task and the node that holds them.
  std::vector<std::string> notes;  // What could not be taken from the record, in sentences.
};

// `finished` may be null: then nothing is predicted. What is not as a record has it is left out
// and noted, whatever it is.
TasksReport ReportTasks(const RunFile& file, const FinishedRuns* finished);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_
