// `mosa bench work`: does the work of one benchmark task.
#include "tools/measure/bench_work.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/mosa/bench.h"

namespace mosa::cli {

void AddBenchWork(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<std::pair<std::vector<std::string>, uint64_t>>();
  // The empty group hides this command from --help: only benchmarks start it.
  CLI::App* command =
      noun.add_subcommand("work", "Do the work of one benchmark task (internal)")->group("");
  command->add_option("--seed", options->second, "Seed of the generated file contents")
      ->capture_default_str();
  command->add_option("steps", options->first, "Steps, as described in tools/measure/bench_work.h")
      ->required();
  command->callback([options, &line] {
    line.action = [options] { return RunWork(options->first, options->second); };
  });
}

}  // namespace mosa::cli
