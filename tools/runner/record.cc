#include "tools/runner/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
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

constexpr int kVersion = 1;
// Longer than the tasks of a killed run take to end.
constexpr Duration kLockMax = Seconds(20);

double ToSeconds(Time time) { return std::round(static_cast<double>(time.ns) / 1e3) / 1e6; }
Time FromSeconds(double seconds) { return {std::llround(seconds * 1e9)}; }

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

json ToJson(const Attempt& attempt) {
  json object = {{"host", attempt.host},
                 {"start", ToSeconds(attempt.start)},
                 {"end", ToSeconds(attempt.end)},
                 {"exit_code", attempt.exit_code},
                 {"placed", attempt.placed},
                 {"input_bytes_local", attempt.local_bytes},
                 {"input_bytes_remote", attempt.remote_bytes},
                 {"stdout", attempt.output_path},
                 {"stderr", attempt.error_path}};
  if (attempt.processor) object["processor_s"] = static_cast<double>(attempt.processor->ns) / 1e9;
  if (attempt.signal != 0) object["signal"] = attempt.signal;
  if (!attempt.failure.empty()) object["failure"] = attempt.failure;
  return object;
}

json ToJson(const Workflow& workflow, PathIndex file, const FileFacts* facts) {
  json object;
  PutBytes(object, "path", workflow.at(file).path);
  if (facts != nullptr) {
    object["size_bytes"] = facts->size_bytes;
    object["mtime_ns"] = facts->mtime_ns;
    object["nodes"] = facts->bytes_by_node;
    if (facts->chunk_bytes > 0) object["chunk_bytes"] = facts->chunk_bytes;
  }
  return object;
}

json FilesToJson(const Workflow& workflow, const std::vector<PathIndex>& files,
                 const std::map<PathIndex, FileFacts>& known, const RunRecord& record) {
  json list = json::array();
  for (const PathIndex file : files) {
    const auto facts = known.find(file);
    list.push_back(ToJson(workflow, file, facts == known.end() ? nullptr : &facts->second));
    const auto hints = record.hints.find(file);
    if (hints != record.hints.end()) list.back()["hints"] = hints->second;
  }
  return list;
}

json ToJson(const RunRecord& record, const Workflow& workflow, size_t index) {
  const Task& task = workflow.tasks[index];
  const TaskRecord& own = record.tasks[index];
  json object = {{"id", task.id},
                 {"stage", task.stage},
                 {"state", ToText(own.state)},
                 {"kept", own.kept},
                 {"digest", DigestOf(workflow, task)},
                 {"command", task.command},
                 {"inputs", FilesToJson(workflow, task.inputs, own.inputs, record)},
                 {"outputs", FilesToJson(workflow, task.outputs, own.outputs, record)},
                 {"attempts", json::array()}};
  for (const Attempt& attempt : own.attempts) object["attempts"].push_back(ToJson(attempt));
  if (!own.attempts.empty()) {
    // From the last attempt, where one would look for it.
    for (const char* name :
         {"host", "start", "end", "exit_code", "input_bytes_local", "input_bytes_remote"})
      object[name] = object["attempts"].back()[name];
  }
  return object;
}

Attempt AttemptOf(const json& object) {
  Attempt attempt;
  attempt.host = object.value("host", "");
  attempt.start = FromSeconds(object.value("start", 0.0));
  attempt.end = FromSeconds(object.value("end", 0.0));
  attempt.exit_code = object.value("exit_code", 0);
  attempt.signal = object.value("signal", 0);
  attempt.failure = object.value("failure", "");
  if (object.contains("processor_s"))
    attempt.processor = Duration{std::llround(object.at("processor_s").get<double>() * 1e9)};
  attempt.placed = object.value("placed", "");
  attempt.local_bytes = object.value("input_bytes_local", uint64_t{0});
  attempt.remote_bytes = object.value("input_bytes_remote", uint64_t{0});
  attempt.output_path = object.value("stdout", "");
  attempt.error_path = object.value("stderr", "");
  return attempt;
}

// The facts stand in the order of the task's files, as the digest is the same.
void ReadFiles(const json& list, const std::vector<PathIndex>& files,
               std::map<PathIndex, FileFacts>& known) {
  for (size_t i = 0; i < files.size() && i < list.size(); ++i) {
    if (!list[i].contains("size_bytes")) continue;
    FileFacts facts;
    facts.size_bytes = list[i].value("size_bytes", uint64_t{0});
    facts.mtime_ns = list[i].value("mtime_ns", int64_t{0});
    facts.bytes_by_node = list[i].value("nodes", std::map<std::string, uint64_t>());
    facts.chunk_bytes = list[i].value("chunk_bytes", uint64_t{0});
    known.emplace(files[i], std::move(facts));
  }
}

