#include "predictor/model/cost.h"

namespace mosa::predict {

uint32_t HostsInAll(const Configuration& configuration) {
  return configuration.hosts + configuration.storage_hosts + (configuration.manager_apart ? 1 : 0);
}

double NodeHours(uint32_t hosts, Duration time) {
  constexpr double kNsPerHour = 3600e9;
  return static_cast<double>(hosts) * (static_cast<double>(time.ns) / kNsPerHour);
}

}  // namespace mosa::predict
