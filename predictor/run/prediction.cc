#include "predictor/run/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "predictor/des/activity.h"
#include "predictor/model/cost.h"
#include "predictor/run/class_placement.h"
#include "predictor/run/simulated_runner.h"

namespace mosa::predict {
namespace {

// Real clients have random ids; the simulation counts from here.
constexpr uint64_t kFirstClient = 1000;

// Excludes what was used for staging in.
LinkBytes Since(const LinkBytes& before, const LinkBytes& now) {
  return {now.sent - before.sent, now.received - before.received, now.inside - before.inside,
          now.control_sent - before.control_sent, now.control_received - before.control_received};
}
HostUse Since(const HostUse& before, const HostUse& now) {
  return {now.application_core_s - before.application_core_s,
          now.store_core_s - before.store_core_s, now.sending_s - before.sending_s,
          now.receiving_s - before.receiving_s};
}

// Runs on the cluster, one after the other. The prediction is about the last.
struct Run {
  const Workflow* workflow;
  const SyntheticPart* part = nullptr;
};

// A whole simulated cluster.
class Simulation {
 public:
  // Precondition: `runs` is not empty.
  Simulation(const std::vector<Run>& runs, const Platform& platform,
             const Configuration& configuration, const PredictOptions& options,
             Prediction& prediction)
      : options_(options),
        workflow_(*runs.back().workflow),
        stages_in_(runs.back().part == nullptr),
        before_(runs.size() - 1),
        machines_(loop_, platform, configuration, options.slower),
        manager_(loop_, platform, machines_, ManagerOptionsOf(configuration)),
        prediction_(prediction) {
    for (uint32_t i = 0; i < machines_.node_count(); ++i)
      manager_.AddNode(machines_.node(i), machines_.host(machines_.node(i)).store_bytes);
    if (configuration.replicas > 1) manager_.AddReplicasRule(configuration.replicas);
    for (uint32_t i = 0; i < configuration.hosts; ++i)
      clients_.push_back(std::make_unique<SimulatedClient>(
          loop_, platform, machines_, manager_, ClientId{kFirstClient + i}, MachineIndex{i}));
    for (size_t i = 0; i < runs.size(); ++i)
      runners_.push_back(std::make_unique<SimulatedRunner>(
          loop_, *runs[i].workflow, runs[i].part, platform, configuration, machines_, manager_,
          clients_, i < before_.size() ? before_[i] : prediction));
    manager_.Begin();
  }

  // Activities refer to the members, so end them first.
  ~Simulation() { loop_.EndAll(); }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  void Simulate() {
    des::Spawn(loop_, Everything());
    loop_.Run();
    Report();
    if (options_.with_layouts) ReportLayouts();
    if (options_.with_residence) prediction_.daemons = machines_.residence().Take();
  }

 private:
  void ReportLayouts() {
    for (uint32_t i = 0; i < workflow_.files.size(); ++i) {
      const auto status = manager_.core().GetFileStatus("/" + workflow_.files[i].path);
      if (status.ok())
        prediction_.files.push_back({PathIndex{i}, status->is_inline, status->layout,
                                     runners_.back()->HeldOf(PathIndex{i})});
    }
  }
  des::Activity<void> Everything() {
    if (stages_in_) co_await runners_.back()->StageIn();
    for (size_t i = 0; i < before_.size(); ++i) {
      co_await runners_[i]->Run();
      if (prediction_.failure || !before_[i].failure) continue;
      prediction_.failure = before_[i].failure;
      prediction_.failed_at = before_[i].failed_at;
      prediction_.full = before_[i].full;
    }
    for (uint32_t i = 0; i < machines_.count(); ++i)
      staged_.push_back({machines_.link(MachineIndex{i}), machines_.UseOf(MachineIndex{i})});
    if (options_.with_residence) machines_.residence().Begin();
    co_await runners_.back()->Run();
    loop_.Stop();
  }
  void Report() {
    for (uint32_t i = 0; i < machines_.count(); ++i) {
      PredictedMachine machine;
      machine.name = fmt::format("h{}", i + 1);
      machine.cores = machines_.host(MachineIndex{i}).cores;
      machine.link = Since(staged_[i].link, machines_.link(MachineIndex{i}));
      machine.use = Since(staged_[i].use, machines_.UseOf(MachineIndex{i}));
      prediction_.machines.push_back(machine);
    }
    for (uint32_t i = 1; i <= manager_.node_count(); ++i)
      prediction_.machines[manager_.MachineOf(NodeId{i}).value].store_bytes_max =
          manager_.node_bytes_max(NodeId{i});
    prediction_.manager_calls = manager_.calls();
    prediction_.events = loop_.events();
    prediction_.digest = HashCombine(loop_.digest(), manager_.decisions());
  }

  const PredictOptions options_;
  des::EventLoop loop_{kSimulationBegin};
  const Workflow& workflow_;
  const bool stages_in_;
  std::vector<Prediction> before_;  // Runs before the last.
  Machines machines_;
  SimulatedManager manager_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
  std::vector<std::unique_ptr<SimulatedRunner>> runners_;
  struct Staged {
    LinkBytes link;
    HostUse use;
  };
  std::vector<Staged> staged_;
  Prediction& prediction_;
};

// The time that at least one span covers.
Duration UnionOf(std::vector<TaskSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TaskSpan& a, const TaskSpan& b) { return a.begin < b.begin; });
  Duration sum;
  Time until = kSimulationBegin;
  for (const TaskSpan& span : spans) {
    if (span.end > until) sum = sum + (span.end - std::max(until, span.begin));
    until = std::max(until, span.end);
  }
  return sum;
}

