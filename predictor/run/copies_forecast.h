// How many copies of a file pay if every host reads it: what the manager makes of `replicas=auto`.
#ifndef MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_
#define MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "manager/placement/copies.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// More hosts than these are not simulated, and get what is best for so many.
inline constexpr uint32_t kForecastHostsMax = 32;

// For files of 64 KiB to 32 MiB: one task writes the file as `pattern=broadcast:N`, then one on
// each host reads it. Best is the least N with which that is predicted to take at most 2 % longer
// than with any other, in the mean of three clusters that differ in where files begin; 2 % are
// within what measured figures are uncertain. Sizes that fit into no node's limit are left out.
// Takes milliseconds for a few hosts, some seconds for the most. Precondition: hosts > 0.
// InvalidArgument: the platform; ResourceExhausted: no size fits.
Result<std::vector<manager::CopiesForBytes>> ForecastCopies(const Platform& platform,
                                                            uint32_t hosts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_
