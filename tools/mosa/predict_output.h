// How a prediction is shown: tables for people, JSON for programs, a trace for a viewer.
#ifndef MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_
#define MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "predictor/run/prediction.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

// Of the turnaround: nine of ten predictions with drawn figures lie in it.
struct Interval {
  Duration low, high;
};

void PrintPrediction(const predict::Workflow& workflow, const predict::Prediction& prediction,
                     const std::optional<Interval>& interval);
nlohmann::json ToJson(const predict::Workflow& workflow,
                      const predict::Configuration& configuration,
                      const predict::Prediction& prediction,
                      const std::optional<Interval>& interval);
// In the Trace Event Format (JSON object form) of Chrome and Perfetto: a process per host, a thread
// per slot, a slice per task, and in it one for each of launch, read, compute and write.
nlohmann::json TraceOf(const predict::Workflow& workflow, const predict::Prediction& prediction);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_PREDICT_OUTPUT_H_
