#include "tools/forecast/envelope_classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "predictor/envelope/classify.h"
#include "predictor/model/cost.h"
#include "predictor/trace/traced_run.h"
#include "tools/console/output.h"
#include "tools/forecast/envelope_profile.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trace_workload.h"
#include "tools/measure/envelope_files.h"
#include "tools/measure/envelope_results.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::PhaseForecast;
using predict::StageForecast;
using predict::StageProfile;

// Total seconds of all tasks of a stage, from one source.
struct Spent {
  std::optional<double> input;
  std::optional<double> output;
  std::optional<double> both;
  bool has_computing = false;  // `both` includes the tasks' computing.
};
using SpentByStage = std::map<std::string, Spent>;

// A stage with its times per concurrent client: each `Spent` is divided by the number of clients.
struct StageRow {
  const StageProfile* profile = nullptr;
  StageForecast forecast;
  Spent simulated, measured;
};

// ---- what is given

double SecondsComputed(const predict::Task& task) {
  Duration computed;
  for (const predict::TaskOperation& operation : task.operations)
    computed = computed + operation.before;
  return predict::SecondsOf(computed);
}

void AddTo(std::optional<double>& sum, double seconds) { sum = sum.value_or(0) + seconds; }

// The tasks' run times minus their known compute times.
SpentByStage SpentInRecord(const RecordedRun& run, const predict::Workflow& workflow) {
  std::map<std::string, double> seconds;
  for (const predict::RecordedTask& task : run.tasks)
    seconds[task.id] = predict::SecondsOf(task.runtime);
  SpentByStage spent;
  for (const predict::Task& task : workflow.tasks) {
    const auto known = seconds.find(task.id);
    if (known == seconds.end()) continue;
    Spent& stage = spent[task.stage];
    AddTo(stage.both, std::max(0.0, known->second - SecondsComputed(task)));
    if (task.operations.empty()) stage.has_computing = true;
  }
  return spent;
}

// Time that mounts spent on tasks' opens and reads, and on their creates, writes and closes.
// Excludes the time of programs and of the kernel. A task that the workload split into parts
// ("id#2") was a single task when it was traced.
SpentByStage SpentInTrace(const predict::TracedRun& run, const predict::Workflow& workflow) {
  std::map<std::string, std::string> stages;
  for (const predict::Task& task : workflow.tasks) stages.emplace(task.id, task.stage);
  SpentByStage spent;
  for (const predict::TracedOperation& operation : run.operations) {
    const auto stage = stages.find(run.tasks[operation.task].id);
    if (stage == stages.end()) continue;
    const bool reads =
        operation.kind == predict::TracedKind::kRead ||
        (operation.kind == predict::TracedKind::kOpen && !operation.made && !operation.writes);
    Spent& own = spent[stage->second];
    AddTo(reads ? own.input : own.output, predict::SecondsOf(operation.end - operation.start));
  }
  for (auto& [name, own] : spent) own.both = own.input.value_or(0) + own.output.value_or(0);
  return spent;
}

Result<SpentByStage> Measured(const ClassifyRequest& options, const predict::Workflow& workflow) {
  if (!options.traces.empty()) {
    MOSA_ASSIGN_OR_RETURN(const Traces traces, ReadTraces(options.traces));
    MOSA_RETURN_IF_ERROR(Incomplete(traces.faults));
    return SpentInTrace(predict::MergeTraces(traces.files), workflow);
  }
  if (options.record.empty()) return SpentByStage();
  MOSA_ASSIGN_OR_RETURN(const RecordedRun run, ReadRecordedRun(options.record));
  return SpentInRecord(run, workflow);
}

Result<SpentByStage> Simulated(const ClassifyRequest& options, const predict::Workflow& workflow) {
  if (options.platform.empty()) return SpentByStage();
  MOSA_ASSIGN_OR_RETURN(const predict::Platform platform, ReadPlatformFile(options.platform));
  MOSA_ASSIGN_OR_RETURN(const auto configuration,
                        predict::ParseConfiguration(options.configuration));
  MOSA_ASSIGN_OR_RETURN(const predict::Prediction prediction,
                        predict::Predict(workflow, platform, configuration));
  if (prediction.failure)
    return FailedPreconditionError(
        fmt::format("the simulated run would fail: {}", *prediction.failure));
  SpentByStage spent;
  for (size_t i = 0; i < workflow.tasks.size(); ++i) {
    const predict::PredictedTask& task = prediction.tasks[i];
    Spent& stage = spent[workflow.tasks[i].stage];
    AddTo(stage.input, predict::SecondsOf(task.reading));
    AddTo(stage.output, predict::SecondsOf(task.writing));
    AddTo(stage.both, predict::SecondsOf(task.reading + task.writing));
  }
  return spent;
}

Spent ShareOf(const SpentByStage& all, const std::string& stage, uint32_t clients) {
  const auto found = all.find(stage);
  if (found == all.end()) return {};
  Spent share = found->second;
  for (auto* seconds : {&share.input, &share.output, &share.both})
    if (*seconds) **seconds /= clients;
  return share;
}

// ---- what is said

