#include "tools/measure/bench_run.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "tools/cluster/process.h"
#include "tools/hosts/files.h"
#include "tools/hosts/host_mount.h"
#include "tools/measure/bench_pinned.h"
#include "tools/measure/bench_regions.h"
#include "tools/measure/bench_work.h"
#include "tools/runner/begin.h"
#include "tools/runner/engine.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using predict::HostIndex;
using predict::Phase;
using predict::SyntheticPart;
using predict::TaskIndex;
using predict::Transfer;
using predict::Workflow;

// The space of deleted files is free within a second of their last close.
constexpr Duration kSpaceMax = Seconds(3);

WorkStep StepOf(const Transfer& transfer, Operation operation, const std::string& backend) {
  WorkStep step;
  step.operation = operation;
  if (operation == Operation::kWrite && transfer.is_region) step.operation = Operation::kUpdate;
  step.content = transfer.content;
  step.begin = transfer.begin;
  step.bytes = transfer.bytes;
  step.to_end = operation != Operation::kRead || !transfer.is_region;
  step.path = transfer.in_backend ? backend + "/" + transfer.path : transfer.path;
  return step;
}

class CellRun {
 public:
  CellRun(const RunPlace& place, const Cell& cell, uint32_t width, uint64_t seed)
      : place_(place),
        cell_(cell),
        seed_(seed),
        hosts_(HostsOf(cell.system, place.hosts, place.workdir)),
        meter_(hosts_, place.meters),
        parts_(predict::MakeSynthetic({.pattern = cell.pattern,
                                       .size = cell.size,
                                       .scale_millionths = cell.scale_millionths,
                                       .width = width,
                                       .copies = cell.copies,
                                       .stage_in = !place.stage_in.empty(),
                                       .stage_out = !place.stage_out.empty(),
                                       .compute = {}})) {}

  Result<json> Run() {
    MOSA_RETURN_IF_ERROR(MakeHere(place_.scratch));
    MOSA_RETURN_IF_ERROR(Clear());
    const uint64_t free_before = FreeBytes();
    json answer = {{"seed", seed_}, {"tasks_by_stage", json::array()}};
    Status status = WriteBackendInput();
    for (const SyntheticPart& part : parts_) {
      if (!status.ok()) break;
      status = RunPart(part, answer);
    }
    const Status cleared = Clear();
    if (!status.ok()) return status;
    MOSA_RETURN_IF_ERROR(cleared);
    WaitForSpace(free_before);
    return answer;
  }

 private:
  bool is_wass() const { return cell_.system.kind == SystemKind::kWass; }
  bool is_pinned() const {
    return cell_.system.kind == SystemKind::kLocal || cell_.pattern == predict::Pattern::kScatter ||
           cell_.pattern == predict::Pattern::kGather;
  }

  // ---- around a run

