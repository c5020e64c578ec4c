// `mosa compare`: what was predicted of a workflow beside what its runs took, and what of the
// differences is an anomaly.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/base/units.h"
#include "predictor/compare/comparison.h"
#include "predictor/model/draws.h"
#include "tools/cluster/process.h"
#include "tools/mosa/command.h"
#include "tools/mosa/compare_draws.h"
#include "tools/mosa/compare_output.h"
#include "tools/mosa/compare_record.h"
#include "tools/mosa/predict_inputs.h"
#include "tools/mosa/predict_output.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::Configuration;
using predict::Workflow;

constexpr uint32_t kDrawsMax = 10'000;
constexpr uint32_t kRepeatsMax = 1000;
// Whether a run has ended.
constexpr Duration kLookedAtEach = Milliseconds(50);
// Links that were measured carry less than their shape says, but not that much less.
constexpr double kLinkShare = 0.25;
// What mounts without a shape are said to carry: that says nothing.
constexpr uint64_t kLinkKnownMax = 1'900'000'000;

struct Options {
  std::string platform;
  std::string workload;
  std::string operations;
  std::string rules;
  std::string configuration;
  std::vector<std::string> runs;
  uint32_t draws = 40;
  std::vector<std::string> command;  // "run", the workflow, and what else `mosa run` is told.
  uint32_t repeats = 3;
  std::string directory = "compare";
};

// What was asked for, read.
struct Asked {
  Inputs inputs;
  Configuration configuration;
};

Status ReadAsked(const Options& options, const std::string& workload, const Configuration& base,
                 Asked& asked) {
  MOSA_ASSIGN_OR_RETURN(asked.inputs, ReadFiles(options.platform, workload));
  if (!options.operations.empty())
    MOSA_RETURN_IF_ERROR(ReadOperations(options.operations, asked.inputs.workflow));
  if (!options.rules.empty()) MOSA_RETURN_IF_ERROR(ReadRules(options.rules, asked.inputs.workflow));
  MOSA_ASSIGN_OR_RETURN(asked.configuration,
                        predict::ParseConfiguration(options.configuration, base));
  return OkStatus();
}

predict::CompareOptions OptionsOf(const Asked& asked) {
  predict::CompareOptions options;
  options.slots = predict::SlotsOf(asked.inputs.platform, asked.configuration);
  options.link_bytes_per_second = asked.inputs.platform.host.out_bytes_per_second;
  return options;
}

std::vector<std::string> NamesOf(const std::vector<RecordedHost>& hosts) {
  std::vector<std::string> names;
  for (const RecordedHost& host : hosts) names.push_back(host.name);
  return names;
}

// Records in their order in time, each once; of the others `notes` says why not. Their hosts are
// those of the first that can be read.
Result<std::vector<RunFile>> ReadRunFiles(const std::vector<std::string>& paths,
                                          std::vector<std::string>& notes) {
  std::vector<RunFile> files;
  Status first;
  for (const std::string& path : paths) {
    auto file = ReadRunFile(path);
    if (!file.ok()) {
      if (first.ok()) first = file.status();
      notes.push_back(fmt::format("{}; left out", MessageOf(file.status())));
      continue;
    }
    const auto same = std::find_if(files.begin(), files.end(), [&](const RunFile& other) {
      return other.start_s == file->start_s;
    });
    if (same != files.end()) {
      notes.push_back(fmt::format("{} is the same run as {}; left out", path, same->path));
    } else if (!files.empty() && NamesOf(file->hosts) != NamesOf(files.front().hosts)) {
      notes.push_back(fmt::format("{} is of other hosts ({}) than {} ({}); left out", path,
                                  fmt::join(NamesOf(file->hosts), ", "), files.front().path,
                                  fmt::join(NamesOf(files.front().hosts), ", ")));
    } else {
      files.push_back(*std::move(file));
    }
  }
  if (files.empty()) return first;
  std::stable_sort(files.begin(), files.end(),
                   [](const RunFile& a, const RunFile& b) { return a.start_s < b.start_s; });
  return files;
}

// The deployment as far as a record tells it.
Configuration DeploymentOf(const RunFile& file) {
  Configuration deployment;
  deployment.hosts = static_cast<uint32_t>(file.hosts.size());
  deployment.slots = file.hosts.front().slots;
  deployment.system = file.system;
  return deployment;
}

