// `mosa compare`: compares a workflow's prediction with its runs: whether it has become slower, and
// because of what.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/exit_code.h"
#include "predictor/compare/comparison.h"
#include "tools/console/output.h"
#include "tools/forecast/compare_made.h"
#include "tools/forecast/compare_output.h"
#include "tools/forecast/compare_runs.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uint32_t kRunsMax = 1000;

struct CompareWords {
  PredictionWords words;
  std::vector<std::string> runs;
  std::vector<std::string> command;  // "run", the workflow, and other arguments of `mosa run`.
  uint32_t repeats = 3;
  std::string directory = "compare";
};

// Prints a comparison of any kind. A workflow that has become slower has its own exit code.
void ShowCompared(const Compared& compared, CommandLine& line) {
  if (line.json)
    PrintJson(ToJson(compared.report, compared.comparison));
  else
    PrintComparison(compared.report, compared.comparison);
  if (compared.comparison.finding.is_slower) line.exit_code = kExitAnomaly;
}

Status RunCompare(const CompareWords& options, CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckDraws(options.words));
  if (!options.command.empty()) {
    if (!options.runs.empty())
      return InvalidArgumentError(
          "--run names finished runs, but the words after -- make new ones: give only one of the "
          "two");
    MOSA_ASSIGN_OR_RETURN(const MadeComparison made, CompareMade({.words = options.words,
                                                                  .command = options.command,
                                                                  .repeats = options.repeats,
                                                                  .directory = options.directory}));
    ShowCompared(made.compared, line);
    if (line.exit_code == 0) line.exit_code = made.exit_code;
    return OkStatus();
  }
  if (options.runs.empty())
    return InvalidArgumentError(
        "no run to compare: give --run RECORD for a finished run, or the run to make after --");
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunFile> files,
                        ReadRunFiles(options.runs, CutFiles::kRefuse, notes));
  MOSA_ASSIGN_OR_RETURN(const FinishedRuns finished,
                        CompareFinished(options.words, files, std::move(notes)));
  ShowCompared(finished.compared, line);
  return OkStatus();
}

}  // namespace

void AddCompare(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<CompareWords>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Compare runs of a workflow with its prediction and find the part to blame\n\n"
      "  mosa compare --platform lab.json --config manager=apart --run mon.json --run tue.json\n"
      "  mosa compare --platform lab.json --config hosts=4,manager=apart -o tue -- \\\n"
      "    run words.yaml --cluster lab\n\n"
      "The second form makes the prediction, runs the workflow and compares. The workflow, or\n"
      "--workload, must give the runtimes of tasks; for the second form, it must also give file\n"
      "sizes, and --config must give hosts. The workflow is slower if its last runs took longer\n"
      "than predicted and than earlier runs, by 5 % at least and more than chance makes likely.\n"
      "Exit code: 7 if it is slower, otherwise that of the first new run that failed.");
  AddPredictionWords(*command, options->words)->required();
  command->add_option(
      "--run", options->runs,
      "Record of a finished run; repeatable, for runs of one workflow on the same hosts");
  command->add_option("--repeats", options->repeats, "Number of runs to make")
      ->check(CLI::Range(1U, kRunsMax))
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->directory,
                   "Directory for the prediction and for the records of runs that are made")
      ->capture_default_str();
  command->add_option("command", options->command,
                      "After --: run, the workflow, and options of 'mosa run'");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunCompare(*options, line); }; });
}

}  // namespace mosa::cli