  static Status MakeHere(const std::string& directory) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (!error) return OkStatus();
    return FailedPreconditionError(fmt::format("cannot create {}: {}", directory, error.message()));
  }

  // Does the steps on a host; in this process if the directories are visible here, as all but a
  // host's own are.
  Status OnHost(const RunHost& host, std::vector<WorkStep> steps) {
    for (WorkStep& step : steps) step.path = ForHost(step.path, host.name);
    if (host.exec.empty() || cell_.system.kind != SystemKind::kLocal)
      return DoWork(steps, seed_).status();
    predict::WorkflowDraft draft;
    predict::TaskDraft task;
    task.id = "prepare-" + host.name;
    task.command = Command(steps);
    draft.tasks.push_back(std::move(task));
    const predict::BuildResult built = predict::BuildWorkflow(draft);
    RunRecord record;
    record.hosts = {host};
    record.hosts.front().directory = "/";
    record.tasks.resize(1);
    const PinnedOptions options{place_.scratch, [](TaskIndex) { return HostIndex{0}; },
                                place_.held};
    return RunPinned(built.workflow, record, options);
  }

  Status Clear() {
    const bool own = cell_.system.kind == SystemKind::kLocal;
    for (const RunHost& host : hosts_) {
      const WorkStep removal{Operation::kRemove, "", 0, 0, true, host.directory};
      MOSA_RETURN_IF_ERROR(OnHost(host, {removal}));
      if (!own) break;
    }
    return OkStatus();
  }

  Status MakeDirectories() {
    for (const RunHost& host : hosts_) {
      const WorkStep making{Operation::kMake, "", 0, 0, true, host.directory};
      MOSA_RETURN_IF_ERROR(OnHost(host, {making}));
      if (cell_.system.kind != SystemKind::kLocal) break;
    }
    return OkStatus();
  }

  Status WriteBackendInput() {
    for (const SyntheticPart& part : parts_) {
      for (const predict::SyntheticTask& task : part.tasks) {
        for (const Transfer& read : task.reads) {
          if (read.in_backend)
            return OnHost(hosts_.front(), {StepOf(read, Operation::kWrite, place_.stage_in)});
        }
      }
    }
    return OkStatus();
  }

  uint64_t FreeBytes() const {
    struct statvfs space {};
    if (!hosts_.front().mosa || statvfs(hosts_.front().mount_point.c_str(), &space) != 0) return 0;
    return uint64_t{space.f_bavail} * space.f_frsize;
  }

  void WaitForSpace(uint64_t free_before) const {
    const SystemClock clock;
    const Time limit = clock.Monotonic() + kSpaceMax;
    while (FreeBytes() < free_before - free_before / 100 && clock.Monotonic() < limit &&
           cluster::InterruptGuard::Interrupted() == 0)
      cluster::Pause(Milliseconds(20));
  }

  // ---- a phase

  std::vector<std::string> Command(const std::vector<WorkStep>& steps) const {
    std::vector<std::string> words = {place_.program, "bench", "work", "--seed",
                                      fmt::format("{}", seed_)};
    for (const WorkStep& step : steps) words.push_back(ToWord(step));
    return words;
  }

  Workflow WithCommands(const SyntheticPart& part) const {
    Workflow workflow = part.workflow;
    for (size_t i = 0; i < part.tasks.size(); ++i) {
      std::vector<WorkStep> steps;
      for (const Transfer& read : part.tasks[i].reads)
        steps.push_back(StepOf(read, Operation::kRead, place_.stage_in));
      for (const Transfer& write : part.tasks[i].writes)
        steps.push_back(StepOf(write, Operation::kWrite, place_.stage_out));
      workflow.tasks[i].command = Command(steps);
    }
    return workflow;
  }

  Status RunPart(const SyntheticPart& part, json& answer) {
    const Workflow workflow = WithCommands(part);
    RunRecord record;
    record.workflow_path = workflow.name;
    record.system = is_wass() ? predict::System::kWass : predict::System::kDss;
    record.hosts = hosts_;
    record.tasks.resize(workflow.tasks.size());
    const std::string logs = fmt::format("{}/{}.logs", place_.scratch, ToText(part.phase));
    MOSA_RETURN_IF_ERROR(MakeHere(logs));
    Traffic traffic;
    const Status ended = is_pinned() ? RunByPins(part, workflow, record, logs, traffic)
                                     : RunByEngine(part, workflow, record, logs, traffic);
    if (!ended.ok()) return ended;
    return Measure(part, workflow, record, traffic, answer);
  }

  Status RunByEngine(const SyntheticPart& part, const Workflow& workflow, RunRecord& record,
                     const std::string& logs, Traffic& traffic) {
    {
      HostMount mount(record.hosts.front());
      MOSA_RETURN_IF_ERROR(BeginRun(workflow, mount, record));
      MOSA_RETURN_IF_ERROR(SettleDirectories(workflow, mount, record));
    }
    EngineOptions options;
    options.retries = 0;
    options.record_path = fmt::format("{}/{}.json", place_.scratch, ToText(part.phase));
    options.logs = logs;
    options.held = place_.held;
    options.quiet = true;
    const Traffic before = meter_.Read();
    const Status ended = Engine(workflow, record, options).Run();
    traffic = meter_.Read() - before;
    if (cluster::InterruptGuard::Interrupted() != 0) return ended;
    // The engine continues without the host, but that measures something else.
    if (!record.hosts_lost.empty())
      return UnavailableError(fmt::format("host {} was lost", record.hosts_lost.front()));
    if (ended.ok()) return ended;
    for (size_t i = 0; i < record.tasks.size(); ++i) {
      const TaskRecord& task = record.tasks[i];
      if (task.state != predict::TaskState::kFailed || task.attempts.empty()) continue;
      const Attempt& last = task.attempts.back();
      return Status(ended.code(),
                    fmt::format("{} on {}: {} (see {})", predict::Describe(workflow.tasks[i]),
                                last.host, last.failure, last.error_path));
    }
    return ended;
  }

  // Lane k's task runs on host k; a task that reads or writes a region with a known place runs
  // there.
  Status RunByPins(const SyntheticPart& part, const Workflow& workflow, RunRecord& record,
                   const std::string& logs, Traffic& traffic) {
    MOSA_RETURN_IF_ERROR(MakeDirectories());
    const Traffic before = meter_.Read();
    std::optional<RegionFile> regions;
    if (cell_.system.kind != SystemKind::kLocal) {
      regions.emplace(hosts_, is_wass());
      MOSA_RETURN_IF_ERROR(regions->Prepare(workflow));
    }
    const PinnedOptions options{
        logs,
        [&](TaskIndex task) -> Result<HostIndex> {
          const predict::SyntheticTask& own = part.tasks[task.value];
          const HostIndex lane{own.lane % static_cast<uint32_t>(hosts_.size())};
          for (const auto* transfers : {&own.reads, &own.writes}) {
            if (!transfers->empty() && transfers->front().is_region && is_wass())
              return regions->HostOf(transfers->front(), lane);
          }
          return lane;
        },
        place_.held};
    const Status ended = RunPinned(workflow, record, options);
    traffic = meter_.Read() - before;
    if (!ended.ok() || !hosts_.front().mosa) return ended;
    for (size_t i = 0; i < workflow.tasks.size(); ++i) {
      for (const predict::PathIndex output : workflow.tasks[i].outputs) {
        MOSA_ASSIGN_OR_RETURN(
            record.tasks[i].outputs[output],
            Locate(fs::path(hosts_.front().directory) / workflow.at(output).path));
      }
    }
    return OkStatus();
  }

  // ---- what it took

  struct Stage {
    Time begin, end;
    json sums;
    json hosts = json::object();
  };

  Status Measure(const SyntheticPart& part, const Workflow& workflow, const RunRecord& record,
                 const Traffic& traffic, json& answer) const {
    std::vector<Stage> stages;
    for (size_t i = 0; i < record.tasks.size(); ++i) {
      const std::string& name = workflow.tasks[i].stage;
      const Attempt& attempt = record.tasks[i].attempts.back();
      if (stages.empty() || stages.back().sums["stage"] != name)
        stages.push_back({attempt.start,
                          attempt.end,
                          {{"stage", name}, {"phase", ToText(part.phase)}, {"tasks", 0}}});
      MOSA_RETURN_IF_ERROR(AddTask(record.tasks[i], workflow.tasks[i], stages.back()));
    }
    Time begin = stages.front().begin, end = stages.front().end;
    uint64_t read = 0;
    for (Stage& stage : stages) {
      begin = std::min(begin, stage.begin);
      end = std::max(end, stage.end);
      read += stage.sums["read_bytes"].get<uint64_t>();
      stage.sums["seconds"] = Seconds(stage.end - stage.begin);
      stage.sums["hosts"] = std::move(stage.hosts);
      answer["tasks_by_stage"].push_back(std::move(stage.sums));
    }
    json& phase = answer[ToText(part.phase)];
    phase = ToJson(traffic);
    phase["seconds"] = Seconds(end - begin);
    uint64_t carried = 0;
    for (const char* path : {"bytes_read_local", "bytes_read_remote", "bytes_read_inline"}) {
      if (const auto found = traffic.by_path.find(path); found != traffic.by_path.end())
        carried += found->second;
    }
    // What tasks read and no mount carried, the kernel moved: from the object or from its own
    // pages.
    if (!traffic.by_path.empty())
      phase["by_path"]["bytes_read_kernel"] = read > carried ? read - carried : 0;
    return OkStatus();
  }

  static void Grow(json& sum, uint64_t by) { sum = (sum.is_null() ? 0 : sum.get<uint64_t>()) + by; }

  static Status AddTask(const TaskRecord& record, const predict::Task& task, Stage& stage) {
    const Attempt& attempt = record.attempts.back();
    stage.begin = std::min(stage.begin, attempt.start);
    stage.end = std::max(stage.end, attempt.end);
    std::ifstream file(attempt.output_path);
    const json did = json::parse(file, nullptr, false);
    if (!did.is_object())
      return InternalError(fmt::format("{} did not report what it did (see {})",
                                       predict::Describe(task), attempt.output_path));
    Grow(stage.sums["tasks"], 1);
    for (const auto& [name, value] : did.items()) {
      if (value.is_number_float()) {
        stage.sums[name] = stage.sums.value(name, 0.0) + value.get<double>();
      } else {
        Grow(stage.sums[name], value.get<uint64_t>());
      }
    }
    Grow(stage.hosts[attempt.host]["tasks"], 1);
    for (const auto& [output, facts] : record.outputs) {
      for (const auto& [node, bytes] : facts.bytes_by_node) {
        Grow(stage.hosts[node]["stored_bytes"], bytes);
      }
    }
    return OkStatus();
  }

  static double Seconds(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

  const RunPlace& place_;
  const Cell& cell_;
  const uint64_t seed_;
  const std::vector<RunHost> hosts_;
  const TrafficMeter meter_;
  const std::vector<SyntheticPart> parts_;
};

}  // namespace

Result<json> RunCell(const RunPlace& place, const Cell& cell, uint32_t width, uint64_t seed) {
  return CellRun(place, cell, width, seed).Run();
}

}  // namespace mosa::cli
