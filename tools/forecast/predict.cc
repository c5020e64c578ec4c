#include "tools/forecast/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/metrics_text.h"
#include "predictor/model/cost.h"
#include "predictor/model/draws.h"
#include "predictor/run/prediction.h"
#include "tools/console/output.h"
#include "tools/forecast/draws.h"
#include "tools/forecast/predict_bound.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/predict_output.h"

namespace mosa::cli {
namespace {

Duration MeanOf(const std::vector<Duration>& draws) {
  Duration total;
  for (const Duration draw : draws) total = total + draw;
  return Nanoseconds(total.ns / static_cast<int64_t>(draws.size()));
}

// Times per draw.
struct Draws {
  std::vector<Duration> modelled;
  std::vector<Duration> off;  // With the error of the model.

  void Add(double factor, Duration time, Duration computing) {
    const double whole = predict::FactorOfWhole(factor, time, computing);
    modelled.push_back(time);
    off.push_back(Nanoseconds(std::llround(static_cast<double>(time.ns) * whole)));
  }
};

TimeForecast ForecastOf(Draws draws) {
  TimeForecast forecast;
  if (draws.modelled.empty()) return forecast;
  forecast.mean = MeanOf(draws.modelled);
  forecast.interval = predict::NineOfTen(std::move(draws.off));
  return forecast;
}

// Averages the load of links over draws, sorted by load: the busiest link of each draw comes first.
class LinkDraws {
 public:
  void Add(const predict::Prediction& drawn, size_t hosts) {
    std::vector<double> sent, received;
    for (const predict::PredictedMachine& machine : drawn.machines) {
      if (sent.size() == hosts) break;
      sent.push_back(static_cast<double>(machine.link.sent_in_all()));
      received.push_back(static_cast<double>(machine.link.received_in_all()));
    }
    AddSorted(std::move(sent), sent_);
    AddSorted(std::move(received), received_);
    ++draws_;
  }
  std::vector<double> SentMean() const { return MeanOf(sent_); }
  std::vector<double> ReceivedMean() const { return MeanOf(received_); }

