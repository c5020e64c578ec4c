// Computes beforehand what a manager answers from: the cost of reading, and the number of copies.
//
// Pure: the same arguments give the same forecasts.
#ifndef MOSA_PREDICTOR_RUN_FORECAST_TABLE_H_
#define MOSA_PREDICTOR_RUN_FORECAST_TABLE_H_

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "manager/forecast/forecasts.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// What is simulated; lists are not empty. The manager uses the nearest for what lies between.
struct ForecastGrid {
  std::vector<uint64_t> chunks_bytes;
  std::vector<uint32_t> widths;
  std::vector<uint32_t> nodes;  // For the number of copies.
};
ForecastGrid DefaultForecastGrid();

// Each kind of layout is simulated over sizes (read_trial.h): a host that holds 0, 1, half and all
// but one of a stripe's positions. Takes about ten seconds with the default grid. InvalidArgument:
// the platform is invalid. ResourceExhausted: its nodes are too small for copies.
Result<manager::Forecasts> MakeForecasts(const Platform& platform, const ForecastGrid& grid);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_FORECAST_TABLE_H_
