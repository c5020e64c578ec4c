// `mosa trace show` and `workload`: traces that are written, in a table or as a workload.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "common/base/text_file.h"
#include "common/base/unique_fd.h"
#include "common/base/units.h"
#include "common/model/trace.h"
#include "predictor/trace/traced_run.h"
#include "predictor/trace/workload.h"
#include "tools/mosa/predict_inputs.h"
#include "tools/mosa/trace.h"
#include "tools/mosa/trace_record.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kTraceBytesMax = uintmax_t{4} << 30;

struct Options {
  std::vector<std::string> files;
  std::string record;
  std::string output;
};

struct Traces {
  std::vector<TraceFile> files;
  std::vector<std::string> faults;  // One sentence for each that is not whole.
};

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

// What was shown or written is not all that happened.
Status Incomplete(const std::vector<std::string>& faults) {
  if (faults.empty()) return OkStatus();
  std::string all;
  for (const std::string& fault : faults) all += (all.empty() ? "" : "; ") + fault;
  return DataLossError(fmt::format("not the whole run: {}", all));
}

double ToSeconds(Duration duration) { return static_cast<double>(duration.ns) / 1e9; }

void PrintRows(const predict::TracedRun& run, const std::vector<predict::TraceSummaryRow>& rows) {
  Table table({"TASK", "FILE", "OPENS", "READS", "READ", "WRITES", "WRITTEN", "ORDER", "SECONDS"});
  for (const predict::TraceSummaryRow& row : rows) {
    const auto bytes = [&](uint64_t count) {
      return (row.estimated ? "~" : "") + HumanBytes(static_cast<int64_t>(count));
    };
    const bool moves = row.reads + row.writes > 0;
    table.Add({run.tasks[row.task].id, run.files[row.file].path, fmt::format("{}", row.opens),
               fmt::format("{}", row.reads), bytes(row.bytes_read), fmt::format("{}", row.writes),
               bytes(row.bytes_written),
               !moves           ? "-"
               : row.sequential ? "sequential"
                                : "other",
               fmt::format("{:.6f}", ToSeconds(row.waited))});
  }
  table.Print();
}

nlohmann::json ToJson(const predict::TracedRun& run,
                      const std::vector<predict::TraceSummaryRow>& rows, const Traces& traces) {
  nlohmann::json list = nlohmann::json::array();
  for (const predict::TraceSummaryRow& row : rows) {
    nlohmann::json object = {{"host", run.tasks[row.task].host},
                             {"file_id", run.files[row.file].id.value},
                             {"opens", row.opens},
                             {"reads", row.reads},
                             {"writes", row.writes},
                             {"bytes_read", row.bytes_read},
                             {"bytes_written", row.bytes_written},
                             {"sequential", row.sequential},
                             {"estimated", row.estimated},
                             {"seconds", ToSeconds(row.waited)}};
    PutBytes(object, "task", run.tasks[row.task].id);
    PutBytes(object, "command", run.tasks[row.task].command);
    PutBytes(object, "path", run.files[row.file].path);
    list.push_back(std::move(object));
  }
  nlohmann::json files = nlohmann::json::array();
  for (const TraceFile& file : traces.files)
    files.push_back({{"host", file.head.host},
                     {"mount", file.head.mount_point},
                     {"light", file.head.light},
                     {"records", file.records.size()},
                     {"dropped", file.foot ? file.foot->dropped : 0},
                     {"fault", file.fault}});
  return {{"rows", std::move(list)},       {"traces", std::move(files)}, {"renames", run.renames},
          {"unlinks", run.unlinks},        {"stats", run.stats},         {"lookups", run.lookups},
          {"whole", traces.faults.empty()}};
}

Status Show(const Options& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const Traces traces, ReadTraces(options.files));
  const predict::TracedRun run = predict::MergeTraces(traces.files);
  const auto rows = predict::Summarize(run);
  if (line.json) {
    PrintJson(ToJson(run, rows, traces));
  } else {
    PrintRows(run, rows);
    fmt::print(
        stderr, "{} tasks, {} files; besides: {} lookups, {} stats, {} renames, {} unlinks\n",
        run.tasks.size(), run.files.size(), run.lookups, run.stats, run.renames, run.unlinks);
  }
  return Incomplete(traces.faults);
}

