// `mosa trace show` and `workload`: traces that are written, in a table or as a workload.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/base/units.h"
#include "common/model/trace.h"
#include "predictor/trace/traced_run.h"
#include "predictor/trace/workload.h"
#include "tools/mosa/predict_inputs.h"
#include "tools/mosa/trace.h"
#include "tools/mosa/trace_workload.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

struct TraceFilesOptions {
  std::vector<std::string> files;
  std::string record;
  std::string output;
  std::string version = "1.5";  // The WfFormat version.
};

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

Status Show(const TraceFilesOptions& options, const CommandLine& line) {
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

std::string OperationsPath(const std::string& path) {
  const fs::path output(path);
  return (output.parent_path() / (output.stem().string() + ".operations.json")).string();
}

Status ExportWorkload(const TraceFilesOptions& options, const CommandLine& line) {
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
  if (line.json) {
    PrintJson({{"workload", options.output},
               {"operations", operations.empty() ? nlohmann::json() : nlohmann::json(operations)},
               {"tasks", workload.tasks.size()},
               {"files", workload.files.size()},
               {"operation_count", count},
               {"wfformat", options.version},
               {"strict", fault.empty()},
               {"whole", run.incomplete.ok()}});
  } else if (operations.empty()) {
    fmt::print(stderr, "{} tasks and {} files to {}\n", workload.tasks.size(),
               workload.files.size(), options.output);
  } else {
    fmt::print(stderr, "{} tasks and {} files to {}, {} operations to {}\n", workload.tasks.size(),
               workload.files.size(), options.output, count, operations);
  }
  return run.incomplete;
}

}  // namespace

void AddTraceShow(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceFilesOptions>();
  CLI::App* command = noun.add_subcommand(
      "show",
      "Show what each task did with each file\n\n"
      "  mosa trace show run7/*.trace\n"
      "  mosa --json trace show run7/h1.trace | jq '.rows[] | select(.sequential | not)'\n\n"
      "~ marks estimated bytes, which the kernel moved without the mount. An incomplete trace\n"
      "is shown as far as it goes, with exit code 6.");
  command->add_option("files", options->files, "Traces of all mounts of a run")->required();
  command->callback(
      [options, &line] { line.action = [options, &line] { return Show(*options, line); }; });
}

void AddTraceWorkload(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceFilesOptions>();
  CLI::App* command = noun.add_subcommand(
      "workload",
      "Turn traces of a run into a workload: tasks, files, operations, dependencies\n\n"
      "  mosa trace workload run7/*.trace -o words.json\n"
      "  mosa trace workload run7/*.trace --record words.run.json -o words.json\n"
      "  mosa trace workload --record words.run.json -o words.json\n\n"
      "Writes WfFormat and, next to it, words.operations.json, for 'mosa predict'. A record\n"
      "alone gives no operations.");
  command->add_option("files", options->files, "Traces of all mounts of a run");
  command->add_option("--record", options->record,
                      "Record of the traced 'mosa run', from which runtimes and stages are taken");
  command->add_option("-o,--output", options->output, "Workload file to write, JSON")->required();
  command
      ->add_option("--wfformat", options->version,
                   "WfFormat version; default: 1.5; 1.6 adds counts and sums")
      ->check(CLI::IsMember({"1.5", "1.6"}));
  command->callback([options, &line] {
    line.action = [options, &line] { return ExportWorkload(*options, line); };
  });
}

}  // namespace mosa::cli