// "N-to-1 read bandwidth, concurrency: 4 clients get more done".
std::string BoundText(const PhaseForecast& phase) {
  if (phase.bound == predict::Bound::kNothing) return "-";
  std::string text = fmt::format("{} {}", NameOf(phase.operation), NameOf(phase.bound));
  if (phase.better_clients > 0)
    text += fmt::format(", concurrency: {} client{} get{} more done", phase.better_clients,
                        phase.better_clients == 1 ? "" : "s", phase.better_clients == 1 ? "s" : "");
  return text;
}

std::string FourDigits(double number) { return fmt::format("{:.4g}", number); }
std::string FourDigits(const std::optional<double>& number) {
  return number ? FourDigits(*number) : "-";
}

// "+12 %": relative to the measured time.
std::string Error(double predicted, const std::optional<double>& measured) {
  if (!measured || *measured <= 0) return "-";
  return fmt::format("{:+.0f} %", 100 * (predicted / *measured - 1));
}

std::vector<std::string> RowOf(const StageRow& row, const char* phase_name,
                               const PhaseForecast& phase, const std::optional<double>& simulated,
                               const std::optional<double>& measured) {
  const bool any = phase.bound != predict::Bound::kNothing;
  const auto percent = [any](double share) {
    return any ? fmt::format("{:.1f} %", 100 * share) : std::string("-");
  };
  return {row.profile->name,
          phase_name,
          row.forecast.rated_clients == row.forecast.clients
              ? fmt::format("{}", row.forecast.clients)
              : fmt::format("{} (rates for {})", row.forecast.clients, row.forecast.rated_clients),
          percent(phase.metadata_share),
          percent(1 - phase.metadata_share),
          std::string(NameOf(phase.transfer_bound)),
          FourDigits(phase.coarse_seconds),
          FourDigits(phase.fine_seconds),
          FourDigits(simulated),
          FourDigits(measured),
          Error(phase.coarse_seconds, measured),
          Error(phase.fine_seconds, measured),
          simulated ? Error(*simulated, measured) : "-",
          BoundText(phase)};
}

// Errors that differ by less are equal: with a single file size, coarse and fine add up the same
// numbers in different orders.
constexpr double kAsNear = 1e-9;

// Accuracy of one forecasting method against measured times.
struct Rightness {
  const char* name = "";
  size_t nearest = 0;     // How often this method alone was nearest. Ties do not count.
  double error_mean = 0;  // Relative to the measured time.
};
struct Verdict {
  size_t phases = 0;  // Inputs and outputs, or whole stages where these are not separate.
  size_t ties = 0;    // Phases where two or more methods are equally near.
  std::vector<Rightness> ways;
};

// Judges one phase or stage: coarse model, fine model and, if present, the simulator.
void Judge(const std::vector<double>& foretold, double measured, Verdict& verdict) {
  std::vector<double> errors;
  for (const double seconds : foretold) errors.push_back(std::abs(seconds / measured - 1));
  const double least = *std::min_element(errors.begin(), errors.end()) + kAsNear;
  const bool is_tie =
      std::count_if(errors.begin(), errors.end(), [&](double each) { return each <= least; }) > 1;
  for (size_t i = 0; i < errors.size(); ++i) {
    verdict.ways[i].error_mean += errors[i];
    if (!is_tie && errors[i] <= least) ++verdict.ways[i].nearest;
  }
  verdict.ties += is_tie ? 1 : 0;
  ++verdict.phases;
}

Verdict VerdictOf(const std::vector<StageRow>& rows, bool simulated) {
  Verdict verdict{0, 0, {{"coarse"}, {"fine"}}};
  if (simulated) verdict.ways.push_back({"simulator"});
  const auto judge = [&](const std::vector<const PhaseForecast*>& phases,
                         const std::optional<double>& simulation,
                         const std::optional<double>& measured) {
    std::vector<double> foretold = {0, 0};
    for (const PhaseForecast* phase : phases) {
      foretold[0] += phase->coarse_seconds;
      foretold[1] += phase->fine_seconds;
    }
    if (simulated) foretold.push_back(simulation.value_or(0));
    if (measured.value_or(0) > 0 && foretold[0] > 0) Judge(foretold, *measured, verdict);
  };
  for (const StageRow& row : rows) {
    const PhaseForecast& input = row.forecast.input;
    const PhaseForecast& output = row.forecast.output;
    if (row.measured.has_computing) continue;
    if (row.measured.input || row.measured.output) {
      judge({&input}, row.simulated.input, row.measured.input);
      judge({&output}, row.simulated.output, row.measured.output);
    } else {
      judge({&input, &output}, row.simulated.both, row.measured.both);
    }
  }
  for (Rightness& way : verdict.ways)
    if (verdict.phases > 0) way.error_mean /= static_cast<double>(verdict.phases);
  return verdict;
}

void PrintVerdict(const Verdict& verdict) {
  if (verdict.phases == 0) return;
  std::string text;
  for (const Rightness& way : verdict.ways)
    text += fmt::format("{}{} {} (mean error {:.0f} %)", text.empty() ? "" : ", ", way.name,
                        way.nearest, 100 * way.error_mean);
  const std::string ties = verdict.ties > 0 ? fmt::format(", ties {}", verdict.ties) : "";
  fmt::print("\nNearest to the measured time in {} comparisons: {}{}.\n", verdict.phases, text,
             ties);
}

