// How a prediction is shown: tables for people, JSON for programs, a trace for a viewer.
#ifndef MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_
#define MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "predictor/model/draws.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

// What is told beside the simulated run itself. Intervals: nine of ten predictions with drawn
// figures.
struct Forecast {
  std::optional<predict::Interval<Duration>> turnaround;
  std::optional<double> joules;  // If powers were given, and the run does not fail.
  std::optional<predict::Interval<double>> joules_interval;
};

void PrintPrediction(const predict::Workflow& workflow, const predict::Prediction& prediction,
                     const Forecast& forecast);
nlohmann::json ToJson(const predict::Workflow& workflow,
                      const predict::Configuration& configuration,
                      const predict::Prediction& prediction, const Forecast& forecast);
// In the Trace Event Format (JSON object form) of Chrome and Perfetto: a process per host, a thread
// per slot, a slice per task, and in it one for each of launch, read, compute and write.
nlohmann::json TraceOf(const predict::Workflow& workflow, const predict::Prediction& prediction);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_
