// Carries out a workflow: takes decisions from the scheduler, starts tasks on their hosts, handles
// their results, and keeps the record. Single-threaded.
#ifndef MOSA_TOOLS_RUNNER_ENGINE_H_
#define MOSA_TOOLS_RUNNER_ENGINE_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "predictor/workflow/execution.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/host_mount.h"
#include "tools/hosts/task_processes.h"
#include "tools/runner/host_readers.h"
#include "tools/runner/record.h"
#include "tools/runner/run_progress.h"
#include "tools/runner/task_reports.h"
#include "tools/runner/task_streams.h"

namespace mosa::cli {

struct EngineOptions {
  uint32_t retries = 2;     // Retries of each task after its first attempt.
  bool keep_going = false;  // Continue with tasks that do not depend on a failed one.
  std::string record_path;
  std::string logs;  // An existing directory for the standard output and error of every attempt.
  bool keep_logs = false;  // Do not overwrite existing logs.
  bool quiet = false;      // Print nothing on standard error.
  int held = -1;           // See TaskProcesses.
  std::string plan;        // What to write to the record's plan_path; empty: nothing.
};

class Engine {
 public:
  // `record` has hosts, hints and tasks, and the outputs of kept tasks. All arguments must outlive
  // this.
  Engine(const predict::Workflow& workflow, RunRecord& record, const EngineOptions& options);

  // Runs to the end: OK if every task is done. A signal (cluster::InterruptGuard) ends all tasks as
  // well: Aborted. The record is written in every case.
  Status Run();

 private:
  struct Running {
    predict::TaskIndex task;
    predict::HostIndex host;
  };
  struct Tries {
    uint32_t failures = 0;
    uint32_t excused = 0;  // Attempts that failed through no fault of the task.
    std::set<predict::HostIndex> avoid;
  };
  // Limit of restarts through no fault of the task, in case a store loses data again and again.
  static constexpr uint32_t kExcusedMax = 20;
  struct StageTime {
    int64_t total_ns = 0;
    int64_t tasks = 0;
  };

  // ---- what may start
  void AddReady();
  std::optional<predict::ReadyTask> Look(predict::TaskIndex task);
  bool LocateInputs(predict::TaskIndex task);
  bool Reuse(predict::TaskIndex task);
  void NoteKept(predict::TaskIndex task);
  void NoteFile(predict::PathIndex file, FileFacts facts);
  void DropFile(predict::PathIndex file);
  void StartAll();
  void Launch(const predict::Assignment& assignment);
  Status Prepare(predict::TaskIndex task, predict::HostIndex host);
  TaskCommand CommandOf(predict::TaskIndex task, predict::HostIndex host, const Attempt& attempt);
  void ExpectEnds(Time now);

  // ---- what became of it
  void Handle(const TaskProcesses::Ended& ended);
  // The attempt has succeeded if `failure` is empty and its outputs are there.
  void Conclude(predict::TaskIndex task, predict::HostIndex host, const std::string& failure);
  void RecordInputs(predict::TaskIndex task);
  Status LocateOutputs(predict::TaskIndex task, predict::HostIndex host);
  Status GiveLifetimes(predict::TaskIndex task, predict::HostIndex host);
  void FailAttempt(predict::TaskIndex task, predict::HostIndex host, const std::string& why);
  // What they read is written again: they wait, and those that run are ended.
  void HoldBack(const std::vector<predict::TaskIndex>& withdrawn);
  bool UndoLostInputs(predict::TaskIndex task);
  void Undo(predict::TaskIndex task, predict::PathIndex lost);
  bool UndoLostResults();
  void LoseHostIfSilent(predict::HostIndex host);
  void LoseHost(predict::HostIndex host);
  void GiveUp(predict::TaskIndex task, const std::string& why);

  // ---- around it
  void LookAtHosts();
  bool Stopped() const;
  bool NoHostIsLeft() const { return record_.hosts_lost.size() == lost_.size(); }
  Duration WaitAtMost() const;
  void TellStore();
  void KeepRecord(bool now);
  Status End();
  void Interrupt();

  Time Now() const { return clock_.Monotonic(); }
  const RunHost& at(predict::HostIndex host) const { return record_.hosts[host.value]; }
  TaskRecord& at(predict::TaskIndex task) { return record_.tasks[task.value]; }
  HostMount* LivingMount();
  // Asks any living host: `ask` runs on one mount at a time until a mount answers.
  using Found = Result<HostMount::Found>;
  Found OnLivingHost(const std::function<Found(HostMount&)>& ask);

  const predict::Workflow& workflow_;
  RunRecord& record_;
  const EngineOptions options_;
  const SystemClock clock_;
  predict::Execution execution_;
  predict::Scheduler scheduler_;
  TaskStreams streams_;
  RunProgress progress_;
  TaskReports reports_;
  TaskProcesses processes_;
  HostReaders readers_;
  std::deque<HostMount> mounts_;  // In the order of the record's hosts.
  std::map<pid_t, Running> running_;
  // Tasks that have ended before the writers of their streams, which may yet fail.
  struct EndedEarly {
    predict::HostIndex host;
    std::string failure;  // Empty: none.
  };
  std::map<predict::TaskIndex, EndedEarly> ended_early_;
  std::vector<Tries> tries_;
  std::vector<bool> lost_;  // By host.
  std::map<predict::PathIndex, FileFacts> files_;
  std::map<std::string, StageTime> stages_;
  std::map<std::string, predict::HostIndex> host_names_;
  Status first_failure_;
  Time record_kept_;
  Duration record_took_;
  uint64_t changes_ = 0;
  uint64_t changes_kept_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_ENGINE_H_
