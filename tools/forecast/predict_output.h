// Formats a prediction: tables for people, JSON for programs, a trace for a viewer.
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

// From draws that succeed. Empty: there are too few.
struct TimeForecast {
  std::optional<predict::Interval<Duration>> interval;
  std::optional<Duration> mean;
};

// Statistics over draws, which repeat the prediction with varied figures and other placement seeds.
// Intervals hold nine of ten runs, each on a cluster of its own, and include the error of the
// model.
struct Forecast {
  uint32_t draws = 0;
  uint32_t draws_failed = 0;  // Draws in which the run fails.
  std::string draw_failure;   // Why the first of them fails.
  TimeForecast turnaround;
  std::map<std::string, TimeForecast> stages;  // From a stage's first start to its last end.
  // Mean bytes over the hosts' links, without that of a separate manager, from the busiest link of
  // each draw to the least busy: which host is busiest depends on chance. Empty: there are no
  // draws.
  std::vector<double> sent_mean, received_mean;
  std::optional<double> joules;  // Set if powers were given and the run does not fail.
  std::optional<predict::Interval<double>> joules_interval;
};

void PrintPrediction(const predict::Workflow& workflow, const predict::Prediction& prediction,
                     const Forecast& forecast);
nlohmann::json ToJson(const predict::Workflow& workflow,
                      const predict::Configuration& configuration,
                      const predict::Prediction& prediction, const Forecast& forecast);
// The run's residence times in the form that `mosa residence` prints. Peers are names; the run
// begins at time 0. Precondition: it was predicted with residence.
ClusterResidence ResidenceOf(const predict::Prediction& prediction);
// In the Trace Event Format (JSON object form) of Chrome and Perfetto: one named process per host,
// one named thread per slot, one slice per task, and within it one slice each for launch, read,
// compute and write. If a task alternates between these, as a traced task does, each slice is the
// sum of its kind and the slices follow one another.
nlohmann::json TraceOf(const predict::Workflow& workflow, const predict::Prediction& prediction);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_OUTPUT_H_
