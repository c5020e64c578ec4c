// Predict: how long a workflow would take on a platform in a configuration, and what it would move.
//
// A discrete-event simulation after the Provisioning paper (sections 2.3, 2.4), with the real
// manager, the real rules of the client, and the real scheduler inside: only time is modelled. The
// same arguments give the same prediction, bit for bit.
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
#include "predictor/run/machines.h"
#include "predictor/run/simulated_residence.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/synthetic.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

// From when to when a task did something, by the simulation's clock.
struct TaskSpan {
  Time begin;
  Time end;
};

// Times count from the beginning of the run.
struct PredictedTask {
  bool ran = false;
  HostIndex host;
  Duration start;  // When the runner gave it to its host.
  Duration end;    // When its last output was closed.
  Duration launching, reading, computing, writing;
  std::vector<TaskSpan> computes;  // In their order; `computing` is their sum.
  // From each file's opening to its close, what moves meanwhile without the task waiting for it
  // included; if a task's operations are not known, one for all inputs and one for all outputs.
  std::vector<TaskSpan> reads, writes;
  uint64_t read_local = 0;
  uint64_t read_remote = 0;
  uint64_t read_cached = 0;
  uint64_t written = 0;
  Reason reason = Reason::kInTurn;  // Why there.
};

struct PredictedStage {
  std::string name;
  uint32_t tasks = 0;
  Duration start;  // When its first task starts,
  Duration end;    // its last one ends.
  // In which any of its tasks computes: given with the workflow, so the model is not off in it.
  Duration computing;
};

// Where a file was put; only if asked for.
struct PredictedFile {
  PathIndex file;
  bool is_inline = false;
  Layout layout;
};

struct PredictedMachine {
  std::string name;  // "h1", as `mosa cluster up` names hosts.
  uint32_t cores = 1;
  LinkBytes link;
  HostUse use;                   // From the first task's start on.
  uint64_t store_bytes_max = 0;  // The most that its storage node held.
};

// Why a run fails for want of room.
struct PredictedFull {
  std::vector<std::string> nodes;  // That refused it; empty: none had any for its begin.
  std::string file;
};

struct Prediction {
  Duration turnaround;
  Duration computing;                  // In which any task computes; as of a stage.
  std::vector<PredictedTask> tasks;    // By task.
  std::vector<PredictedStage> stages;  // In the order of their first start.
  std::vector<PredictedMachine> machines;
  std::vector<PredictedFile> files;
  // How long requests stayed with them; only if asked for.
  std::vector<PredictedDaemon> daemons;
  // The run would fail: which task, where, when and why. Nothing more starts then; what runs goes
  // on to its end, which is the turnaround; where staging in fails, nothing runs.
  std::optional<std::string> failure;
  Duration failed_at;                 // From the beginning of staging in, if that fails.
  std::optional<PredictedFull> full;  // The store, of which that is the consequence.
  uint64_t manager_calls = 0;
  uint64_t events = 0;
  uint64_t digest = 0;  // Covers all events and everything that the manager decided.
};
HostUse UseOfAll(const Prediction& prediction);

struct PredictOptions {
  bool with_layouts = false;
  bool with_residence = false;
};

// InvalidArgument: which file of the workflow has no size, or what else of it cannot be predicted.
Status CheckSizes(const Workflow& workflow);

// InvalidArgument: what is wrong with the platform or the configuration, which task computes for
// too long on hosts as slow, or as CheckSizes() and WithPlacements() (class_placement.h).
Result<Prediction> Predict(const Workflow& workflow, const Platform& platform,
                           const Configuration& configuration, const PredictOptions& options = {});
// The stages of a synthetic workflow, on a cluster where the phases before them have run: as
// `mosa bench patterns` runs them. InvalidArgument also: classes of files have placements.
// Precondition: no part reads or writes a backend.
Result<Prediction> PredictStages(const std::vector<SyntheticPart>& parts, const Platform& platform,
                                 const Configuration& configuration,
                                 const PredictOptions& options = {});

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_PREDICTION_H_
