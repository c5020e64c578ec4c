#include "tools/runner/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/version.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::PathIndex;
using predict::Task;
using predict::TaskState;
using predict::Workflow;

// Longer than the tasks of a killed run take to end.
constexpr Duration kLockMax = Seconds(20);

const char* ToText(TaskState state) {
  switch (state) {
    case TaskState::kDone:
      return "done";
    case TaskState::kFailed:
      return "failed";
    case TaskState::kRunning:
      return "interrupted";
    default:
      return "not run";
  }
}

std::vector<RecordedFile> FilesOf(const Workflow& workflow, const std::vector<PathIndex>& files,
                                  const std::map<PathIndex, FileFacts>& known,
                                  const RunRecord& record) {
  std::vector<RecordedFile> list;
  for (const PathIndex index : files) {
    RecordedFile& file = list.emplace_back();
    file.path = predict::NameOf(workflow.at(index));
    if (const auto facts = known.find(index); facts != known.end()) file.facts = facts->second;
    if (const auto hints = record.hints.find(index); hints != record.hints.end())
      file.hints = hints->second;
  }
  return list;
}

void TakeFacts(const std::vector<RecordedFile>& recorded, const Workflow& workflow,
               const std::vector<PathIndex>& files, std::map<PathIndex, FileFacts>& known) {
  std::map<std::string_view, const RecordedFile*> by_path;
  for (const RecordedFile& file : recorded) by_path.emplace(file.path, &file);
  for (const PathIndex file : files) {
    const auto found = by_path.find(predict::NameOf(workflow.at(file)));
    if (found != by_path.end() && found->second->facts) known.emplace(file, *found->second->facts);
  }
}

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PERL5LIB",
                           "R_LIBS", "CONDA_PREFIX", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ"})
    if (const char* const value = std::getenv(name)) environment[name] = value;
  return environment;
}

// Fails if a variable of the earlier run was another one.
Status CheckEnvironment(const std::map<std::string, std::string>& earlier) {
  const std::map<std::string, std::string> now = Environment();
  std::vector<std::pair<std::string, std::string>> differing;
  std::ranges::set_symmetric_difference(earlier, now, std::back_inserter(differing));
  if (differing.empty()) return OkStatus();
  return FailedPreconditionError(
      fmt::format("the variable {} is not what it was then", differing.front().first));
}

// The tasks of a record: by id, and by digest if they have outputs, which tell them apart.
class RecordedTasks {
 public:
  explicit RecordedTasks(const RunFile& file) {
    for (const RecordedTask& task : file.tasks) {
      by_id_.emplace(task.id, &task);
      if (!task.outputs.empty()) by_digest_.emplace(task.digest, &task);
    }
  }
  // Null if there is none of the same command, inputs and outputs.
  const RecordedTask* Find(const std::string& id, const std::string& digest) const {
    const auto same_id = by_id_.find(id);
    if (same_id != by_id_.end() && same_id->second->digest == digest) return same_id->second;
    const auto same_digest = by_digest_.find(digest);
    return same_digest == by_digest_.end() ? nullptr : same_digest->second;
  }

 private:
  std::map<std::string_view, const RecordedTask*> by_id_, by_digest_;
};

// Versions of the mosa that makes the run, and of its machine.
std::map<std::string, std::string> Versions() {
  std::map<std::string, std::string> versions = {{"mosa", Version()}};
  struct utsname machine {};
  if (uname(&machine) == 0)
    versions["kernel"] = fmt::format("{} {}", machine.sysname, machine.release);
  return versions;
}

}  // namespace

json ToJson(const RunRecord& record, const Workflow& workflow) {
  RunFile run;
  run.versions = Versions();
  run.environment = Environment();
  run.workflow = {workflow.name, record.workflow_path};
  run.rules_path = record.rules_path;
  run.plan_path = record.plan_path;
  run.store_run = record.store_run;
  run.system = record.system;
  run.outcome = record.outcome;
  run.start = record.start;
  run.end = record.end;
  run.turnaround_s = static_cast<double>((record.end - record.start).ns) / 1e9;
  run.hosts = record.hosts;
  run.hosts_lost = record.hosts_lost;
  run.read_ahead_bytes = record.read_ahead_bytes;
  run.read_ahead_used_bytes = record.read_ahead_used_bytes;
  run.machines = record.machines;
  run.residence = record.residence;
  for (size_t i = 0; i < record.tasks.size(); ++i) {
    const Task& task = workflow.tasks[i];
    const TaskRecord& own = record.tasks[i];
    const uint32_t cores = task.needs.cores > 1 ? task.needs.cores : 0;
    run.tasks.push_back({task.id, task.stage, ToText(own.state), own.kept, DigestOf(workflow, task),
                         cores, task.command, FilesOf(workflow, task.inputs, own.inputs, record),
                         FilesOf(workflow, task.outputs, own.outputs, record), own.attempts});
  }
  return ToJson(run);
}