// Whether the prediction is of the deployment on which the run was.
Status CheckDeployment(const RunFile& file, const Asked& asked, std::vector<std::string>& notes) {
  const Configuration& configuration = asked.configuration;
  if (configuration.hosts != file.hosts.size())
    return InvalidArgumentError(
        fmt::format("the prediction is of {} hosts, {} was on {} ({}): say --config hosts={}",
                    configuration.hosts, file.path, file.hosts.size(),
                    fmt::join(NamesOf(file.hosts), ", "), file.hosts.size()));
  const uint32_t slots = predict::SlotsOf(asked.inputs.platform, configuration);
  for (const RecordedHost& host : file.hosts) {
    if (host.slots != slots) {
      notes.push_back(
          fmt::format("{}: {} ran {} tasks at a time, predicted is {}: say --config slots={}",
                      file.path, host.name, host.slots, slots, host.slots));
      break;
    }
  }
  if (file.system != configuration.system)
    notes.push_back(fmt::format("{}: the run's --system is not the prediction's", file.path));
  const auto known = static_cast<double>(asked.inputs.platform.host.out_bytes_per_second);
  for (const RecordedHost& host : file.hosts) {
    const auto link = static_cast<double>(host.link_bytes_per_second);
    if (link <= 0 || host.link_bytes_per_second > kLinkKnownMax ||
        std::abs(link - known) <= kLinkShare * std::max(link, known))
      continue;
    notes.push_back(fmt::format(
        "{}: the link of {} is said to carry {}/s, the platform's {}/s: was it measured on another "
        "deployment?",
        file.path, host.name, HumanBytes(static_cast<int64_t>(link)),
        HumanBytes(static_cast<int64_t>(known))));
    break;
  }
  return OkStatus();
}

Status Report(const Options& options, const Asked& asked, const DrawnRuns& drawn,
              const std::vector<RunFile>& files, std::vector<std::string> notes,
              CommandLine& line) {
  std::vector<predict::SeenRun> runs;
  Status first;
  for (const RunFile& file : files) {
    auto measured = ReadMeasured(file, asked.inputs.workflow);
    if (!measured.ok()) {
      if (first.ok()) first = measured.status();
      notes.push_back(fmt::format("{}; left out", MessageOf(measured.status())));
      continue;
    }
    notes.insert(notes.end(), measured->notes.begin(), measured->notes.end());
    const auto& tasks = measured->seen.tasks;
    if (std::any_of(tasks.begin(), tasks.end(), [](const auto& task) { return task.ran; })) {
      runs.push_back(std::move(measured->seen));
      continue;
    }
    if (first.ok())
      first = FailedPreconditionError(fmt::format("nothing of {} can be compared: {}", file.path,
                                                  fmt::join(measured->notes, "; ")));
    notes.push_back(fmt::format("nothing of {} can be compared; left out", file.path));
  }
  if (runs.empty()) return first;
  const auto silent = std::count_if(
      runs.begin(), runs.end(), [](const predict::SeenRun& run) { return run.requests.empty(); });
  if (silent > 0)
    notes.push_back(fmt::format("{} of {} records do not say how long requests stayed in daemons",
                                silent, runs.size()));
  if (drawn.failed > 0)
    notes.push_back(fmt::format("in {} draws the run would fail, as in: {}; they are left out",
                                drawn.failed, drawn.failure));
  notes.push_back(
      "records of runs do not say how a task's time splits into reading, computing and writing: "
      "parts are told apart by what tasks used of them");
  const predict::Comparison comparison =
      predict::Compare(asked.inputs.workflow, drawn.draws, runs, OptionsOf(asked));
  const CompareReport report{asked.inputs.workflow.name, options.platform,
                             predict::ToText(asked.configuration), drawn.failed, std::move(notes)};
  if (line.json)
    PrintJson(ToJson(report, comparison));
  else
    PrintComparison(report, comparison);
  if (!comparison.anomalies.empty()) line.exit_code = kExitAnomaly;
  return OkStatus();
}

// ---- of runs that are finished

Status CompareFinished(const Options& options, CommandLine& line) {
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunFile> files, ReadRunFiles(options.runs, notes));
  const RunFile& latest = files.back();
  Asked asked;
  MOSA_RETURN_IF_ERROR(ReadAsked(options,
                                 options.workload.empty() ? latest.workflow_path : options.workload,
                                 DeploymentOf(latest), asked));
  MOSA_RETURN_IF_ERROR(CheckDeployment(latest, asked, notes));
  size_t filled = 0;
  for (auto file = files.rbegin(); file != files.rend(); ++file)
    filled += FillSizes(*file, asked.inputs.workflow);
  if (filled > 0)
    notes.push_back(fmt::format(
        "{} files have no size in the workload: they have that of the last run that has one",
        filled));
  MOSA_ASSIGN_OR_RETURN(const DrawnRuns drawn, DrawRuns(asked.inputs, asked.configuration,
                                                        options.draws, NamesOf(latest.hosts)));
  return Report(options, asked, drawn, files, std::move(notes), line);
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
  if (!options.runs.empty())
    return InvalidArgumentError("--run is of finished runs: leave out that, or what follows --");
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
                               {"platform", options.platform},
                               {"draws", drawn.draws.size()},
                               {"cells", PredictedToJson(comparison)},
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
  int exit_code = 0;  // Of the first run that failed.
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
    MOSA_ASSIGN_OR_RETURN(const RunFile file, ReadRunFile(record));
    std::vector<std::string> said_later;
    const Status same = CheckDeployment(file, asked, said_later);
    if (!same.ok())
      return InvalidArgumentError(fmt::format("{}; compare what was made with --run {}/run-*.json",
                                              MessageOf(same), options.directory));
  }
  return made;
}

