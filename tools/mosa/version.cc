#include "common/base/version.h"

#include <fmt/format.h>

#include "tools/console/output.h"
#include "tools/mosa/command.h"

namespace mosa::cli {

void AddVersion(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback([&line] {
    line.action = [&line] {
      if (line.json) {
        PrintJson({{"version", Version()}, {"commit", VersionCommit()}});
      } else {
        fmt::print("{}\n", VersionLine());
      }
      return OkStatus();
    };
  });
}

}  // namespace mosa::cli
