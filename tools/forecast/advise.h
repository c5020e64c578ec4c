// Implements `mosa advise`: finds the hints and the configuration that pay for a workload or a
// recorded run.
#ifndef MOSA_TOOLS_FORECAST_ADVISE_H_
#define MOSA_TOOLS_FORECAST_ADVISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/forecast/work.h"

namespace mosa::cli {

struct AdviseRequest {
  WorkRequest work;
  std::string configuration;
  std::vector<std::string> vary;
  std::string output;
  double least_percent = 1;
  uint32_t repeats = 20;
  uint32_t jobs = 0;
};

// Simulates, prints the advice, and writes the rules to `options.output` if that is not empty.
// After all that, returns DataLoss if the traces do not cover the whole run.
Status Advise(const AdviseRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ADVISE_H_
