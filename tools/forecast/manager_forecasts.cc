#include "tools/forecast/manager_forecasts.h"

#include <fmt/format.h>

#include "common/base/text_file.h"
#include "predictor/run/forecast_table.h"
#include "tools/console/output.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {

Status MakeForecastFile(const ForecastRequest& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const predict::Platform platform, ReadPlatformFile(options.platform));
  MOSA_ASSIGN_OR_RETURN(const manager::Forecasts forecasts,
                        predict::MakeForecasts(platform, predict::DefaultForecastGrid()));
  const std::string text = WriteForecasts(
      forecasts, fmt::format("for {}, measured {}", platform.machine, platform.measured));
  MOSA_RETURN_IF_ERROR(WriteWhole(options.output, text));
  if (as_json)
    fmt::print("{}", text);
  else
    fmt::print("{} has the forecasts: start mosa-manager or 'mosa cluster up' with --forecasts\n",
               options.output);
  return OkStatus();
}

Status CheckForecastFile(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, manager::kForecastsBytesMax));
  const auto forecasts = manager::ReadForecasts(text);
  if (forecasts.ok()) return OkStatus();
  return InvalidArgumentError(fmt::format("{}: {}", path, MessageOf(forecasts.status())));
}

}  // namespace mosa::cli
