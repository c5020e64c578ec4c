// Implements `mosa predict`: predicts how long a workflow takes on a platform in a configuration.
#ifndef MOSA_TOOLS_FORECAST_PREDICT_H_
#define MOSA_TOOLS_FORECAST_PREDICT_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace mosa::cli {

struct PredictRequest {
  std::string platform;
  std::string workload;
  std::string operations;
  std::string rules;
  std::string plan;
  std::string configuration;
  std::string trace;
  std::string power;
  uint32_t frequency_mhz = 0;
  uint32_t repeats = 20;
  bool layouts = false;
  bool residence = false;
  std::string metrics;
  std::string bound;
  std::string bound_system;
};

// Prints the prediction and writes the requested files.
Status PredictRun(const PredictRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_PREDICT_H_