 private:
  static void AddSorted(std::vector<double> bytes, std::vector<double>& sums) {
    std::sort(bytes.begin(), bytes.end(), std::greater<>());
    sums.resize(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) sums[i] += bytes[i];
  }
  std::vector<double> MeanOf(std::vector<double> sums) const {
    for (double& sum : sums) sum = std::round(sum / static_cast<double>(draws_));
    return sums;
  }
  std::vector<double> sent_, received_;
  size_t draws_ = 0;
};

// Repeats the prediction with figures varied by their measurement error, a new placement seed and
// the model error, which applies only to time in which no task computes.
Status AddIntervals(const Inputs& inputs, const predict::Configuration& configuration,
                    uint32_t repeats, Forecast& forecast) {
  if (repeats == 0) return OkStatus();
  Draws turnarounds;
  std::map<std::string, Draws> stages;
  std::vector<double> joules;
  LinkDraws links;
  uint32_t first_failed = repeats;
  MOSA_RETURN_IF_ERROR(ForEachDraw(inputs, configuration, repeats, {}, [&](const Draw& draw) {
    const predict::Prediction& drawn = draw.prediction;
    if (drawn.failure) {
      if (draw.number <= first_failed) forecast.draw_failure = *drawn.failure;
      first_failed = std::min(first_failed, draw.number);
      ++forecast.draws_failed;
      return;
    }
    links.Add(drawn, configuration.hosts + configuration.storage_hosts);
    turnarounds.Add(draw.factor, drawn.turnaround, drawn.computing);
    for (const predict::PredictedStage& stage : drawn.stages)
      stages[stage.name].Add(draw.factor, stage.end - stage.start, stage.computing);
    if (inputs.power)
      joules.push_back(predict::FactorOfWhole(draw.factor, drawn.turnaround, drawn.computing) *
                       JoulesOf(drawn, predict::Perturbed(*inputs.power, draw.number)));
  }));
  forecast.draws = repeats;
  forecast.turnaround = ForecastOf(std::move(turnarounds));
  for (auto& [name, draws] : stages) forecast.stages.emplace(name, ForecastOf(std::move(draws)));
  forecast.sent_mean = links.SentMean();
  forecast.received_mean = links.ReceivedMean();
  forecast.joules_interval = predict::NineOfTen(std::move(joules));
  return OkStatus();
}

Status WriteTrace(const std::string& path, const predict::Workflow& workflow,
                  const predict::Prediction& prediction) {
  std::ofstream file(path, std::ios::binary);
  file << TraceOf(workflow, prediction)
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  file.close();
  if (!file) return FailedPreconditionError(fmt::format("cannot write {}", path));
  return OkStatus();
}

Status WriteMetrics(const std::string& directory, const predict::Prediction& prediction) {
  for (const DaemonResidence& daemon : ResidenceOf(prediction).daemons) {
    const std::string name =
        daemon.component == "manager" ? "manager" : daemon.component + "-" + daemon.host;
    const std::string path = fmt::format("{}/{}.prom", directory, name);
    std::ofstream file(path, std::ios::binary);
    file << MetricsText(daemon.snapshot);
    file.close();
    if (!file)
      return FailedPreconditionError(
          fmt::format("cannot write {}: is {} a directory?", path, directory));
  }
  return OkStatus();
}

void PrintComparison(const BoundComparison& comparison, const Bound& bound) {
  for (const AboveBound& each : comparison.above)
    fmt::print(stderr, "mosa predict: {}\n", Describe(each, bound));
  for (const NotCompared& each : comparison.not_compared)
    fmt::print(stderr, "mosa predict: {}\n", Describe(each, bound));
}

// Operations, rules and a plan for the tasks and files of the workload.
Status AddSideFiles(const PredictRequest& options, const predict::Configuration& configuration,
                    Inputs& inputs) {
  if (inputs.synthetic) {
    for (const auto& [name, path] :
         {std::pair("--operations", options.operations), std::pair("--rules", options.rules),
          std::pair("--plan", options.plan)})
      if (!path.empty())
        return InvalidArgumentError(
            fmt::format("{} {}: {} says by itself what its tasks do and where its files go; leave "
                        "one of them out",
                        name, path, options.workload));
  }
  if (configuration.system == predict::System::kDss) {
    for (const auto& [name, path] :
         {std::pair("--rules", options.rules), std::pair("--plan", options.plan)})
      if (!path.empty())
        return InvalidArgumentError(fmt::format(
            "{} {}: system=dss takes no hints and places no tasks; leave one of them out", name,
            path));
  }
  if (!options.operations.empty())
    MOSA_RETURN_IF_ERROR(ReadOperations(options.operations, inputs.workflow));
  if (!options.rules.empty()) MOSA_RETURN_IF_ERROR(ReadRules(options.rules, inputs.workflow));
  if (options.plan.empty()) return OkStatus();
  return FollowPlan(options.plan, HostNames(configuration.hosts), inputs.workflow);
}

}  // namespace

Status PredictRun(const PredictRequest& options, bool as_json) {
  MOSA_RETURN_IF_ERROR(CheckRepeats(options.repeats));
  MOSA_ASSIGN_OR_RETURN(Inputs inputs, ReadInputs(options.platform, options.workload, options.power,
                                                  options.frequency_mhz));
  MOSA_ASSIGN_OR_RETURN(const auto configuration,
                        predict::ParseConfiguration(options.configuration));
  MOSA_RETURN_IF_ERROR(AddSideFiles(options, configuration, inputs));
  ForHosts(configuration.hosts, inputs);
  std::optional<Bound> bound;
  if (!options.bound.empty()) {
    MOSA_ASSIGN_OR_RETURN(bound, ReadBound(options.bound, options.bound_system));
  }
  MOSA_ASSIGN_OR_RETURN(
      const predict::Prediction prediction,
      PredictInputs(inputs, inputs.platform, configuration,
                    {.with_layouts = options.layouts,
                     .with_residence = options.residence || !options.metrics.empty()}));
  Forecast forecast;
  if (!prediction.failure) {
    if (inputs.power) forecast.joules = JoulesOf(prediction, *inputs.power);
    MOSA_RETURN_IF_ERROR(AddIntervals(inputs, configuration, options.repeats, forecast));
  }
  std::optional<BoundComparison> comparison;
  if (bound && !prediction.failure) {
    MOSA_ASSIGN_OR_RETURN(comparison, Compare(*bound, inputs.workflow, prediction));
  }
  if (!options.trace.empty())
    MOSA_RETURN_IF_ERROR(WriteTrace(options.trace, inputs.workflow, prediction));
  if (!options.metrics.empty()) MOSA_RETURN_IF_ERROR(WriteMetrics(options.metrics, prediction));
  if (as_json) {
    nlohmann::json root = ToJson(inputs.workflow, configuration, prediction, forecast);
    if (comparison) root["bound"] = ToJson(*comparison, *bound);
    PrintJson(root);
  } else {
    PrintPrediction(inputs.workflow, prediction, forecast);
  }
  if (comparison) PrintComparison(*comparison, *bound);
  if (!inputs.synthetic) NoteTasksWithoutRuntime("predict", inputs.workflow);
  // A store that would run full is an answer, not an error. The message keeps readers from taking
  // the times for those of a complete run.
  if (prediction.failure)
    fmt::print(stderr, "mosa predict: the run would fail: {}\n", *prediction.failure);
  if (forecast.draws_failed > 0)
    fmt::print(stderr,
               "mosa predict: the run would fail in {} of {} draws, for example: {}; mean and "
               "interval are from the other draws\n",
               forecast.draws_failed, forecast.draws, forecast.draw_failure);
  return OkStatus();
}

}  // namespace mosa::cli
