// `mosa trace show` and `workload`.
#include "tools/observe/trace_files.h"

#include <memory>

#include "tools/mosa/command.h"
#include "tools/mosa/trace.h"

namespace mosa::cli {

void AddTraceShow(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceFilesRequest>();
  CLI::App* command = noun.add_subcommand(
      "show",
      "Show what each task did with each file\n\n"
      "  mosa trace show run7/*.trace\n"
      "  mosa --json trace show run7/h1.trace | jq '.rows[] | select(.sequential | not)'\n\n"
      "~ marks estimated bytes, which the kernel moved without the mount. An incomplete trace\n"
      "is shown as far as it goes, with exit code 6.");
  command->add_option("files", options->files, "Traces of all mounts of a run")->required();
  command->callback([options, &line] {
    line.action = [options, &line] { return ShowTraces(*options, line.json); };
  });
}

void AddTraceWorkload(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceFilesRequest>();
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
    line.action = [options, &line] { return ExportWorkload(*options, line.json); };
  });
}

}  // namespace mosa::cli
