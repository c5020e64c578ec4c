// `mosa compare`: what was predicted of a workflow beside what its runs took, and what of the
// differences is an anomaly.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "predictor/compare/comparison.h"
#include "tools/cluster/process.h"
#include "tools/mosa/command.h"
#include "tools/mosa/compare_draws.h"
#include "tools/mosa/compare_made.h"
#include "tools/mosa/compare_output.h"
#include "tools/mosa/compare_record.h"
#include "tools/mosa/compare_runs.h"
#include "tools/mosa/predict_inputs.h"
#include "tools/mosa/predict_output.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::Configuration;

constexpr uint32_t kRepeatsMax = 1000;
// Whether a run has ended.
constexpr Duration kLookedAtEach = Milliseconds(50);

struct Options {
  PredictionWords words;
  std::vector<std::string> runs;
  std::vector<std::string> command;  // "run", the workflow, and what else `mosa run` is told.
  uint32_t repeats = 3;
  std::string directory = "compare";
};

// Whatever it was that was compared: an anomaly has its own exit code.
void Show(const Compared& compared, CommandLine& line) {
  if (line.json)
    PrintJson(ToJson(compared.report, compared.comparison));
  else
    PrintComparison(compared.report, compared.comparison);
  if (CountAnomalies(compared.comparison) > 0) line.exit_code = kExitAnomaly;
}

// ---- of runs that are made

// What `mosa run` is told: "--system dss" or "--system=dss". Empty: nothing.
std::string ValueOf(const std::vector<std::string>& words, const std::string& option) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return "";
}

std::string PredictionOf(const Options& options) { return options.directory + "/prediction.json"; }
std::string RecordOf(const Options& options, uint32_t run) {
  return fmt::format("{}/run-{}.json", options.directory, run);
}

Status CheckCommand(const Options& options) {
  const std::vector<std::string>& words = options.command;
  if (words.size() < 2 || words[0] != "run" || words[1].starts_with("-"))
    return InvalidArgumentError(
        "what follows -- is 'run', the workflow, and options of 'mosa run': mosa compare ... -- "
        "run words.yaml --cluster lab");
  for (const char* own : {"--record", "--resume", "--dry-run"})
    for (const std::string& word : words)
      if (word == own || word.starts_with(std::string(own) + "="))
        return InvalidArgumentError(
            fmt::format("{} cannot be said to the runs of a comparison: leave it out; records are "
                        "in the directory of -o",
                        own));
  std::vector<std::string> written = {PredictionOf(options)};
  for (uint32_t i = 1; i <= options.repeats; ++i) written.push_back(RecordOf(options, i));
  std::error_code error;
  for (const std::string& path : written)
    if (fs::exists(path, error))
      return AlreadyExistsError(
          fmt::format("{} is of an earlier comparison: say another directory with -o", path));
  return OkStatus();
}

