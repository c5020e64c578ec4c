#include "tools/runner/carry_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "predictor/workflow/patterns.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"
#include "tools/hosts/host_mount.h"
#include "tools/runner/begin.h"
#include "tools/runner/load.h"
#include "tools/runner/task_reports.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::TaskIndex;
using predict::Workflow;

// One line per stage, in the order of their first task.
void ShowStages(const Workflow& workflow, const RunRecord& record) {
  struct Sum {
    size_t tasks = 0, attempts = 0;
    Time begin, end;
    uint64_t local = 0, remote = 0;
  };
  std::map<std::string, Sum> sums;
  std::vector<std::string> order;
  for (const TaskIndex index : workflow.order) {
    const TaskRecord& task = record.tasks[index.value];
    if (task.attempts.empty()) continue;
    const std::string& stage = workflow.at(index).stage;
    if (!sums.contains(stage)) order.push_back(stage);
    Sum& sum = sums[stage];
    const Attempt& last = task.attempts.back();
    if (sum.tasks++ == 0 || last.start < sum.begin) sum.begin = last.start;
    sum.end = std::max(sum.end, last.end);
    sum.attempts += task.attempts.size();
    sum.local += last.local_bytes;
    sum.remote += last.remote_bytes;
  }
  Table table({"STAGE", "TASKS", "ATTEMPTS", "SECONDS", "READ LOCALLY", "READ REMOTELY"});
  for (const std::string& stage : order) {
    const Sum& sum = sums.at(stage);
    table.Add({stage, fmt::format("{}", sum.tasks), fmt::format("{}", sum.attempts),
               fmt::format("{:.2f}", static_cast<double>((sum.end - sum.begin).ns) / 1e9),
               HumanBytes(static_cast<int64_t>(sum.local)),
               HumanBytes(static_cast<int64_t>(sum.remote))});
  }
  table.Print();
}

size_t CountKept(const RunRecord& record) {
  return static_cast<size_t>(std::ranges::count_if(record.tasks, &TaskRecord::kept));
}

// How many tasks of this run a plan had placed, and how many of them ran elsewhere.
std::pair<size_t, size_t> CountPlanned(const Workflow& workflow, const RunRecord& record) {
  std::pair<size_t, size_t> counts;
  for (size_t i = 0; i < record.tasks.size(); ++i) {
    const TaskRecord& task = record.tasks[i];
    const auto& planned = workflow.tasks[i].planned;
    if (!planned || task.kept || task.attempts.empty()) continue;
    ++counts.first;
    if (task.attempts.back().host != record.hosts[planned->host.value].name) ++counts.second;
  }
  return counts;
}

// Creates the directory of the logs. An earlier record is renamed to "RECORD.old".
Status PrepareFiles(EngineOptions& engine, bool resume) {
  engine.keep_logs = resume;
  std::error_code error;
  fs::create_directories(engine.logs, error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot create {}: {}", engine.logs, error.message()));
  if (resume || !fs::exists(engine.record_path, error)) return OkStatus();
  fs::rename(engine.record_path, engine.record_path + ".old", error);
  if (!error) return OkStatus();
  return FailedPreconditionError(
      fmt::format("cannot rename the earlier record {}: {}", engine.record_path, error.message()));
}

}  // namespace

void ShowPlan(const Workflow& workflow, const RunRecord& record, bool as_json) {
  const predict::PatternOptions options{.hosts = static_cast<uint32_t>(record.hosts.size())};
  Table table({"FILE", "WRITTEN BY", "READERS", "HINTS", "WHY"});
  nlohmann::json files = nlohmann::json::array();
  for (const predict::FileHints& plan : predict::PlanHints(workflow, options)) {
    const predict::WorkflowFile& file = workflow.at(plan.file);
    std::string hints;
    for (const auto& [name, value] : plan.hints)
      hints += fmt::format("{}{}={}", hints.empty() ? "" : " ", name, value);
    table.Add({file.path, workflow.at(*file.producer).id, fmt::format("{}", file.consumers.size()),
               hints.empty() ? "-" : hints, plan.reason});
    files.push_back({{"producer", workflow.at(*file.producer).id},
                     {"readers", file.consumers.size()},
                     {"hints", plan.hints},
                     {"reason", plan.reason}});
    PutBytes(files.back(), "path", file.path);
  }
  Table places({"TASK", "PLANNED HOST", "WAITS AT MOST S"});
  nlohmann::json hosts = nlohmann::json::object();
  for (const predict::Task& task : workflow.tasks) {
    if (!task.planned) continue;
    const std::string& host = record.hosts[task.planned->host.value].name;
    places.Add({task.id, host,
                fmt::format("{:.1f}", static_cast<double>(task.planned->patience.ns) / 1e9)});
    hosts[task.id] = host;
  }
  if (as_json) {
    PrintJson({{"workflow", workflow.name},
               {"tasks", workflow.tasks.size()},
               {"files", files},
               {"planned_hosts", hosts}});
  } else {
    table.Print();
    if (!hosts.empty()) places.Print();
  }
  const uint64_t levels = workflow.tasks.empty() ? 0 : workflow.at(workflow.order.back()).level + 1;
  fmt::print(stderr, "{} in {} on {}. Nothing was started (--dry-run).\n",
             Counted(workflow.tasks.size(), "task"), Counted(levels, "level"),
             Counted(record.hosts.size(), "host"));
}

