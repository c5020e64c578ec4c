#include "tools/runner/begin.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "predictor/workflow/patterns.h"
#include "tools/runner/task_reports.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::PathIndex;
using predict::Task;
using predict::TaskIndex;
using predict::Workflow;

constexpr size_t kLostShownMax = 20;

// "a reads 'x', which ...; neither do 2 other inputs: 'y', 'z'".
Status MissingInputs(const Workflow& workflow, const std::vector<PathIndex>& missing,
                     const std::string& directory) {
  constexpr size_t kNamedMax = 10;
  const predict::WorkflowFile& first = workflow.at(missing.front());
  std::string others;
  for (size_t i = 1; i < std::min(missing.size(), kNamedMax); ++i)
    others += fmt::format("{} '{}'", i == 1 ? "" : ",", workflow.at(missing[i]).path);
  if (missing.size() > 1)
    others =
        fmt::format("; nor {}:{}{}",
                    missing.size() == 2 ? "does another input"
                                        : fmt::format("do {} other inputs", missing.size() - 1),
                    others, missing.size() > kNamedMax ? " ..." : "");
  return NotFoundError(fmt::format(
      "{} reads '{}', which no task writes and which does not exist{}{}",
      predict::Describe(workflow.at(first.consumers[0])), first.path,
      first.path.starts_with('/') ? ""
                                  : ": copy it to " + (fs::path(directory) / first.path).string(),
      others));
}

// Fails unless every file that no task writes exists.
Status FindOutsideInputs(const Workflow& workflow, HostMount& mount, RunRecord& record) {
  const std::vector<PathIndex> inputs = predict::OutsideInputs(workflow);
  MOSA_ASSIGN_OR_RETURN(HostMount::Found found, mount.Locate(PathsOf(workflow, inputs)));
  std::vector<PathIndex> missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (found[i].ok()) {
      record.outside.emplace(inputs[i], *std::move(found[i]));
      continue;
    }
    const Status& why = found[i].status();
    if (why.code() == StatusCode::kNotFound) {
      missing.push_back(inputs[i]);
      continue;
    }
    const predict::WorkflowFile& file = workflow.at(inputs[i]);
    return Status(why.code(), fmt::format("{} cannot read '{}': {}",
                                          predict::Describe(workflow.at(file.consumers[0])),
                                          file.path, MessageOf(why)));
  }
  if (missing.empty()) return OkStatus();
  return MissingInputs(workflow, missing, record.hosts.front().directory);
}

}  // namespace

Status PlanRecordHints(const Workflow& workflow, HostMount& mount, RunRecord& record) {
  if (record.system == predict::System::kDss) return OkStatus();
  if (!record.hosts.front().mosa) return OkStatus();  // Other file systems take no hints.
  std::set<predict::HintMap> tried;
  const predict::PatternOptions options{.hosts = static_cast<uint32_t>(record.hosts.size())};
  for (predict::FileHints& plan : predict::PlanHints(workflow, options)) {
    if (plan.hints.empty()) continue;
    const predict::WorkflowFile& file = workflow.at(plan.file);
    for (const auto& [name, text] : file.hints) {
      const predict::HintMap hint = {std::pair(name, text)};
      if (!tried.insert(hint).second) continue;
      const Status taken = mount.TryHints(hint);
      if (!taken.ok())
        return Status(taken.code(), fmt::format("file '{}': {}", file.path, MessageOf(taken)));
    }
    record.hints.emplace(plan.file, std::move(plan.hints));
  }
  return OkStatus();
}

namespace {

// Whether the task's outside inputs are unchanged. Other tasks' outputs are checked with those
// tasks.
bool ReadsTheSame(const Workflow& workflow, const Task& task, const TaskRecord& own,
                  const RunRecord& record) {
  for (const PathIndex input : task.inputs) {
    if (const auto& writer = workflow.at(input).producer) {
      // The writer may have run again since, and have written other bytes.
      const auto& made = record.tasks[writer->value].outputs;
      const auto read = own.inputs.find(input), written = made.find(input);
      if (record.reuses && read != own.inputs.end() && written != made.end() &&
          !HasSameBytes(read->second, written->second))
        return false;
      continue;
    }
    const auto then = own.inputs.find(input);
    if (then == own.inputs.end() || !HasSameBytes(then->second, record.outside.at(input)))
      return false;
  }
  return true;
}

// Says whether the task's outputs are unchanged, or gone as they should be. Prints those that are
// neither.
void CheckOutputs(const Workflow& workflow, TaskIndex index, RunRecord& record,
                  HostMount::Found& found, size_t at, predict::EarlierRun& earlier, size_t& told) {
  const Task& task = workflow.at(index);
  TaskRecord& own = record.tasks[index.value];
  earlier.outputs_intact = true;
  for (const PathIndex output : task.outputs) {
    Result<FileFacts>& now = found[at++];
    const auto then = own.outputs.find(output);
    const bool same = then != own.outputs.end() && now.ok() && HasSameBytes(then->second, *now);
    if (same) {
      then->second = *std::move(now);
      continue;
    }
    // A directory itself stays when its files go.
    const bool is_gone = now.status().code() == StatusCode::kNotFound ||
                         (workflow.at(output).is_directory && now.ok() && now->size_bytes == 0);
    if (is_gone && GoesByItself(record, output)) {
      earlier.spent.push_back(output);
      continue;
    }
    earlier.outputs_intact = false;
    if (told++ < kLostShownMax)
      fmt::print(stderr, "mosa run: '{}' is {}: {} runs again\n", workflow.at(output).path,
                 now.ok() ? "changed" : "lost", predict::Describe(task));
  }
}

}  // namespace