// Whoever reads it sees the old file or the new.
Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const UniqueFd file(
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST)
    return FailedPreconditionError(fmt::format(
        "cannot write {}: {} is there already, of somebody who writes the same file or was ended "
        "meanwhile; remove it",
        path, part));
  if (!file)
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(errno)));
  int error = 0;
  for (size_t at = 0; at < text.size() && error == 0;) {
    const ssize_t bytes = write(file.get(), text.data() + at, text.size() - at);
    if (bytes > 0) at += static_cast<size_t>(bytes);
    if (bytes <= 0 && errno != EINTR) error = bytes == 0 ? ENOSPC : errno;
  }
  if (error == 0 && rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return OkStatus();
  unlink(part.c_str());
  return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(error)));
}

std::string OperationsPath(const std::string& path) {
  const fs::path output(path);
  return (output.parent_path() / (output.stem().string() + ".operations.json")).string();
}

Status ExportWorkload(const Options& options, const CommandLine& line) {
  if (options.files.empty() && options.record.empty())
    return InvalidArgumentError("give traces, or --record with the record of a 'mosa run'");
  MOSA_ASSIGN_OR_RETURN(const Traces traces, ReadTraces(options.files));
  std::optional<RecordedRun> record;
  if (!options.record.empty()) {
    MOSA_ASSIGN_OR_RETURN(record, ReadRecordedRun(options.record));
  }
  const std::string name = fs::path(options.output).stem().string();
  predict::Workload workload =
      options.files.empty()
          ? record->workload
          : predict::WorkloadOf(predict::MergeTraces(traces.files), name,
                                record ? record->tasks : std::vector<predict::RecordedTask>());
  if (workload.tasks.empty())
    return FailedPreconditionError("no task of the trace has read or written a file");
  const Status incomplete = Incomplete(traces.faults);
  workload.description = options.files.empty()
                             ? fmt::format("from the record {}", options.record)
                             : fmt::format("from {} traces{}", traces.files.size(),
                                           record ? fmt::format(" and {}", options.record) : "");
  if (!incomplete.ok()) workload.description += "; " + MessageOf(incomplete);
  MOSA_RETURN_IF_ERROR(WriteWhole(options.output, predict::ToWfFormat(workload)));
  std::string operations;
  if (!options.files.empty()) {
    operations = OperationsPath(options.output);
    MOSA_RETURN_IF_ERROR(WriteWhole(operations, predict::ToOperationsText(workload)));
  }
  size_t count = 0;
  for (const predict::WorkloadTask& task : workload.tasks) count += task.operations.size();
  if (line.json) {
    PrintJson({{"workload", options.output},
               {"operations", operations.empty() ? nlohmann::json() : nlohmann::json(operations)},
               {"tasks", workload.tasks.size()},
               {"files", workload.files.size()},
               {"operation_count", count},
               {"whole", incomplete.ok()}});
  } else if (operations.empty()) {
    fmt::print(stderr, "{} tasks and {} files to {}\n", workload.tasks.size(),
               workload.files.size(), options.output);
  } else {
    fmt::print(stderr, "{} tasks and {} files to {}, {} operations to {}\n", workload.tasks.size(),
               workload.files.size(), options.output, count, operations);
  }
  return incomplete;
}

}  // namespace

void AddTraceShow(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = noun.add_subcommand(
      "show",
      "What each task did with each file\n\n"
      "  mosa trace show run7/*.trace\n"
      "  mosa --json trace show run7/h1.trace | jq '.rows[] | select(.sequential | not)'\n\n"
      "~ marks bytes that are estimated, as the kernel moved them by itself. A trace that is not "
      "whole is shown as far as it is, with exit code 6.");
  command->add_option("files", options->files, "Traces, of all mounts of a run")->required();
  command->callback(
      [options, &line] { line.action = [options, &line] { return Show(*options, line); }; });
}

void AddTraceWorkload(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = noun.add_subcommand(
      "workload",
      "The run as a workload: tasks, files, operations, and who waits for whom\n\n"
      "  mosa trace workload run7/*.trace -o words.json\n"
      "  mosa trace workload run7/*.trace --record words.run.json -o words.json\n"
      "  mosa trace workload --record words.run.json -o words.json\n\n"
      "Writes WfFormat 1.5, and beside it words.operations.json, for 'mosa predict'. A record "
      "alone "
      "has no operations.");
  command->add_option("files", options->files, "Traces, of all mounts of the run");
  command->add_option("--record", options->record,
                      "The record of a 'mosa run': its runtimes become the tasks'");
  command->add_option("-o,--output", options->output, "The workload's file, JSON")->required();
  command->callback([options, &line] {
    line.action = [options, &line] { return ExportWorkload(*options, line); };
  });
}

}  // namespace mosa::cli
