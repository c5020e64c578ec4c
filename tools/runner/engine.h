// Carries a workflow out: asks the scheduler, starts tasks on their hosts, looks at what became of
// them, and keeps the record. One thread.
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
#include "tools/runner/record.h"

namespace mosa::cli {

struct EngineOptions {
  uint32_t retries = 2;     // After the first attempt of each task.
  bool keep_going = false;  // Go on with what does not depend on a failed task.
  std::string record_path;
  std::string logs;        // A directory that exists: standard output and error of every attempt.
  bool keep_logs = false;  // Those that are there stay.
  bool quiet = false;      // Nothing on standard error.
  int held = -1;           // As of TaskProcesses.
};

class Engine {
 public:
  // `record` has hosts, hints and tasks, and for kept tasks what they wrote. All must outlive this.
  Engine(const predict::Workflow& workflow, RunRecord& record, const EngineOptions& options);

  // Runs to the end: OK if every task is done. Ended by a signal (cluster::InterruptGuard), all
  // tasks are ended too: Aborted. The record is written whatever happens.
  Status Run();

 private:
  struct Running {
    predict::TaskIndex task;
    predict::HostIndex host;
  };
  struct Tries {
    uint32_t failures = 0;
    uint32_t excused = 0;  // Ended by what was no fault of the task.
    std::set<predict::HostIndex> avoid;
  };
  // How often a task may start again for what is no fault of its own; a limit against a store that
  // loses everything again and again.
  static constexpr uint32_t kExcusedMax = 20;
  struct StageTime {
    int64_t total_ns = 0;
    int64_t tasks = 0;
  };

  // ---- what may start
  void AddReady();
  std::optional<predict::ReadyTask> Look(predict::TaskIndex task);
  bool LocateInputs(predict::TaskIndex task);
  std::string LogOf(predict::TaskIndex task) const;
  void StartAll();
  void Launch(const predict::Assignment& assignment);
  Status Prepare(predict::TaskIndex task, predict::HostIndex host);
  TaskCommand CommandOf(predict::TaskIndex task, predict::HostIndex host, const Attempt& attempt);
  void ExpectEnds(Time now);

  // ---- what became of it
  void Handle(const TaskProcesses::Ended& ended);
  void Succeed(predict::TaskIndex task, predict::HostIndex host);
  Status LocateOutputs(predict::TaskIndex task, predict::HostIndex host);
  void FailAttempt(predict::TaskIndex task, predict::HostIndex host, const std::string& why);
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
  void KeepRecord(bool now);
  void ShowProgress(bool now);
  void Say(const std::string& sentence) const;
  Status End();
  void Interrupt();

  Time Now() const { return clock_.Monotonic(); }
  const RunHost& at(predict::HostIndex host) const { return record_.hosts[host.value]; }
  TaskRecord& at(predict::TaskIndex task) { return record_.tasks[task.value]; }
  // What `ask` says of a host that lives, whichever it is.
  using Found = Result<HostMount::Found>;
  Found OnLivingHost(const std::function<Found(HostMount&)>& ask);
  std::vector<std::string> Paths(const std::vector<predict::PathIndex>& files) const;

  const predict::Workflow& workflow_;
  RunRecord& record_;
  const EngineOptions options_;
  const SystemClock clock_;
  predict::Execution execution_;
  predict::Scheduler scheduler_;
  TaskProcesses processes_;
  std::deque<HostMount> mounts_;  // As the record's hosts.
  std::map<pid_t, Running> running_;
  std::vector<Tries> tries_;
  std::vector<bool> lost_;  // Hosts.
  std::map<predict::PathIndex, FileFacts> files_;
  std::map<std::string, StageTime> stages_;
  std::map<std::string, predict::HostIndex> host_names_;
  Status first_failure_;
  Time record_kept_;
  Duration record_took_;
  Time progress_shown_;
  uint64_t changes_ = 0;
  uint64_t changes_kept_ = 0;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_ENGINE_H_
