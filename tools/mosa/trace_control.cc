// `mosa trace start`, `stop` and `run`.
#include "tools/observe/trace_control.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/mosa/trace.h"

namespace mosa::cli {
namespace {

void AddDirectory(CLI::App& command, TraceControlRequest& options) {
  command
      .add_option("-o,--output", options.directory, "Directory for the traces, one file per mount")
      ->required();
  CLI::Option* light = command.add_flag(
      "--light", options.light,
      "Record only opens, closes and sizes, and keep passthrough; bytes are estimated");
  command
      .add_flag("--cold", options.cold,
                "Open files without cached pages, so that every task's reads are recorded")
      ->excludes(light);
}

}  // namespace

void AddTraceStart(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceControlRequest>();
  CLI::App* command = noun.add_subcommand(
      "start",
      "Start a trace of one mount, or of all mounts of a local cluster\n\n"
      "  mosa trace start /mnt/mosa -o /var/tmp/run7\n"
      "  mosa trace start --name default -o run7 --light\n\n"
      "The mount's process writes DIR/HOST.trace. Files that are already open are not traced.\n"
      "Use --cold for workloads to predict.");
  command->add_option("mount", options->mount,
                      "Mount point; default: all mounts of the local cluster");
  AddClusterChoice(*command, options->cluster);
  AddDirectory(*command, *options);
  command->callback(
      [options, &line] { line.action = [options] { return StartTraces(*options); }; });
}

void AddTraceStop(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceControlRequest>();
  CLI::App* command = noun.add_subcommand("stop",
                                          "Stop the trace and show what was written\n\n"
                                          "  mosa trace stop /mnt/mosa\n"
                                          "  mosa trace stop --name default");
  command->add_option("mount", options->mount,
                      "Mount point; default: all mounts of the local cluster");
  AddClusterChoice(*command, options->cluster);
  command->callback([options, &line] {
    line.action = [options, &line] { return StopTraces(*options, line.json); };
  });
}

void AddTraceRun(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<TraceControlRequest>();
  CLI::App* command =
      noun.add_subcommand("run",
                          "Trace while a command runs; the exit code is that of the command\n\n"
                          "  mosa trace run --name default -o run7 -- mosa run words.yaml\n"
                          "  mosa trace run --mount /mnt/mosa -o run7 -- make -C /mnt/mosa/src");
  command->add_option("--mount", options->mount,
                      "Mount point; default: all mounts of the local cluster");
  AddClusterChoice(*command, options->cluster);
  AddDirectory(*command, *options);
  command->add_option("command", options->command, "Program and its arguments, after --")
      ->required();
  command->callback([options, &line] {
    line.action = [options, &line] { return RunTraced(*options, line.json); };
  });
}

}  // namespace mosa::cli
