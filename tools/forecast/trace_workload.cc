#include "tools/forecast/trace_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "common/base/text_file.h"
#include "predictor/trace/traced_run.h"
#include "tools/runner/run_file.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kTraceBytesMax = uintmax_t{4} << 30;

// The files of one list, made known to the workload.
std::vector<uint32_t> FilesOf(const std::vector<RecordedFile>& list,
                              std::map<std::string, uint32_t>& known, predict::Workload& workload) {
  std::vector<uint32_t> files;
  for (const RecordedFile& file : list) {
    const auto [place, fresh] =
        known.try_emplace(file.path, static_cast<uint32_t>(workload.files.size()));
    if (fresh) workload.files.push_back({file.path, 0});
    if (file.facts) workload.files[place->second].size_bytes = file.facts->size_bytes;
    files.push_back(place->second);
  }
  return files;
}

}  // namespace

Result<Traces> ReadTraces(const std::vector<std::string>& paths) {
  Traces traces;
  std::set<std::string> seen;
  size_t records_left = kTraceRecordsMax;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!seen.insert(fs::weakly_canonical(path, error)).second)
      return InvalidArgumentError(fmt::format("{} is given twice", path));
    MOSA_ASSIGN_OR_RETURN(const std::string bytes, ReadText(path, kTraceBytesMax));
    Result<TraceFile> file = ParseTrace(bytes, records_left);
    if (!file.ok())
      return InvalidArgumentError(fmt::format("{}: {}", path, MessageOf(file.status())));
    records_left -= file->records.size();
    if (!file->fault.empty()) traces.faults.push_back(fmt::format("{} {}", path, file->fault));
    traces.files.push_back(*std::move(file));
  }
  return traces;
}

Status Incomplete(const std::vector<std::string>& faults) {
  if (faults.empty()) return OkStatus();
  std::string all;
  for (const std::string& fault : faults) all += (all.empty() ? "" : "; ") + fault;
  return DataLossError(fmt::format("not the whole run: {}", all));
}

Result<RecordedRun> ReadRecordedRun(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(path, CutFiles::kRefuse));
  RecordedRun run;
  run.workload.name = file.workflow.name;
  std::map<std::string, uint32_t> files;
  std::map<std::string, uint32_t> slots;
  for (const RunHost& host : file.hosts) slots.emplace(host.name, host.slots);
  for (const RecordedTask& recorded : file.tasks) {
    if (recorded.state != "done" || recorded.attempts.empty())
      return InvalidArgumentError(
          fmt::format("{}: task '{}' is '{}', but a workload is made only from a run whose tasks "
                      "are all done: resume the run",
                      path, recorded.id, recorded.state));
    for (const std::vector<RecordedFile>* list : {&recorded.inputs, &recorded.outputs})
      for (const RecordedFile& named : *list)
        if (!named.is_possible)
          return InvalidArgumentError(
              fmt::format("{}: file '{}' of task '{}' has a size that no file can have: give the "
                          "record as 'mosa run' wrote it",
                          path, named.path, recorded.id));
    if (recorded.command.empty())
      return InvalidArgumentError(
          fmt::format("{}: task '{}' has no command: run it with one", path, recorded.id));
    const Attempt& last = recorded.attempts.back();
    predict::WorkloadTask task;
    task.id = recorded.id;
    task.stage = recorded.stage;
    task.command = recorded.command;
    task.host = last.host;
    task.start = std::max(last.start, Time());
    const Duration took = std::max(last.end - last.start, Duration());
    // What it read and wrote is simulated, so only its computing is taken over.
    // Those that it had there. It may have used fewer: at most so many as explain its processor
    // seconds.
    const auto host = slots.find(last.host);
    const uint32_t most = host == slots.end() ? 1 : std::max(host->second, 1U);
    task.cores = std::clamp(recorded.cores, 1U, most);
    task.runtime = took;
    if (last.processor) {
      const int64_t used = took.ns > 0 ? (last.processor->ns + took.ns - 1) / took.ns : 1;
      task.runtime =
          std::min(took, *last.processor / std::clamp(used, int64_t{1}, int64_t{task.cores}));
    }
    task.inputs = FilesOf(recorded.inputs, files, run.workload);
    task.outputs = FilesOf(recorded.outputs, files, run.workload);
    run.tasks.push_back({task.id, took, task.stage, task.command, task.cores});
    run.workload.tasks.push_back(std::move(task));
  }
  return run;
}

Result<RunWorkload> WorkloadOfRun(const std::vector<std::string>& traces, const std::string& record,
                                  const std::string& name) {
  if (traces.empty() && record.empty())
    return InvalidArgumentError("give traces, or --record with the record of a 'mosa run'");
  MOSA_ASSIGN_OR_RETURN(const Traces read, ReadTraces(traces));
  std::optional<RecordedRun> recorded;
  if (!record.empty()) {
    MOSA_ASSIGN_OR_RETURN(recorded, ReadRecordedRun(record));
  }
  RunWorkload run;
  run.workload =
      traces.empty()
          ? recorded->workload
          : predict::WorkloadOf(predict::MergeTraces(read.files), name,
                                recorded ? recorded->tasks : std::vector<predict::RecordedTask>());
  if (run.workload.tasks.empty())
    return FailedPreconditionError("no task of the trace has read or written a file");
  run.incomplete = Incomplete(read.faults);
  run.workload.description = traces.empty()
                                 ? fmt::format("from the record {}", record)
                                 : fmt::format("from {} traces{}", read.files.size(),
                                               recorded ? fmt::format(" and {}", record) : "");
  if (!run.incomplete.ok()) run.workload.description += "; " + MessageOf(run.incomplete);
  return run;
}

}  // namespace mosa::cli