Status CarryOut(const Workflow& workflow, RunRecord& record, EngineOptions engine, bool resume,
                bool as_json) {
  const cluster::InterruptGuard guard;
  MOSA_ASSIGN_OR_RETURN(const UniqueFd lock, LockRecord(engine.record_path));
  engine.held = lock.get();
  if (!engine.plan.empty()) MOSA_RETURN_IF_ERROR(WriteWhole(record.plan_path, engine.plan));
  {
    HostMount mount(record.hosts.front(), record.reuses);
    const Result<RunFile> earlier = ReadRunFile(engine.record_path, CutFiles::kReadAsFarAsTheyGo);
    MOSA_RETURN_IF_ERROR(BeginRun(workflow, mount, record));
    MOSA_RETURN_IF_ERROR(CheckDirectories(workflow, mount, earlier.ok() ? &*earlier : nullptr));
    if (resume)
      MOSA_RETURN_IF_ERROR(ResumeRun(workflow, engine.record_path, mount, record));
    else if (earlier.ok() && earlier->outcome != "done")
      EndEarlierRun(earlier->store_run, mount);
    MOSA_RETURN_IF_ERROR(SettleDirectories(workflow, mount, record));
    if (const Status begun = BeginInStore(mount, record); !begun.ok())
      fmt::print(stderr,
                 "mosa run: the store is not told which tasks succeed, so that files of "
                 "lifetime=readers:N may go too early: {}\n",
                 MessageOf(begun));
  }
  MOSA_RETURN_IF_ERROR(PrepareFiles(engine, resume));
  MOSA_RETURN_IF_ERROR(WriteRecord(engine.record_path, ToJson(record, workflow)));
  HostMount first(record.hosts.front());
  const bool measures = record.hosts.front().mosa;
  Result<ClusterResidence> residence = ClusterResidence();
  if (measures) residence = first.TakeResidence();
  const RunnerLoad load = TakeRunnerLoad();
  const size_t kept_at_start = CountKept(record);
  const Status ended = Engine(workflow, record, engine).Run();
  const RunnerLoad load_after = TakeRunnerLoad();
  if (measures) {
    const Result<ClusterResidence> after = residence.ok() ? first.TakeResidence() : residence;
    record.residence = ResidenceOfRun(residence, after);
    if (after.ok()) {
      const ClusterResidence during = Since(*after, *residence);
      record.machines = MachinesOfRun(record, load, load_after, &during);
    }
  } else {
    record.machines = MachinesOfRun(record, load, load_after, nullptr);
  }
  const Status written = WriteRecord(engine.record_path, ToJson(record, workflow));
  if (!written.ok()) fmt::print(stderr, "mosa run: {}\n", MessageOf(written));
  if (as_json) {
    PrintJson(ToJson(record, workflow));
  } else {
    ShowStages(workflow, record);
    if (const std::string places = DescribePlaces(record); !places.empty())
      fmt::print("Tasks ran on {}\n", places);
    if (const auto [planned, departed] = CountPlanned(workflow, record); planned > 0)
      fmt::print("{}", departed == 0
                           ? fmt::format("All {} tasks ran where planned\n", planned)
                           : fmt::format("{} of {} tasks ran on another host than planned; the "
                                         "record says why, as 'placed'\n",
                                         departed, planned));
    if (const size_t kept = CountKept(record); kept > kept_at_start)
      fmt::print("{} more kept, because inputs came out as they were\n",
                 Counted(kept - kept_at_start, "task"));
    if (record.read_ahead_bytes > 0)
      fmt::print("Read ahead for tasks: {}, of which they used {:.0f} %\n",
                 HumanBytes(static_cast<int64_t>(record.read_ahead_bytes)),
                 100.0 * static_cast<double>(record.read_ahead_used_bytes) /
                     static_cast<double>(record.read_ahead_bytes));
    if (written.ok())
      fmt::print("Record: {0}; view it with: mosa report {0}\n", engine.record_path);
  }
  return ended;
}

}  // namespace mosa::cli
