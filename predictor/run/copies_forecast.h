// Predicts how many copies of a file pay if every host reads it; the manager uses this for
// `replicas=auto`.
#ifndef MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_
#define MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "manager/placement/copies.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// Larger clusters are not simulated; they get the best number for this many hosts.
inline constexpr uint32_t kForecastHostsMax = 32;

// Covers files of 64 KiB to 32 MiB. One task writes the file as `pattern=broadcast:N`, then one
// task on each host reads it. The best N is the smallest whose predicted time is at most 2 % above
// the minimum, in the mean of three clusters that differ in where files begin; 2 % is within the
// uncertainty of measured figures. Sizes that exceed the nodes' limit are left out. Takes
// milliseconds for a few hosts, seconds for kForecastHostsMax. Precondition: hosts > 0.
// InvalidArgument: the platform is invalid. ResourceExhausted: no size fits.
Result<std::vector<manager::CopiesForBytes>> ForecastCopies(const Platform& platform,
                                                            uint32_t hosts);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_COPIES_FORECAST_H_
