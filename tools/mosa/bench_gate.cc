// `mosa bench gate`: checks in CI whether the store is as fast as predicted.
#include <memory>

#include "common/base/exit_code.h"
#include "predictor/compare/comparison.h"
#include "tools/forecast/gate.h"
#include "tools/mosa/bench.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

Status Gate(const GateRequest& request, CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const bool passes, RunGate(request, line.json));
  if (!passes) line.exit_code = kExitAnomaly;
  return OkStatus();
}

}  // namespace

void AddBenchGate(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<GateRequest>();
  CLI::App* command = noun.add_subcommand(
      "gate",
      "Check in CI that a store is as fast as predicted; exit code 7 if it is slower\n\n"
      "  mosa bench gate --platform lab.json --config hosts=4,manager=apart --name lab -o gate\n\n"
      "Predicts each pattern, writes the prediction to a file, runs the pattern and compares. A\n"
      "pattern fails if its median run is slower than 19 of 20 predicted runs, and slower than\n"
      "predicted by more than the margin. Names the part of the cluster that explains the\n"
      "slowdown best.");
  command
      ->add_option("--platform", options->words.platform,
                   "Platform file written by 'mosa identify'")
      ->required();
  command->add_option(
      "--config", options->words.configuration,
      "Configuration (see 'mosa predict --help'); its hosts must be those of the cluster");
  command->add_option("--draws", options->words.draws, "Number of draws, at least 19; default: 40");
  AddClusterChoice(*command, options->cluster);
  command
      ->add_option("--patterns", options->patterns,
                   "Comma-separated patterns to run, of pipeline, reduce and broadcast")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--file-size", options->file_bytes, "Size of each file")
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Number of runs of each pattern")
      ->check(CLI::Range(1U, static_cast<uint32_t>(predict::kJudgedRuns)))
      ->capture_default_str();
  command
      ->add_option("--margin", options->margin,
                   "Tolerated slowdown over the prediction, as a share")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->directory,
                   "New directory for workflows, predictions and records")
      ->capture_default_str();
  command->callback(
      [options, &line] { line.action = [options, &line] { return Gate(*options, line); }; });
}

}  // namespace mosa::cli
