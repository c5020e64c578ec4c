// Implements `mosa envelope classify`: finds what bounds each stage of an application on a store,
// and compares the input and output times by the models of the MTC Envelope paper with simulated
// and measured times.
#ifndef MOSA_TOOLS_FORECAST_ENVELOPE_CLASSIFY_H_
#define MOSA_TOOLS_FORECAST_ENVELOPE_CLASSIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/forecast/envelope_profile.h"

namespace mosa::cli {

struct ClassifyRequest {
  std::string envelope;
  std::string system;
  ApplicationFiles files;
  uint32_t clients = 0;
  std::string record;
  std::vector<std::string> traces;
  std::string platform;
  std::string configuration;
};

// Prints one row each for the input and the output of each stage.
Status ClassifyApplication(const ClassifyRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ENVELOPE_CLASSIFY_H_
