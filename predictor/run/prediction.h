// Predict: how long a workflow would take on a platform in a configuration, and how many bytes it
// would move.
//
// A discrete-event simulation after the Provisioning paper (sections 2.3, 2.4). It runs the real
// manager core, the client's real rules and the real scheduler; only time is modelled. The same
// arguments give the same prediction, bit for bit.
#ifndef MOSA_PREDICTOR_RUN_PREDICTION_H_
#define MOSA_PREDICTOR_RUN_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/layout.h"
#include "predictor/model/configuration.h"
#include "predictor/model/platform.h"
#include "predictor/model/slowdown.h"
#include "predictor/run/machines.h"
#include "predictor/run/simulated_residence.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/synthetic.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// When a task did something, by the simulation's clock.
struct TaskSpan {
  Time begin;
  Time end;
};

// Times count from the beginning of the run.
struct PredictedTask {
  bool ran = false;
  HostIndex host;
  Duration start;  // When the runner assigned it to its host.
  Duration end;    // When its last output was closed.
  Duration launching, reading, computing, writing;
  std::vector<TaskSpan> computes;  // In order; `computing` is their sum.
  // From each file's open to its close, including transfers that the task does not wait for. If a
  // task's operations are not known: one span for all inputs and one for all outputs.
  std::vector<TaskSpan> reads, writes;
  uint64_t read_local = 0;
  uint64_t read_remote = 0;
  uint64_t read_cached = 0;
  uint64_t written = 0;
  Reason reason = Reason::kInTurn;  // Why it ran on this host.
};

struct PredictedStage {
  std::string name;
  uint32_t tasks = 0;
  Duration start;  // When its first task starts.
  Duration end;    // When its last task ends.
  // Time in which any of its tasks computes. It is given with the workflow, so the model has no
  // error in it.
  Duration computing;
};

// Where a file was placed; only on request (PredictOptions::with_layouts).
struct PredictedFile {
  PathIndex file;
  bool is_inline = false;
  Layout layout;
  // What each machine could serve of it when the runner looked, as a real run records it.
  std::map<MachineIndex, uint64_t> held;
};

struct PredictedMachine {
  std::string name;  // "h1", as `mosa cluster up` names hosts.
  uint32_t cores = 1;
  LinkBytes link;
  HostUse use;                   // From the first task's start on.
  uint64_t store_bytes_max = 0;  // The most that its storage node held.
};

// Why a run fails for lack of room.
struct PredictedFull {
  // Nodes that refused it; empty: no node had room for the file's beginning.
  std::vector<std::string> nodes;
  std::string file;
};

struct Prediction {
  Duration turnaround;
  Duration computing;                  // Time in which any task computes, as in PredictedStage.
  std::vector<PredictedTask> tasks;    // By task.
  std::vector<PredictedStage> stages;  // In the order of their first start.
  std::vector<PredictedMachine> machines;
  std::vector<PredictedFile> files;
  // Residence times of requests; only on request (PredictOptions::with_residence).
  std::vector<PredictedDaemon> daemons;
  // Set if the run would fail: which task, where, when and why. Nothing starts after that; running
  // tasks go on to their end, which is the turnaround. If staging in fails, nothing runs.
  std::optional<std::string> failure;
  Duration failed_at;                 // Counted from the beginning of staging in, if that fails.
  std::optional<PredictedFull> full;  // Set if the failure is due to a full store.
  uint64_t manager_calls = 0;
  uint64_t events = 0;
  uint64_t digest = 0;  // Hashes all events and all decisions of the manager.
};
HostUse UseOfAll(const Prediction& prediction);

struct PredictOptions {
  bool with_layouts = false;
  bool with_residence = false;
  Slowdown slower = {};  // Where the deployment is slower than the platform says.
};

// InvalidArgument names a file without a size, or what else cannot be predicted.
Status CheckSizes(const Workflow& workflow);

// InvalidArgument: an invalid platform or configuration, a task that computes for too long on the
// slowest host, or an error of CheckSizes() or WithPlacements() (class_placement.h).
Result<Prediction> Predict(const Workflow& workflow, const Platform& platform,
                           const Configuration& configuration, const PredictOptions& options = {});
// Predicts the stages of a synthetic workflow, on a cluster where the earlier phases have run, as
// `mosa bench patterns` runs them. InvalidArgument also if file classes have placements.
// Precondition: no part reads or writes a backend.
Result<Prediction> PredictStages(const std::vector<SyntheticPart>& parts, const Platform& platform,
                                 const Configuration& configuration,
                                 const PredictOptions& options = {});

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_PREDICTION_H_
