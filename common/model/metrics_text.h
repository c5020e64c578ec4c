// A residence snapshot in Prometheus' text exposition format, version 0.0.4: a histogram
// mosa_COMPONENT_request_seconds with labels `class` and `peer` and buckets a factor of four apart,
// and a counter or gauge for each amount. Pure.
#ifndef MOSA_COMMON_MODEL_METRICS_TEXT_H_
#define MOSA_COMMON_MODEL_METRICS_TEXT_H_

#include <string>

#include "common/model/residence.h"

namespace mosa {

std::string MetricsText(const ResidenceSnapshot& snapshot);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_METRICS_TEXT_H_
