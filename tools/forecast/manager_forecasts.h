// Implements `mosa forecast`: computes what a manager answers from.
#ifndef MOSA_TOOLS_FORECAST_MANAGER_FORECASTS_H_
#define MOSA_TOOLS_FORECAST_MANAGER_FORECASTS_H_

#include <string>

#include "common/base/status.h"

namespace mosa::cli {

struct ForecastRequest {
  std::string platform;
  std::string output = "forecasts.json";
};

// Writes the forecasts, and prints them as JSON or where they are.
Status MakeForecastFile(const ForecastRequest& options, bool as_json);

// Not OK, in one sentence, if a manager would refuse the file.
Status CheckForecastFile(const std::string& path);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_MANAGER_FORECASTS_H_
