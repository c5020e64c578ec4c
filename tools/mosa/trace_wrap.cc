// `mosa trace wrap`: a trace of what is done in a directory of any file system.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "client-sai/wrap/wrap.h"
#include "common/base/log.h"
#include "common/base/units.h"
#include "common/model/trace.h"
#include "tools/mosa/trace.h"

namespace mosa::cli {
namespace {

Status Wrap(const sai::WrapOptions& options, const CommandLine& line) {
  MOSA_RETURN_IF_ERROR(OpenLog({"mosa", LogLevel::kWarning, ""}));
  MOSA_ASSIGN_OR_RETURN(const sai::WrapOutcome outcome, sai::WrapDirectory(options, [&options] {
                          fmt::print(stderr, "Tracing {} by {} to {} until it is unmounted\n",
                                     options.directory, options.mount_point, options.trace_path);
                        }));
  if (line.json) {
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
  if (outcome.end != kTraceStopped)
    return DataLossError(
        fmt::format("{} is not the whole trace: {}", outcome.trace_path, outcome.end));
  if (outcome.dropped > 0)
    return DataLossError(
        fmt::format("{} lacks {} records, which came faster than they were written",
                    outcome.trace_path, outcome.dropped));
  return OkStatus();
}

}  // namespace

void AddTraceWrap(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<sai::WrapOptions>();
  CLI::App* command = noun.add_subcommand(
      "wrap",
      "Trace what is done in a directory of any file system: NFS, Lustre, tmpfs, a local disk\n\n"
      "  mosa trace wrap /nfs/data /mnt/traced -o run7/$(hostname).trace &\n"
      "  cd /mnt/traced && make; umount /mnt/traced; mosa trace workload run7/*.trace -o "
      "make.json\n"
      "\n"
      "Mounts DIR once more; what programs do by that mount is done in DIR, and traced, until the "
      "mount is unmounted or this program is ended. By root it serves every user.");
  command->add_option("directory", options->directory, "What is traced")->required();
  command->add_option("mountpoint", options->mount_point, "An empty directory, not in it")
      ->required();
  command->add_option("-o,--output", options->trace_path, "The trace, a file that is not there yet")
      ->required();
  command->callback(
      [options, &line] { line.action = [options, &line] { return Wrap(*options, line); }; });
}

}  // namespace mosa::cli