Result<UniqueFd> LockRecord(const std::string& path) {
  const std::string name = path + ".lock";
  UniqueFd file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", name, strerror(errno)));
  const SystemClock clock;
  const Time limit = clock.Monotonic() + kLockMax;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    const ssize_t size = pread(file.get(), text, sizeof text - 1, 0);
    const pid_t holder = size > 0 ? static_cast<pid_t>(strtol(text, nullptr, 10)) : 0;
    const bool lives = holder > 0 && (kill(holder, 0) == 0 || errno == EPERM);
    if (lives || clock.Monotonic() > limit || cluster::InterruptGuard::Interrupted() != 0)
      return FailedPreconditionError(fmt::format(
          "'mosa run' process {}{} has the record {}: wait until it ends, or give this run its own "
          "--record and --workdir",
          holder, lives ? "" : ", which has ended but left a running task,", path));
    cluster::Pause(Milliseconds(50));
  }
  const std::string own = fmt::format("{}\n", getpid());
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), own.data(), own.size(), 0) != static_cast<ssize_t>(own.size()))
    return FailedPreconditionError(fmt::format("cannot write {}: {}", name, strerror(errno)));
  return file;
}

Status WriteRecord(const std::string& path, const json& record) {
  const std::string text = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  const std::string fresh = path + ".new";
  UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  size_t written = 0;
  while (file && written < text.size()) {
    const ssize_t bytes = write(file.get(), text.data() + written, text.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    written += static_cast<size_t>(bytes);
  }
  // A machine that crashes leaves the old one or this one whole.
  if (written < text.size() || fdatasync(file.get()) != 0 || close(file.release()) != 0 ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(fresh.c_str());
    return FailedPreconditionError(
        fmt::format("cannot write the record {}: {}", path, strerror(error)));
  }
  return OkStatus();
}

Result<std::vector<predict::EarlierRun>> ReadRecord(const std::string& path,
                                                    const Workflow& workflow, RunRecord& record) {
  MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(path, CutFiles::kRefuse));
  if (record.reuses) MOSA_RETURN_IF_ERROR(CheckEnvironment(file.environment));
  record.store_run = file.store_run;
  const RecordedTasks tasks(file);
  std::vector<predict::EarlierRun> earlier(workflow.tasks.size());
  for (size_t i = 0; i < workflow.tasks.size(); ++i) {
    const Task& task = workflow.tasks[i];
    const RecordedTask* const recorded = tasks.Find(task.id, DigestOf(workflow, task));
    if (recorded == nullptr || recorded->state != "done") continue;
    earlier[i].done = earlier[i].same = true;
    TaskRecord& own = record.tasks[i];
    own.attempts = recorded->attempts;
    TakeFacts(recorded->inputs, workflow, task.inputs, own.inputs);
    TakeFacts(recorded->outputs, workflow, task.outputs, own.outputs);
  }
  return earlier;
}

std::string DescribePlaces(const RunRecord& record) {
  constexpr size_t kShownMax = 8;
  std::map<std::string, size_t> tasks;
  for (const TaskRecord& task : record.tasks)
    if (!task.kept && !task.attempts.empty()) ++tasks[task.attempts.back().host];
  std::vector<std::pair<std::string, size_t>> places(tasks.begin(), tasks.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(places.size(), kShownMax); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", places[i].first, places[i].second);
  if (places.size() > kShownMax) text += fmt::format(" and {} more", places.size() - kShownMax);
  return text;
}

std::vector<std::string> PathsOf(const Workflow& workflow, const std::vector<PathIndex>& files) {
  std::vector<std::string> paths;
  for (const PathIndex file : files) paths.push_back(predict::NameOf(workflow.at(file)));
  return paths;
}

std::string DigestOf(const Workflow& workflow, const Task& task) {
  std::string text;
  const auto add = [&text](char kind, const std::string& word) {
    text += kind;
    text += word;
    text += '\0';
  };
  // Their order is not the same in a workload that was made from a trace.
  const auto add_files = [&](char kind, const std::vector<PathIndex>& files) {
    std::vector<std::string> paths = PathsOf(workflow, files);
    std::ranges::sort(paths);
    for (const std::string& path : paths) add(kind, path);
  };
  for (const std::string& word : task.command) add('c', word);
  add_files('i', task.inputs);
  add_files('o', task.outputs);
  return fmt::format("{:016x}", Hash64(text));
}

}  // namespace mosa::cli
