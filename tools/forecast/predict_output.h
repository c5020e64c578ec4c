// How a prediction is shown: tables for people, JSON for programs, a trace for a viewer.
#ifndef MOSA_TOOLS_FORECAST_PREDICT_OUTPUT_H_
#define MOSA_TOOLS_FORECAST_PREDICT_OUTPUT_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "predictor/model/draws.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/workflow.h"
#include "tools/console/residence.h"

namespace mosa::cli {

// From draws that end well; nothing: there are too few.
struct TimeForecast {
  std::optional<predict::Interval<Duration>> interval;
  std::optional<Duration> mean;
};

// What is told beside the simulated run itself, of predictions with drawn figures and with other
// places where files begin: a cluster draws those for itself. Intervals: nine of ten runs, each on
// a cluster of its own; they also hold what the model is off by.
struct Forecast {
  uint32_t draws = 0;
  uint32_t draws_failed = 0;  // In which the run fails,
  std::string draw_failure;   // and why, in the first of them.
  TimeForecast turnaround;
  std::map<std::string, TimeForecast> stages;  // From the first start to the last end.
  // What hosts' links carry, the manager's apart from them left out, from the busiest on: which
  // host that is, is chance. Means; empty: there are no draws.
  std::vector<double> sent_mean, received_mean;
  std::optional<double> joules;  // If powers were given, and the run does not fail.
  std::optional<predict::Interval<double>> joules_interval;
};

void PrintPrediction(const predict::Workflow& workflow, const predict::Prediction& prediction,
                     const Forecast& forecast);
nlohmann::json ToJson(const predict::Workflow& workflow,
                      const predict::Configuration& configuration,
                      const predict::Prediction& prediction, const Forecast& forecast);
// What `mosa residence` would show of the run. Peers are names; the run begins at time 0.
// Precondition: it was predicted with residence.
ClusterResidence ResidenceOf(const predict::Prediction& prediction);
// In the Trace Event Format (JSON object form) of Chrome and Perfetto: a process per host, a thread
// per slot, both with names, a slice per task, and in it one for each of launch, read, compute and
// write. For a task that does these by turns, as a traced one, they are sums, one after the other.
nlohmann::json TraceOf(const predict::Workflow& workflow, const predict::Prediction& prediction);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_OUTPUT_H_