// Before the first run: nobody can say afterwards that it was known.
Status WritePrediction(const Options& options, const Asked& asked, const DrawnRuns& drawn) {
  const predict::Comparison comparison =
      predict::Compare(asked.inputs.workflow, drawn.draws, {}, OptionsOf(asked));
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char written[32] = {};
  std::strftime(written, sizeof written, "%Y-%m-%d %H:%M:%S UTC", &utc);
  const nlohmann::json root = {{"written", written},
                               {"platform", options.words.platform},
                               {"draws", drawn.draws.size()},
                               {"cells", PredictedToJson(comparison)},
                               {"requests", RequestsToJson(comparison.requests)},
                               {"prediction", ToJson(asked.inputs.workflow, asked.configuration,
                                                     drawn.prediction, Forecast())}};
  return WriteWhole(PredictionOf(options),
                    root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

// This program with other words; what it prints for programs is not ours to show. Its exit code.
Result<int> RunOurselves(std::vector<std::string> words) {
  std::error_code error;
  const std::string program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot find this program: {}", error.message()));
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return FailedPreconditionError(fmt::format("cannot start {}: {}", program, strerror(failed)));
  int status = 0;
  bool told = false;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    // What a terminal sends has reached it too.
    if (!told && cluster::InterruptGuard::Interrupted() == SIGTERM)
      told = kill(child, SIGTERM) == 0;
    cluster::Pause(kLookedAtEach);
  }
  if (ended < 0)
    return FailedPreconditionError(fmt::format("lost 'mosa run': {}", strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct MadeRuns {
  std::vector<std::string> records;
  int exit_code = 0;  // From the first run that failed.
};

// Runs that fail are compared as far as they came; after one that made no record there is no other.
Result<MadeRuns> MakeRuns(const Options& options, const Asked& asked,
                          std::vector<std::string>& notes) {
  const cluster::InterruptGuard guard;
  MadeRuns made;
  for (uint32_t i = 1; i <= options.repeats; ++i) {
    const std::string record = RecordOf(options, i);
    std::vector<std::string> words = options.command;
    words.insert(words.end(), {"--record", record});
    fmt::print(stderr, "mosa compare: run {} of {}\n", i, options.repeats);
    MOSA_ASSIGN_OR_RETURN(const int code, RunOurselves(words));
    if (cluster::InterruptGuard::Interrupted() != 0)
      return FailedPreconditionError(
          fmt::format("interrupted in run {} of {}: finished records are in {}", i, options.repeats,
                      options.directory));
    std::error_code error;
    if (code != 0 && made.exit_code == 0) made.exit_code = code;
    if (!fs::exists(record, error)) {
      std::string what =
          fmt::format("'mosa {}' ended with {} and wrote no record: it says why above",
                      fmt::join(words, " "), code);
      if (made.records.empty()) return FailedPreconditionError(std::move(what));
      notes.push_back(std::move(what));
      return made;
    }
    if (code != 0) notes.push_back(fmt::format("{}: 'mosa run' ended with {}", record, code));
    made.records.push_back(record);
    if (i > 1) continue;
    MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(record, CutFiles::kRefuse));
    std::vector<std::string> said_later;
    const Status same = CheckDeployment(file, asked, said_later);
    if (!same.ok())
      return InvalidArgumentError(fmt::format("{}; compare what was made with --run {}/run-*.json",
                                              MessageOf(same), options.directory));
  }
  return made;
}

}  // namespace

Result<MadeComparison> CompareMade(const RunsToMake& runs) {
  Options options{.words = runs.words,
                  .runs = {},
                  .command = runs.command,
                  .repeats = runs.repeats,
                  .directory = runs.directory};
  MOSA_RETURN_IF_ERROR(CheckCommand(options));
  Configuration base;
  if (ValueOf(options.command, "--system") == "dss") base.system = predict::System::kDss;
  if (const std::string slots = ValueOf(options.command, "--slots"); !slots.empty())
    MOSA_RETURN_IF_ERROR(predict::SetField("slots", slots, base));
  if (options.words.rules.empty()) options.words.rules = ValueOf(options.command, "--rules");
  MOSA_ASSIGN_OR_RETURN(
      const Asked asked,
      ReadAsked(options.words,
                options.words.workload.empty() ? options.command[1] : options.words.workload,
                base));
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot make {}: {}", options.directory, error.message()));
  // As `mosa cluster up` names them, until a record says what they are called.
  std::vector<std::string> names;
  for (uint32_t i = 1; i <= asked.configuration.hosts; ++i) names.push_back(fmt::format("h{}", i));
  MOSA_ASSIGN_OR_RETURN(DrawnRuns drawn,
                        DrawRuns(asked.inputs, asked.configuration,
                                 DrawsOf(options.words, asked.inputs.workflow), names));
  MOSA_RETURN_IF_ERROR(WritePrediction(options, asked, drawn));
  fmt::print(stderr, "mosa compare: the prediction is in {}\n", PredictionOf(options));
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(const MadeRuns made, MakeRuns(options, asked, notes));
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunFile> files,
                        ReadRunFiles(made.records, CutFiles::kRefuse, notes));
  MOSA_RETURN_IF_ERROR(CheckDeployment(files.back(), asked, notes));
  if (NamesOf(files.back().hosts) != names) {  // The same draws, of hosts with other names.
    MOSA_ASSIGN_OR_RETURN(drawn, DrawRuns(asked.inputs, asked.configuration,
                                          DrawsOf(options.words, asked.inputs.workflow),
                                          NamesOf(files.back().hosts)));
  }
  MOSA_ASSIGN_OR_RETURN(Compared compared,
                        CompareRuns(options.words, asked, drawn, files, std::move(notes)));
  return MadeComparison{std::move(compared), made.exit_code};
}

namespace {

Status RunCompare(const Options& options, CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckDraws(options.words));
  if (!options.command.empty()) {
    if (!options.runs.empty())
      return InvalidArgumentError("--run is of finished runs: leave out that, or what follows --");
    MOSA_ASSIGN_OR_RETURN(const MadeComparison made, CompareMade({.words = options.words,
                                                                  .command = options.command,
                                                                  .repeats = options.repeats,
                                                                  .directory = options.directory}));
    Show(made.compared, line);
    if (line.exit_code == 0) line.exit_code = made.exit_code;
    return OkStatus();
  }
  if (options.runs.empty())
    return InvalidArgumentError(
        "there is no run to compare: give --run RECORD, or after -- the run that is to be made");
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunFile> files,
                        ReadRunFiles(options.runs, CutFiles::kRefuse, notes));
  MOSA_ASSIGN_OR_RETURN(const FinishedRuns finished,
                        CompareFinished(options.words, files, std::move(notes)));
  Show(finished.compared, line);
  return OkStatus();
}

}  // namespace

void AddCompare(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Compare runs of a workflow with its prediction and find the part to blame\n\n"
      "  mosa compare --platform lab.json --config manager=apart --run mon.json --run tue.json\n"
      "  mosa compare --platform lab.json --config hosts=4,manager=apart -o tue -- \\\n"
      "    run words.yaml --cluster lab\n\n"
      "The second form makes the prediction, runs the workflow and compares. The workflow, or\n"
      "--workload, must give the runtimes of tasks; for the second form, it must also give file\n"
      "sizes, and --config must give hosts. An anomaly is a difference that is hardly chance,\n"
      "matters, and occurred in two of the last three runs, or is large in a single run. Exit\n"
      "code: 7 if there is an anomaly, otherwise that of the first run that was made and\n"
      "failed.");
  AddPredictionWords(*command, options->words)->required();
  command->add_option(
      "--run", options->runs,
      "Record of a finished run; repeatable, for runs of one workflow on the same hosts");
  command->add_option("--repeats", options->repeats, "Number of runs to make")
      ->check(CLI::Range(1U, kRepeatsMax))
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
