// SimulatedRunner: `mosa run` in virtual time. It uses the Execution, Scheduler and PlanHints of
// tools/runner/engine.cc and gets the same answers. One difference: the engine tells the scheduler
// every host's expected ends once for all newly ready tasks; this class tells it, for each task,
// only those of hosts that hold some of its input, since the scheduler reads no others. The
// runner's own work is sequential and costs what the platform says. Tasks with regions, which a
// graph cannot express, are pinned to hosts as in tools/measure/bench_pinned.cc.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_RUNNER_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_RUNNER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/prediction.h"
#include "predictor/run/simulated_client.h"
#include "predictor/run/simulated_operations.h"
#include "predictor/workflow/execution.h"
#include "predictor/workflow/read_ahead.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/synthetic.h"

namespace mosa::predict {

class SimulatedRunner {
 public:
  // Client i is the mount of host i. All arguments must outlive this. `part` is the synthetic part
  // that `workflow` belongs to, or null.
  SimulatedRunner(des::EventLoop& loop, const Workflow& workflow, const SyntheticPart* part,
                  const Platform& platform, const Configuration& configuration, Machines& machines,
                  SimulatedManager& manager, std::vector<std::unique_ptr<SimulatedClient>>& clients,
                  Prediction& prediction);

  // Writes the files that no task writes into the store, from the first host, with the user's
  // hints.
  des::Activity<void> StageIn();
  // Hints directories, then runs all tasks.
  des::Activity<void> Run();

  // What each machine could serve of a file when the runner looked; nothing if it never did.
  std::map<MachineIndex, uint64_t> HeldOf(PathIndex file) const;

 private:
  struct Ended {
    TaskIndex task;
    HostIndex host;
  };
  struct StageTime {
    int64_t total_ns = 0;
    int64_t tasks = 0;
  };

  des::Activity<void> RunScheduled();
  // ---- pinned tasks (simulated_pinned.cc)
  des::Activity<void> RunPinned();
  des::Activity<void> PrepareRegions();
  des::Activity<HostIndex> PinOf(TaskIndex task);
  des::Activity<void> HintDirectories();
  des::Activity<void> AddReady();
  des::Activity<std::optional<ReadyTask>> Look(TaskIndex task);
  des::Activity<void> Launch(Assignment assignment);
  void StartReadingAhead();
  des::Activity<void> ReadOneAhead(HostIndex host, PathIndex file);
  des::Activity<void> LookAtInputs();
  void NoteFile(PathIndex file, const FileLook& look);
  des::Activity<void> RunTask(TaskIndex task, HostIndex host);
  des::Activity<void> PlayOperations(TaskIndex task, HostIndex host,
                                     const std::vector<TaskOperation>& operations);
  des::Activity<bool> ReadInputs(TaskIndex task, HostIndex host);
  des::Activity<bool> Read(TaskIndex task, HostIndex host, const std::string& path,
                           std::optional<ByteRange> part);
  des::Activity<void> WriteTransfers(TaskIndex task, HostIndex host);
  des::Activity<void> WriteOutputs(TaskIndex task, HostIndex host);
  des::Activity<void> Handle(Ended ended);
  des::Activity<void> Conclude(Ended ended);
  // The streams that a task writes do not end before it has (tools/runner/task_streams.h).
  des::Activity<void> HoldStreams(TaskIndex task, HostIndex host);
  des::Activity<void> EndStreams(TaskIndex task, HostIndex host);
  bool IsBeingWritten(PathIndex stream) const;
  des::Activity<bool> LocateOutputs(TaskIndex task, HostIndex host);
  void ExpectEnds(const ReadyTask& ready, Time asked_at);
  std::optional<Time> NextEndOn(HostIndex host, Time asked_at) const;
  // `writer`: the task, if its writes may have found no room.
  void Fail(const std::string& what, HostIndex host, const Failure& why,
            const std::string& writer = "");
  const HintMap& HintsOf(PathIndex file) const;
  // What its processes get as MOSA_TASK.
  const std::string& NameOf(TaskIndex task) const;

  SimulatedClient& at(HostIndex host) { return *clients_[host.value]; }
  PredictedTask& at(TaskIndex task) { return prediction_.tasks[task.value]; }
  Duration Elapsed() const { return loop_.now() - begun_; }

  des::EventLoop& loop_;
  const Workflow& workflow_;
  const SyntheticPart* const part_;
  const Platform& platform_;
  const Configuration& configuration_;
  Machines& machines_;
  SimulatedManager& manager_;
  std::vector<std::unique_ptr<SimulatedClient>>& clients_;
  Prediction& prediction_;
  Execution execution_;
  Scheduler scheduler_;
  ReadAhead read_ahead_;
  std::vector<BeingRead> being_read_;  // By host.
  Time begun_;
  std::map<PathIndex, HintMap> hints_;
  std::vector<std::string> names_in_store_;  // By task; empty: the store is told of none.
  std::set<PathIndex> inheriting_;           // Files whose directory carries their hints.
  std::map<PathIndex, FileLook> files_;
  std::map<std::string, StageTime> stage_times_;
  size_t running_ = 0;
  std::vector<std::vector<TaskIndex>> running_on_;  // By host.
  std::vector<Ended> ended_;
  std::map<TaskIndex, HostIndex> ended_early_;  // Before the writers of their streams.
  std::map<TaskIndex, std::vector<std::shared_ptr<SimulatedClient::Writing>>> held_streams_;
  des::Signal wake_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_RUNNER_H_
