// `mosa where`: lists the nodes that hold files, and predicts what reading them would cost.
#include "tools/observe/where.h"

#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {

void AddWhere(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<LocationsRequest>();
  CLI::App* command = app.add_subcommand(
      "where",
      "List the nodes that hold files, those with the most bytes first\n\n"
      "  mosa where $MOSA_MOUNT/blast/db.psq\n"
      "  find $MOSA_MOUNT/parts -type f | mosa where --from - --json | jq -r '.[].nodes[0]'\n"
      "  mosa where --cost $MOSA_MOUNT/blast/db.*\n"
      "  mosa where --cost --from sets.jsonl --hosts h1,h2 --json   # one set per line: [\"a\", "
      "\"b\"]\n\n"
      "With --cost, predicts how many seconds each host of an otherwise idle cluster would take\n"
      "to read the files one after the other, and lists the fastest first. This needs a manager\n"
      "with --forecasts.");
  command->add_option("paths", options->paths, "Files on a Mosa mount");
  command->add_option(
      "--from", options->from,
      "File with one path per line (with --cost, one set of paths); -: standard input");
  CLI::Option* chunks =
      command->add_flag("--chunks", options->chunks, "Show the nodes of each range of chunks");
  CLI::Option* cost = command->add_flag(
      "--cost", options->cost, "Predict the seconds that each host would take to read the files");
  cost->excludes(chunks);
  command
      ->add_option("--hosts", options->hosts, "Comma-separated hosts to predict for; default: all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(cost);
  command->add_flag("--in-store", options->in_store,
                    "Take paths from the root of the store, so that no mount is needed");
  AddManagerChoice(*command, options->manager);
  command->callback([options, &line] {
    line.action = [options, &line]() -> Status {
      if (options->paths.empty() && options->from.empty())
        return InvalidArgumentError("give paths, or a file of paths with --from");
      if (!options->cost) return ShowLocations(*options, line.json);
      return ShowReadCosts(
          {options->paths, options->from, options->hosts, options->in_store, options->manager},
          line.json);
    };
  });
}

}  // namespace mosa::cli
