// A daemon's residence snapshot in Prometheus' text exposition format, version 0.0.4. It has a
// histogram mosa_COMPONENT_request_seconds with labels `class` and `peer` and buckets a factor of
// four apart, and a counter or gauge for each amount. Pure.
#ifndef MOSA_COMMON_MODEL_METRICS_TEXT_H_
#define MOSA_COMMON_MODEL_METRICS_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/model/residence.h"
#include "common/model/status.h"

namespace mosa {

std::string MetricsText(const ResidenceSnapshot& snapshot);

// Two gauges with the label `limit`: mosa_COMPONENT_limit_used, and mosa_COMPONENT_limit_max where
// there is a limit.
std::string MetricsText(std::string_view component, const std::vector<LimitStatus>& limits);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_METRICS_TEXT_H_
