#include <fmt/format.h>

#include <memory>

#include "tools/mosa/command.h"
#include "tools/mosa/xattr.h"

namespace mosa::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool chunks = false;
};

// Answers for every path that has an answer; the failure is the first one's.
Status Run(const Options& options, const CommandLine& line) {
  nlohmann::json answers = nlohmann::json::array();
  Table table({"NODES", "PATH"});
  Status result;
  for (const std::string& path : options.paths) {
    const auto location = MosaAttribute(path, options.chunks ? "location.chunks" : "location");
    nlohmann::json answer;
    PutBytes(answer, "path", path);
    if (!location.ok()) {
      answer["error"] = MessageOf(location.status());
      if (result.ok()) result = location.status();
    } else {
      table.Add({location->empty() ? "-" : *location, path});
      if (options.chunks) {
        answer["chunks"] = *location;
      } else {
        answer["nodes"] = SplitNames(*location);
      }
    }
    answers.push_back(std::move(answer));
  }
  if (line.json) {
    PrintJson(answers);
  } else {
    table.Print();
  }
  return result;
}

}  // namespace

void AddWhere(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("where",
                         "Which nodes hold these files, most bytes first\n\n"
                         "  mosa where $MOSA_MOUNT/blast/db.psq\n"
                         "  mosa where --json $MOSA_MOUNT/parts/* | jq -r '.[].nodes[0]'");
  command->add_option("paths", options->paths, "Files on a Mosa mount")->required();
  command->add_flag("--chunks", options->chunks, "Per range of chunks");
  command->callback(
      [options, &line] { line.action = [options, &line] { return Run(*options, line); }; });
}

}  // namespace mosa::cli
