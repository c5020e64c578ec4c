// The tasks and files of a run's record as the page of a report shows them. Pure.
#ifndef MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_
#define MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/forecast/compare_record.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct TasksReport {
  nlohmann::json tasks;      // Columns, a row for each task: names, times, bytes; see the .cc.
  nlohmann::json stages;     // Sums of these, in the order of their first start.
  nlohmann::json failed;     // Attempts that failed.
  nlohmann::json placement;  // Bytes of each stage's files by the node that has a copy.
  nlohmann::json traffic;    // Bytes by the host of the task and the node that holds them.
  std::vector<std::string> notes;  // What could not be taken from the record, in sentences.
};

// `finished` may be null: then nothing is predicted. `notes` say which impossible values are left
// out.
TasksReport ReportTasks(const RunFile& file, const FinishedRuns* finished);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REPORT_TASKS_H_