void ReadTasks(const json& root, const Workflow& workflow, RunRecord& record,
               std::vector<predict::EarlierRun>& earlier) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < workflow.tasks.size(); ++i) places.emplace(workflow.tasks[i].id, i);
  for (const json& object : root.at("tasks")) {
    const auto place = places.find(object.at("id").get<std::string>());
    if (place == places.end()) continue;
    const Task& task = workflow.tasks[place->second];
    predict::EarlierRun& run = earlier[place->second];
    run.done = object.at("state") == "done";
    run.same = object.at("digest") == DigestOf(workflow, task);
    if (!run.done || !run.same) continue;
    TaskRecord& own = record.tasks[place->second];
    for (const json& attempt : object.at("attempts")) own.attempts.push_back(AttemptOf(attempt));
    ReadFiles(object.at("inputs"), task.inputs, own.inputs);
    ReadFiles(object.at("outputs"), task.outputs, own.outputs);
  }
}

// Versions of the mosa that makes the run, and of its machine.
json VersionsToJson() {
  json object = {{"mosa", Version()}};
  struct utsname machine {};
  if (uname(&machine) == 0)
    object["kernel"] = fmt::format("{} {}", machine.sysname, machine.release);
  return object;
}

}  // namespace

json ToJson(const RunRecord& record, const Workflow& workflow) {
  json hosts = json::array();
  for (const RunHost& host : record.hosts)
    hosts.push_back({{"name", host.name},
                     {"slots", host.slots},
                     {"mount", host.mount_point},
                     {"link_bytes_per_second", host.link_bytes_per_second}});
  json object = {{"version", kVersion},
                 {"versions", VersionsToJson()},
                 {"workflow", {{"name", workflow.name}, {"path", record.workflow_path}}},
                 {"system", record.system == predict::System::kDss ? "dss" : "wass"},
                 {"outcome", record.outcome},
                 {"start", ToSeconds(record.start)},
                 {"end", ToSeconds(record.end)},
                 {"turnaround_seconds", static_cast<double>((record.end - record.start).ns) / 1e9},
                 {"hosts", std::move(hosts)},
                 {"hosts_lost", record.hosts_lost},
                 {"tasks", json::array()}};
  for (size_t i = 0; i < record.tasks.size(); ++i)
    object["tasks"].push_back(ToJson(record, workflow, i));
  if (!record.rules_path.empty()) object["rules"] = record.rules_path;
  if (!record.machines.is_null()) object["machines"] = record.machines;
  if (!record.residence.is_null()) object["residence"] = record.residence;
  return object;
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
          "'mosa run' process {}{} has the record {}: wait for its end, or give this run its own "
          "--record and --workdir",
          holder, lives ? "" : ", which is gone, but of which a task has not ended,", path));
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
  std::ifstream file(path);
  if (!file)
    return NotFoundError(fmt::format(
        "cannot read the record {}: {}; --resume goes on where a run with that --record ended",
        path, strerror(errno)));
  std::vector<predict::EarlierRun> earlier(workflow.tasks.size());
  try {
    const json root = json::parse(file);
    if (root.at("version") != kVersion)
      return InvalidArgumentError(fmt::format("{} is a record of version {}, only {} is read", path,
                                              root.at("version").dump(), kVersion));
    ReadTasks(root, workflow, record, earlier);
  } catch (const json::exception& error) {
    return InvalidArgumentError(fmt::format("{} is no record of a run: {}", path, error.what()));
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

std::string DigestOf(const Workflow& workflow, const Task& task) {
  std::string text;
  const auto add = [&text](char kind, const std::string& word) {
    text += kind;
    text += word;
    text += '\0';
  };
  // Their order is not the same in a workload that was made from a trace.
  const auto add_files = [&](char kind, const std::vector<PathIndex>& files) {
    std::vector<std::string> paths;
    for (const PathIndex file : files) paths.push_back(workflow.at(file).path);
    std::ranges::sort(paths);
    for (const std::string& path : paths) add(kind, path);
  };
  for (const std::string& word : task.command) add('c', word);
  add_files('i', task.inputs);
  add_files('o', task.outputs);
  return fmt::format("{:016x}", Hash64(text));
}

}  // namespace mosa::cli
