// What `mosa advise` does: a workload, or what was seen of a run, in; the hints and the
// configuration that pay out.
#ifndef MOSA_TOOLS_FORECAST_ADVISE_H_
#define MOSA_TOOLS_FORECAST_ADVISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

struct AdviseRequest {
  std::string platform;
  std::string workload;
  std::string operations;
  std::string record;
  std::vector<std::string> traces;
  std::string configuration;
  std::vector<std::string> vary;
  std::string output;
  double least_percent = 1;
  uint32_t repeats = 20;
  uint32_t jobs = 0;
};

// Simulates, prints the advice, and writes the rules to `options.output` if that is not empty.
// DataLoss after all that if what was seen is not the whole run.
Status Advise(const AdviseRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ADVISE_H_
