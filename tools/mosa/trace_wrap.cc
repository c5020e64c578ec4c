// `mosa trace wrap`: traces a directory of any file system.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "common/base/log.h"
#include "common/base/units.h"
#include "common/model/trace.h"
#include "tools/console/output.h"
#include "tools/mosa/trace.h"
#include "tools/wrap/wrap.h"

namespace mosa::cli {
namespace {

void PrintWrapped(const wrap::WrapOutcome& outcome, bool as_json) {
  if (as_json) {
    PrintJson({{"file", outcome.trace_path},
               {"records", outcome.records},
               {"dropped", outcome.dropped},
               {"bytes", outcome.bytes},
               {"end", outcome.end}});
  } else {
    Table table({"FILE", "RECORDS", "DROPPED", "BYTES", "END"});
    table.Add({outcome.trace_path, fmt::format("{}", outcome.records),
               fmt::format("{}", outcome.dropped), HumanBytes(static_cast<int64_t>(outcome.bytes)),
               outcome.end});
    table.Print();
  }
}

Status IsWhole(const wrap::WrapOutcome& outcome) {
  if (outcome.end != kTraceStopped)
    return DataLossError(
        fmt::format("{} is not a complete trace: {}", outcome.trace_path, outcome.end));
  if (outcome.dropped > 0)
    return DataLossError(
        fmt::format("{} lacks {} records, which arrived faster than they could be written",
                    outcome.trace_path, outcome.dropped));
  return OkStatus();
}

Status Wrap(const wrap::WrapOptions& options, CommandLine& line) {
  MOSA_RETURN_IF_ERROR(OpenLog({"mosa", LogLevel::kWarning, ""}));
  const auto begun = [&options] {
    // With a command, standard error belongs to the command.
    if (!options.command.empty()) return;
    fmt::print(stderr, "Tracing {} through {} to {} until it is unmounted\n", options.directory,
               options.mount_point, options.trace_path);
  };
  MOSA_ASSIGN_OR_RETURN(const wrap::WrapOutcome outcome, wrap::WrapDirectory(options, begun));
  if (options.command.empty()) PrintWrapped(outcome, line.json);
  const Status whole = IsWhole(outcome);
  if (outcome.exit_code == 0) return whole;
  if (!whole.ok()) fmt::print(stderr, "mosa: {}\n", MessageOf(whole));
  line.exit_code = outcome.exit_code;
  return OkStatus();
}

}  // namespace

void AddTraceWrap(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<wrap::WrapOptions>();
  CLI::App* command = noun.add_subcommand(
      "wrap",
      "Trace a directory of any file system: NFS, Lustre, tmpfs, a local disk\n\n"
      "  mosa trace wrap /nfs/data /mnt/traced -o run7.trace -- make -j4\n"
      "  mosa trace workload run7.trace -o make.json\n\n"
      "Mounts DIRECTORY again at MOUNTPOINT, runs the command there, unmounts when it ends, and\n"
      "returns its exit code. What is done in the mount is done in the directory, and traced.\n"
      "Without a command, the mount stays until it is unmounted or this program gets SIGTERM or\n"
      "SIGINT. The trace is complete when this program has ended. As root, it serves all users,\n"
      "and needs root's rights on the file system below (NFS: no_root_squash).");
  command->add_option("directory", options->directory, "Directory to trace")->required();
  command
      ->add_option("mountpoint", options->mount_point,
                   "Empty directory to mount on, outside DIRECTORY")
      ->required();
  command->add_option("-o,--output", options->trace_path, "Trace file to write; must not exist")
      ->required();
  command->add_option("command", options->command,
                      "Program and its arguments, after --, to run in MOUNTPOINT");
  command->callback(
      [options, &line] { line.action = [options, &line] { return Wrap(*options, line); }; });
}

}  // namespace mosa::cli
