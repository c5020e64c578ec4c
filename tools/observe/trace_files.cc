#include "tools/observe/trace_files.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "common/base/units.h"
#include "common/model/trace.h"
#include "predictor/trace/traced_run.h"
#include "predictor/trace/workload.h"
#include "tools/console/output.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trace_workload.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

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

std::string OperationsPath(const std::string& path) {
  const fs::path output(path);
  return (output.parent_path() / (output.stem().string() + ".operations.json")).string();
}

}  // namespace

Status ShowTraces(const TraceFilesRequest& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const Traces traces, ReadTraces(options.files));
  const predict::TracedRun run = predict::MergeTraces(traces.files);
  const auto rows = predict::Summarize(run);
  if (as_json) {
    PrintJson(ToJson(run, rows, traces));
  } else {
    PrintRows(run, rows);
    fmt::print(stderr, "{}, {}; besides: {}, {}, {}, {}\n", Counted(run.tasks.size(), "task"),
               Counted(run.files.size(), "file"), Counted(run.lookups, "lookup"),
               Counted(run.stats, "stat"), Counted(run.renames, "rename"),
               Counted(run.unlinks, "unlink"));
  }
  return Incomplete(traces.faults);
}

Status ExportWorkload(const TraceFilesRequest& options, bool as_json) {
  const std::string name = fs::path(options.output).stem().string();
  MOSA_ASSIGN_OR_RETURN(const RunWorkload run, WorkloadOfRun(options.files, options.record, name));
  const predict::Workload& workload = run.workload;
  const auto version = options.version == "1.6" ? predict::WfFormat::k1_6 : predict::WfFormat::k1_5;
  MOSA_RETURN_IF_ERROR(WriteWhole(options.output, predict::ToWfFormat(workload, version)));
  std::string operations;
  if (!options.files.empty()) {
    operations = OperationsPath(options.output);
    MOSA_RETURN_IF_ERROR(WriteWhole(operations, predict::ToOperationsText(workload)));
  }
  const std::string fault = predict::WfFormatFault(workload, version);
  if (!fault.empty())
    fmt::print(stderr, "{}; other programs may refuse {}\n", fault, options.output);
  size_t count = 0;
  for (const predict::WorkloadTask& task : workload.tasks) count += task.operations.size();
  if (as_json) {
    PrintJson({{"workload", options.output},
               {"operations", operations.empty() ? nlohmann::json() : nlohmann::json(operations)},
               {"tasks", workload.tasks.size()},
               {"files", workload.files.size()},
               {"operation_count", count},
               {"wfformat", options.version},
               {"strict", fault.empty()},
               {"whole", run.incomplete.ok()}});
  } else if (operations.empty()) {
    fmt::print(stderr, "{} and {} to {}\n", Counted(workload.tasks.size(), "task"),
               Counted(workload.files.size(), "file"), options.output);
  } else {
    fmt::print(stderr, "{} and {} to {}, {} to {}\n", Counted(workload.tasks.size(), "task"),
               Counted(workload.files.size(), "file"), options.output, Counted(count, "operation"),
               operations);
  }
  return run.incomplete;
}

}  // namespace mosa::cli
