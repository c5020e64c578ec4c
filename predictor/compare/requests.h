// Requests: how long those of one class stayed with a daemon. A record has them if the cluster
// could be asked. For their prediction see request_cells.h.
#ifndef MOSA_PREDICTOR_COMPARE_REQUESTS_H_
#define MOSA_PREDICTOR_COMPARE_REQUESTS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/duration_counts.h"
#include "predictor/compare/modes.h"

namespace mosa::predict {

struct RequestClass {
  std::string component;  // "manager", "storage" or "mount".
  std::string name;       // "node.read".
  std::string host;       // The daemon's host.
  std::string peer;       // The peer that asked or answered; may be empty.
  auto operator<=>(const RequestClass&) const = default;
};

struct SeenRequests {
  uint64_t count = 0;
  double seconds = 0;  // Total.
  double median_s = 0;
  double p90_s = 0;
  std::optional<Modes> modes;
};
SeenRequests SeenOf(const DurationCounts& times);
using RequestTimes = std::map<RequestClass, SeenRequests>;

// With fewer requests, a mean is not worth comparing.
inline constexpr uint64_t kRequestsMin = 5;

inline double MeanOf(const SeenRequests& seen) {
  return seen.count == 0 ? 0 : seen.seconds / static_cast<double>(seen.count);
}

// Adds the requests of another daemon on the host; quantiles become means weighted by count. If
// either has two modes, the modes of the sum are unknown.
void Add(const SeenRequests& more, SeenRequests& seen);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REQUESTS_H_