Status BeginRun(const Workflow& workflow, HostMount& mount, RunRecord& record) {
  MOSA_RETURN_IF_ERROR(mount.MakeDirectory());
  MOSA_RETURN_IF_ERROR(FindOutsideInputs(workflow, mount, record));
  return PlanRecordHints(workflow, mount, record);
}

Status ResumeRun(const Workflow& workflow, const std::string& path, HostMount& mount,
                 RunRecord& record) {
  auto read = ReadRecord(path, workflow, record);
  if (!read.ok() && record.reuses) {
    const bool is_first = read.status().code() == StatusCode::kNotFound;
    fmt::print(stderr, "mosa run: nothing is reused: {}\n",
               is_first ? "there is no earlier record" : MessageOf(read.status()));
    return OkStatus();
  }
  if (!read.ok())
    return Status(
        read.status().code(),
        fmt::format("--resume needs the record of an earlier run: {}", MessageOf(read.status())));
  std::vector<predict::EarlierRun>& earlier = *read;
  std::vector<PathIndex> outputs;
  for (size_t i = 0; i < earlier.size(); ++i) {
    const Task& task = workflow.tasks[i];
    earlier[i].same = earlier[i].same && ReadsTheSame(workflow, task, record.tasks[i], record);
    if (earlier[i].done && earlier[i].same)
      outputs.insert(outputs.end(), task.outputs.begin(), task.outputs.end());
  }
  MOSA_ASSIGN_OR_RETURN(HostMount::Found found, mount.LocateReadable(PathsOf(workflow, outputs)));
  size_t at = 0, told = 0;
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (!earlier[i].done || !earlier[i].same) continue;
    const Task& task = workflow.tasks[i];
    CheckOutputs(workflow, TaskIndex{static_cast<uint32_t>(i)}, record, found, at, earlier[i],
                 told);
    at += task.outputs.size();
  }
  const std::vector<bool> keep = predict::PlanResume(workflow, earlier);
  size_t kept = 0;
  for (size_t i = 0; i < keep.size(); ++i) {
    TaskRecord& own = record.tasks[i];
    own.kept = keep[i];
    kept += keep[i] ? 1 : 0;
    if (keep[i]) continue;
    const predict::EarlierRun& run = earlier[i];
    const bool serves = run.done && run.same && run.outputs_intact && run.spent.empty();
    TaskRecord as_then = std::exchange(own, {});
    if (record.reuses && serves)
      own.earlier = std::make_shared<const TaskRecord>(std::move(as_then));
  }
  fmt::print(stderr, "mosa run: {} of {} tasks are kept from the earlier run{}\n", kept,
             keep.size(), told > 0 ? fmt::format("; {} outputs are lost or changed", told) : "");
  return OkStatus();
}

Status CheckDirectories(const Workflow& workflow, HostMount& mount, const RunFile* earlier) {
  std::set<std::string> ours;
  if (earlier != nullptr)
    for (const RecordedTask& task : earlier->tasks)
      for (const RecordedFile& file : task.outputs) ours.insert(file.path);
  std::vector<PathIndex> directories;
  for (uint32_t i = 0; i < workflow.files.size(); ++i) {
    const predict::WorkflowFile& file = workflow.files[i];
    if (file.is_directory && !ours.contains(predict::NameOf(file)))
      directories.push_back(PathIndex{i});
  }
  MOSA_ASSIGN_OR_RETURN(const HostMount::Found found, mount.Locate(PathsOf(workflow, directories)));
  for (size_t i = 0; i < directories.size(); ++i) {
    if (!found[i].ok() || found[i]->size_bytes == 0) continue;
    const predict::WorkflowFile& file = workflow.at(directories[i]);
    return FailedPreconditionError(fmt::format(
        "{} fills '{}', which holds {} bytes that no earlier run with this record has written: "
        "remove the directory, or name another one",
        predict::Describe(workflow.at(*file.producer)), predict::NameOf(file),
        found[i]->size_bytes));
  }
  return OkStatus();
}

// Lets directories carry the hints, because programs may replace and rename their outputs in them.
Status SettleDirectories(const Workflow& workflow, HostMount& mount, RunRecord& record) {
  if (!record.hosts.front().mosa) return OkStatus();
  struct Wanted {
    std::vector<PathIndex> files;
    predict::HintMap hints;
    bool same = true;
  };
  std::map<std::string, Wanted> directories;
  for (uint32_t i = 0; i < workflow.files.size(); ++i) {
    const fs::path parent = fs::path(workflow.files[i].path).parent_path();
    if (!workflow.files[i].producer || parent.empty()) continue;
    for (fs::path above = parent.parent_path(); !above.empty(); above = above.parent_path())
      directories[above];
    const auto found = record.hints.find(PathIndex{i});
    predict::HintMap hints = found == record.hints.end() ? predict::HintMap() : found->second;
    hints.erase("stream");  // Other files of the directory are none.
    Wanted& wanted = directories[parent];
    if (wanted.files.empty()) wanted.hints = hints;
    wanted.same = wanted.same && wanted.hints == hints;
    wanted.files.push_back(PathIndex{i});
  }
  // Settles deeper directories first: one created later would inherit hints from its parent.
  for (auto directory = directories.rbegin(); directory != directories.rend(); ++directory) {
    const auto& [path, wanted] = *directory;
    MOSA_ASSIGN_OR_RETURN(
        const bool carried,
        mount.SettleDirectory(path, wanted.same ? wanted.hints : predict::HintMap()));
    if (carried && wanted.same) record.inheriting.insert(wanted.files.begin(), wanted.files.end());
  }
  return OkStatus();
}

}  // namespace mosa::cli
