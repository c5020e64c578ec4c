#include "tools/forecast/compare_made.h"

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
#include <utility>
#include <vector>

#include "predictor/compare/comparison.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"
#include "tools/forecast/compare_draws.h"
#include "tools/forecast/compare_output.h"
#include "tools/forecast/compare_record.h"
#include "tools/forecast/compare_runs.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/predict_output.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::Configuration;

// How often to check whether a run has ended.
constexpr Duration kLookedAtEach = Milliseconds(50);

// Value of an option of `mosa run`, given as "--system dss" or "--system=dss". Empty: not given.
std::string ValueOf(const std::vector<std::string>& words, const std::string& option) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return "";
}

std::string PredictionOf(const RunsToMake& options) {
  return options.directory + "/prediction.json";
}
std::string RecordOf(const RunsToMake& options, uint32_t run) {
  return fmt::format("{}/run-{}.json", options.directory, run);
}

Status CheckCommand(const RunsToMake& options) {
  const std::vector<std::string>& words = options.command;
  if (words.size() < 2 || words[0] != "run" || words[1].starts_with("-"))
    return InvalidArgumentError(
        "give 'run', a workflow and options of 'mosa run' after --: mosa compare ... -- "
        "run words.yaml --cluster lab");
  for (const char* own : {"--record", "--resume", "--reuse", "--dry-run"})
    for (const std::string& word : words)
      if (word == own || word.starts_with(std::string(own) + "="))
        return InvalidArgumentError(
            fmt::format("{} is set by mosa compare itself: leave it out; -o chooses the directory "
                        "of the records",
                        own));
  std::vector<std::string> written = {PredictionOf(options)};
  for (uint32_t i = 1; i <= options.repeats; ++i) written.push_back(RecordOf(options, i));
  std::error_code error;
  for (const std::string& path : written)
    if (fs::exists(path, error))
      return AlreadyExistsError(
          fmt::format("{} is from an earlier comparison: choose another directory with -o", path));
  return OkStatus();
}

// Written before the first run, which proves that the prediction did not use its results.
Status WritePrediction(const RunsToMake& options, const Asked& asked, const DrawnRuns& drawn) {
  const predict::Comparison comparison =
      predict::Compare(asked.inputs.workflow, drawn.draws, {}, SlotsOf(asked));
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

// Runs this program with other arguments, discards its standard output and returns its exit code.
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
    // A signal from the terminal has reached the child as well, so only SIGTERM is passed on.
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

// Runs that fail are compared as far as they got. A run without a record ends the series.
Result<MadeRuns> MakeRuns(const RunsToMake& options, const Asked& asked,
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
          fmt::format("'mosa {}' exited with {} and wrote no record: see its error above",
                      fmt::join(words, " "), code);
      if (made.records.empty()) return FailedPreconditionError(std::move(what));
      notes.push_back(std::move(what));
      return made;
    }
    if (code != 0) notes.push_back(fmt::format("{}: 'mosa run' exited with {}", record, code));
    made.records.push_back(record);
    if (i > 1) continue;
    MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(record, CutFiles::kRefuse));
    std::vector<std::string> said_later;
    const Status same = CheckDeployment(file, asked, said_later);
    if (!same.ok())
      return InvalidArgumentError(
          fmt::format("{}; compare the runs made so far with --run {}/run-*.json", MessageOf(same),
                      options.directory));
  }
  return made;
}

}  // namespace

Result<MadeComparison> CompareMade(const RunsToMake& runs) {
  RunsToMake options = runs;
  MOSA_RETURN_IF_ERROR(CheckCommand(options));
  Configuration base;
  if (ValueOf(options.command, "--system") == "dss") base.system = predict::System::kDss;
  if (const std::string slots = ValueOf(options.command, "--slots"); !slots.empty())
    MOSA_RETURN_IF_ERROR(predict::SetField("slots", slots, base));
  if (options.words.rules.empty()) options.words.rules = ValueOf(options.command, "--rules");
  if (options.words.plan.empty()) options.words.plan = ValueOf(options.command, "--plan");
  MOSA_ASSIGN_OR_RETURN(
      const Asked asked,
      ReadAsked(options.words,
                options.words.workload.empty() ? options.command[1] : options.words.workload,
                base));
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot create {}: {}", options.directory, error.message()));
  // Host names as `mosa cluster up` gives them, until a record has the real ones.
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
  if (NamesOf(files.back().hosts) != names) {  // Repeats the draws for the real names.
    MOSA_ASSIGN_OR_RETURN(drawn, DrawRuns(asked.inputs, asked.configuration,
                                          DrawsOf(options.words, asked.inputs.workflow),
                                          NamesOf(files.back().hosts)));
  }
  MOSA_ASSIGN_OR_RETURN(Compared compared,
                        CompareRuns(options.words, asked, drawn, files, std::move(notes)));
  return MadeComparison{std::move(compared), made.exit_code};
}

}  // namespace mosa::cli