json ToJson(const Verdict& verdict) {
  json ways = json::object();
  for (const Rightness& way : verdict.ways)
    ways[way.name] = {{"nearest", way.nearest}, {"error_mean", way.error_mean}};
  return {{"compared", verdict.phases}, {"ties", verdict.ties}, {"ways", std::move(ways)}};
}

void PrintRows(const std::vector<StageRow>& rows, bool compared) {
  Table table({"STAGE", "PHASE", "CLIENTS", "METADATA", "TRANSFER", "FACTOR", "COARSE S", "FINE S",
               "SIMULATED S", "MEASURED S", "COARSE ERROR", "FINE ERROR", "SIMULATED ERROR",
               "BOUND BY"});
  for (const StageRow& row : rows) {
    const StageForecast& forecast = row.forecast;
    table.Add(RowOf(row, "input", forecast.input, row.simulated.input, row.measured.input));
    table.Add(RowOf(row, "output", forecast.output, row.simulated.output, row.measured.output));
    if (!compared) continue;
    PhaseForecast both;
    both.coarse_seconds = forecast.input.coarse_seconds + forecast.output.coarse_seconds;
    both.fine_seconds = forecast.input.fine_seconds + forecast.output.fine_seconds;
    auto cells = RowOf(row, "both", both, row.simulated.both, row.measured.both);
    if (row.measured.has_computing) cells.back() = "(measured time includes computing)";
    table.Add(std::move(cells));
  }
  table.Print();
}

json ToJson(const PhaseForecast& phase, const std::optional<double>& simulated,
            const std::optional<double>& measured) {
  const bool any = phase.bound != predict::Bound::kNothing;
  return {{"metadata_share", any ? json(phase.metadata_share) : json(nullptr)},
          {"factor", any ? json(NameOf(phase.transfer_bound)) : json(nullptr)},
          {"bound", any ? json(NameOf(phase.bound)) : json(nullptr)},
          {"operation", any ? json(NameOf(phase.operation)) : json(nullptr)},
          {"concurrency_bound", phase.better_clients > 0},
          {"better_clients", phase.better_clients > 0 ? json(phase.better_clients) : json(nullptr)},
          {"coarse_s", phase.coarse_seconds},
          {"fine_s", phase.fine_seconds},
          {"simulated_s", OrNull(simulated)},
          {"measured_s", OrNull(measured)}};
}

json ToJson(const StageRow& row) {
  const StageForecast& forecast = row.forecast;
  return {{"name", row.profile->name},
          {"tasks", row.profile->tasks},
          {"clients", forecast.clients},
          {"rated_clients", forecast.rated_clients},
          {"rounds", forecast.rounds},
          {"input", ToJson(forecast.input, row.simulated.input, row.measured.input)},
          {"output", ToJson(forecast.output, row.simulated.output, row.measured.output)},
          {"simulated_s", OrNull(row.simulated.both)},
          {"measured_s", OrNull(row.measured.both)},
          {"measured_has_computing", row.measured.has_computing}};
}

}  // namespace

Status ClassifyApplication(const ClassifyRequest& options, bool as_json) {
  if (!options.configuration.empty() && options.platform.empty())
    return InvalidArgumentError("--config applies to the simulator: give --platform as well");
  MOSA_ASSIGN_OR_RETURN(const predict::Envelope envelope,
                        ReadEnvelopeOf(options.envelope, options.system, "--system"));
  MOSA_ASSIGN_OR_RETURN(const Application application, ReadApplication(options.files));
  MOSA_ASSIGN_OR_RETURN(const SpentByStage measured, Measured(options, application.workflow));
  MOSA_ASSIGN_OR_RETURN(const SpentByStage simulated, Simulated(options, application.workflow));
  const uint32_t clients = options.clients > 0 ? options.clients : envelope.clients().back();
  std::vector<StageRow> rows;
  for (const StageProfile& stage : application.stages) {
    const Result<StageForecast> forecast = predict::Classify(stage, envelope, clients);
    if (!forecast.ok())
      return Status(forecast.status().code(),
                    fmt::format("stage '{}': {}", stage.name, MessageOf(forecast.status())));
    rows.push_back({&stage, *forecast, ShareOf(simulated, stage.name, forecast->clients),
                    ShareOf(measured, stage.name, forecast->clients)});
  }
  const Verdict verdict = VerdictOf(rows, !simulated.empty());
  if (!as_json) {
    PrintRows(rows, !measured.empty() || !simulated.empty());
    PrintVerdict(verdict);
    return OkStatus();
  }
  json stages = json::array();
  for (const StageRow& row : rows) stages.push_back(ToJson(row));
  PrintJson({{"system", envelope.name},
             {"workflow", application.workflow.name},
             {"clients", clients},
             {"stages", std::move(stages)},
             {"verdict", ToJson(verdict)}});
  return OkStatus();
}

}  // namespace mosa::cli