Status CompareMade(Options options, CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckCommand(options));
  Configuration base;
  if (ValueOf(options.command, "--system") == "dss") base.system = predict::System::kDss;
  if (const std::string slots = ValueOf(options.command, "--slots"); !slots.empty())
    MOSA_RETURN_IF_ERROR(predict::SetField("slots", slots, base));
  if (options.rules.empty()) options.rules = ValueOf(options.command, "--rules");
  Asked asked;
  MOSA_RETURN_IF_ERROR(ReadAsked(
      options, options.workload.empty() ? options.command[1] : options.workload, base, asked));
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot make {}: {}", options.directory, error.message()));
  // As `mosa cluster up` names them, until a record says what they are called.
  std::vector<std::string> names;
  for (uint32_t i = 1; i <= asked.configuration.hosts; ++i) names.push_back(fmt::format("h{}", i));
  MOSA_ASSIGN_OR_RETURN(DrawnRuns drawn,
                        DrawRuns(asked.inputs, asked.configuration, options.draws, names));
  MOSA_RETURN_IF_ERROR(WritePrediction(options, asked, drawn));
  fmt::print(stderr, "mosa compare: the prediction is in {}\n", PredictionOf(options));
  std::vector<std::string> notes;
  MOSA_ASSIGN_OR_RETURN(const MadeRuns made, MakeRuns(options, asked, notes));
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunFile> files, ReadRunFiles(made.records, notes));
  MOSA_RETURN_IF_ERROR(CheckDeployment(files.back(), asked, notes));
  if (NamesOf(files.back().hosts) != names) {  // The same draws, of hosts with other names.
    MOSA_ASSIGN_OR_RETURN(drawn, DrawRuns(asked.inputs, asked.configuration, options.draws,
                                          NamesOf(files.back().hosts)));
  }
  MOSA_RETURN_IF_ERROR(Report(options, asked, drawn, files, std::move(notes), line));
  if (line.exit_code == 0) line.exit_code = made.exit_code;
  return OkStatus();
}

Status CompareRuns(const Options& options, CommandLine& line) {
  if (options.draws < predict::kDrawsMin)
    return InvalidArgumentError(
        fmt::format("--draws {}: {} and more, of which nine of ten make an interval", options.draws,
                    predict::kDrawsMin));
  if (!options.command.empty()) return CompareMade(options, line);
  if (!options.runs.empty()) return CompareFinished(options, line);
  return InvalidArgumentError(
      "there is no run to compare: give --run RECORD, or after -- the run that is to be made");
}

}  // namespace

void AddCompare(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "What was predicted of a workflow beside what it took, and which part is to blame\n\n"
      "  mosa compare --platform lab.json --config manager=apart --run mon.json --run tue.json\n"
      "  mosa compare --platform lab.json --config hosts=4,manager=apart -o tue -- \\\n"
      "    run words.yaml --cluster lab\n\n"
      "The workflow, or --workload, says how long tasks compute; before runs are made, also how "
      "large\n"
      "files are. The second form predicts, writes that down, runs, and compares. An anomaly is "
      "hardly\n"
      "chance, matters, and was so in two of the last three runs, or much so in one.\n"
      "Exit code 7: there is one. Without one, that of a run that was made and failed.");
  command->add_option("--platform", options->platform, "The measured service times, JSON")
      ->required();
  command->add_option("--workload", options->workload,
                      "What was run, if the workflow itself says no sizes or runtimes; without it, "
                      "the workflow of the run");
  command->add_option("--operations", options->operations, "As of mosa predict");
  command->add_option("--rules", options->rules, "As of mosa predict; those of the run");
  command->add_option("--config", options->configuration,
                      "As of mosa predict; hosts, slots and system are those of the runs");
  command->add_option("--run", options->runs,
                      "The record of a finished run; several of the same workflow on the same "
                      "hosts");
  command
      ->add_option("--draws", options->draws,
                   "Predictions with figures drawn from their spread, of which come what is "
                   "predicted and how sure that is")
      ->check(CLI::Range(0U, kDrawsMax))
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Runs that are made")
      ->check(CLI::Range(1U, kRepeatsMax))
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->directory,
                   "Where the prediction and the records of runs that are made go")
      ->capture_default_str();
  command->add_option("command", options->command,
                      "After --: run, the workflow, and options of mosa run");
  command->callback(
      [options, &line] { line.action = [options, &line] { return CompareRuns(*options, line); }; });
}

}  // namespace mosa::cli
