// The record of a run while it goes on, by the indices of its workflow: where and when each task
// ran, what it read and wrote. run_file.h has the form in which it is written and read.
#ifndef MOSA_TOOLS_RUNNER_RECORD_H_
#define MOSA_TOOLS_RUNNER_RECORD_H_

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "predictor/workflow/execution.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/files.h"
#include "tools/hosts/hosts.h"
#include "tools/runner/run_file.h"

namespace mosa::cli {

struct TaskRecord {
  predict::TaskState state = predict::TaskState::kWaiting;
  bool kept = false;  // Done by an earlier run.
  std::vector<Attempt> attempts;
  std::map<predict::PathIndex, FileFacts> inputs;   // For the last attempt.
  std::map<predict::PathIndex, FileFacts> outputs;  // If it is done.
  // An earlier run whose outputs are still there: they serve if the task would read what it read
  // then. Null: there is none.
  std::shared_ptr<const TaskRecord> earlier;
};

struct RunRecord {
  std::string workflow_path;
  // Content decides what an earlier run's results are worth, so files have checksums.
  bool reuses = false;
  std::string rules_path;      // Empty: none.
  std::string plan_path;       // Empty: none.
  std::string store_run;       // As in RunFile.
  bool reports_tasks = false;  // The store has begun `store_run`, and is told of its tasks.
  predict::System system = predict::System::kWass;
  std::string outcome = "running";  // Then "done", "failed" or "interrupted".
  Time start;
  Time end;
  std::vector<RunHost> hosts;
  std::vector<std::string> hosts_lost;
  std::vector<TaskRecord> tasks;                         // As the workflow's.
  std::map<predict::PathIndex, predict::HintMap> hints;  // Outputs that have any.
  std::set<predict::PathIndex> inheriting;          // Outputs whose directory carries their hints.
  std::map<predict::PathIndex, FileFacts> outside;  // Files that no task writes, at the start.
  uint64_t read_ahead_bytes = 0;                    // As in RunFile.
  uint64_t read_ahead_used_bytes = 0;
  std::vector<MachineUse> machines;  // As MachinesOfRun() says; empty: not known.
  nlohmann::json residence;  // How long requests stayed in the daemons meanwhile; null: not asked.
};

nlohmann::json ToJson(const RunRecord& record, const predict::Workflow& workflow);

// The one run that may write the record at `path`: a lock on a file beside it, for as long as the
// descriptor is open. A run that was killed keeps it until its last task has ended; that is waited
// for. FailedPrecondition names the process of another run.
Result<UniqueFd> LockRecord(const std::string& path);

// Writes to another name first, so that whoever reads sees the old record or the new.
Status WriteRecord(const std::string& path, const nlohmann::json& record);

// Takes what an earlier run finished of the workflow's tasks from its record into `record`: the
// last attempts, the outputs. Returns what PlanResume() wants, with `outputs_intact` still false.
// Fails as ReadRunFile(); FailedPrecondition if `record` reuses and the environment was another
// one.
Result<std::vector<predict::EarlierRun>> ReadRecord(const std::string& path,
                                                    const predict::Workflow& workflow,
                                                    RunRecord& record);

// "h1 (3), h2 (1)": how many tasks this run ran on which host, the most first; of many hosts the
// first eight. Empty if it ran none.
std::string DescribePlaces(const RunRecord& record);

// The files as the workflow names them (NameOf).
std::vector<std::string> PathsOf(const predict::Workflow& workflow,
                                 const std::vector<predict::PathIndex>& files);

// A hash of all that makes a task the same task: command, inputs, outputs.
std::string DigestOf(const predict::Workflow& workflow, const predict::Task& task);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_RECORD_H_