void SumStages(const Workflow& workflow, Prediction& prediction) {
  std::map<std::string, PredictedStage> stages;
  std::map<std::string, std::vector<TaskSpan>> spans;
  std::vector<TaskSpan> all;
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& task = prediction.tasks[i];
    if (!task.ran) continue;
    PredictedStage& stage = stages[workflow.tasks[i].stage];
    if (stage.tasks++ == 0) stage = {workflow.tasks[i].stage, 1, task.start, task.end, {}};
    stage.start = std::min(stage.start, task.start);
    stage.end = std::max(stage.end, task.end);
    auto& of_stage = spans[stage.name];
    of_stage.insert(of_stage.end(), task.computes.begin(), task.computes.end());
    all.insert(all.end(), task.computes.begin(), task.computes.end());
  }
  prediction.computing = UnionOf(std::move(all));
  for (auto& [name, stage] : stages) {
    stage.computing = UnionOf(std::move(spans[name]));
    prediction.stages.push_back(std::move(stage));
  }
  std::stable_sort(
      prediction.stages.begin(), prediction.stages.end(),
      [](const PredictedStage& a, const PredictedStage& b) { return a.start < b.start; });
}

Prediction Simulate(const std::vector<Run>& runs, const Platform& platform,
                    const Configuration& configuration, const PredictOptions& options) {
  Prediction prediction;
  Simulation simulation(runs, platform, configuration, options, prediction);
  simulation.Simulate();
  SumStages(*runs.back().workflow, prediction);
  return prediction;
}

// Checks that no task computes for too long on the slowest host.
Status CheckComputing(const Workflow& workflow, const Platform& platform,
                      const Configuration& configuration) {
  double speed = kSpeedMax;
  for (uint32_t i = 0; i < configuration.hosts; ++i)
    speed = std::min(speed, HostOf(platform, configuration, i).speed);
  for (const Task& task : workflow.tasks) {
    Duration longest = task.expected.value_or(Duration());
    for (const TaskOperation& operation : task.operations)
      longest = std::max(longest, operation.before);
    if (static_cast<double>(longest.ns) / speed > static_cast<double>(kServiceMax.ns))
      return InvalidArgumentError(fmt::format(
          "{} computes for {:.0f} s, and a host has speed {}: a prediction covers at most {} s",
          Describe(task), SecondsOf(longest), speed, kServiceMax.ns / 1'000'000'000));
  }
  return OkStatus();
}

}  // namespace

Status CheckSizes(const Workflow& workflow) {
  for (const WorkflowFile& file : workflow.files) {
    if (!IsOnTheStore(file)) continue;
    if (!file.size_bytes)
      return InvalidArgumentError(
          fmt::format("file '{0}' has no size, but a prediction needs the size of every file: "
                      "write 'files: {{{0}: {{size: 22M}}}}', or make the workload of a run with "
                      "'mosa trace workload --record'",
                      file.path));
    if (*file.size_bytes > kFileBytesMax)
      return InvalidArgumentError(fmt::format("file '{}' has {} B, but a file has at most {}",
                                              file.path, *file.size_bytes, kFileBytesMax));
  }
  for (const Task& task : workflow.tasks)
    if (task.expected && (task.expected->ns < 0 || *task.expected > kServiceMax))
      return InvalidArgumentError(fmt::format(
          "{} runs for {:.0f} s: a prediction covers 0 to {} s", Describe(task),
          static_cast<double>(task.expected->ns) / 1e9, kServiceMax.ns / 1'000'000'000));
  return OkStatus();
}

HostUse UseOfAll(const Prediction& prediction) {
  HostUse use;
  for (const PredictedMachine& machine : prediction.machines) use += machine.use;
  return use;
}

Result<Prediction> Predict(const Workflow& workflow, const Platform& platform,
                           const Configuration& configuration, const PredictOptions& options) {
  MOSA_RETURN_IF_ERROR(Check(platform));
  MOSA_RETURN_IF_ERROR(CheckOn(platform, configuration));
  MOSA_RETURN_IF_ERROR(CheckSizes(workflow));
  MOSA_RETURN_IF_ERROR(CheckComputing(workflow, platform, configuration));
  std::vector<uint64_t> memory;
  for (uint32_t i = 0; i < configuration.hosts; ++i) memory.push_back(MemoryOf(configuration, i));
  MOSA_RETURN_IF_ERROR(CheckMemory(workflow, memory));
  if (configuration.class_placements.empty())
    return Simulate({{&workflow}}, platform, configuration, options);
  MOSA_ASSIGN_OR_RETURN(const Workflow placed, WithPlacements(workflow, configuration));
  return Simulate({{&placed}}, platform, configuration, options);
}

Result<Prediction> PredictStages(const std::vector<SyntheticPart>& parts, const Platform& platform,
                                 const Configuration& configuration,
                                 const PredictOptions& options) {
  MOSA_RETURN_IF_ERROR(Check(platform));
  MOSA_RETURN_IF_ERROR(CheckOn(platform, configuration));
  if (!configuration.class_placements.empty())
    return InvalidArgumentError(
        fmt::format("configuration: placement{}: the files of a synthetic workflow have their own "
                    "hints; leave it out",
                    configuration.class_placements.begin()->first));
  std::vector<Run> runs;
  for (const SyntheticPart& part : parts) {
    runs.push_back({&part.workflow, &part});
    if (part.phase == Phase::kStages) break;
  }
  MOSA_CHECK(!runs.empty());
  return Simulate(runs, platform, configuration, options);
}

}  // namespace mosa::predict
