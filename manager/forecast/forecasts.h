// Forecasts: what the predictor computed beforehand for a manager (`mosa forecast`), and its file:
//
//   {"mosa_forecasts": 1, "comment": "...",
//    "copies": [{"nodes": 4, "sizes": [{"bytes": 65536, "copies": 2}, ...]}, ...],
//    "reads": {"in_manager": [[0, 61000], ...], "whole": [...], "by_mount": [...],
//              "stripes": [{"chunk_bytes": 4096, "width": 2, "remote": [[1, 150000], ...],
//                           "exposed": [{"positions": 1, "curve": [[8192, 0.25], ...]}]}, ...]}}
//
// All fields must be present; others are ignored. Pure.
#ifndef MOSA_MANAGER_FORECAST_FORECASTS_H_
#define MOSA_MANAGER_FORECAST_FORECASTS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "manager/forecast/read_costs.h"
#include "manager/placement/copies.h"

namespace mosa::manager {

inline constexpr int kForecastsVersion = 1;
inline constexpr size_t kForecastsBytesMax = size_t{4} << 20;

struct Forecasts {
  ReadCosts reads;
  CopiesForecast copies;  // Not empty.
  bool operator==(const Forecasts&) const = default;
};

// InvalidArgument is one sentence.
Result<Forecasts> ReadForecasts(std::string_view text);
// Rounds to what ReadForecasts returns again. `comment` says where the forecasts come from.
std::string WriteForecasts(const Forecasts& forecasts, std::string_view comment);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_FORECAST_FORECASTS_H_
