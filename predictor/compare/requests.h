// Requests: how long those of one class stayed with a daemon, beside the same class elsewhere:
// those that other hosts made or other peers answered. A record has them if the cluster could be
// asked. What is predicted of them: request_cells.h.
#ifndef MOSA_PREDICTOR_COMPARE_REQUESTS_H_
#define MOSA_PREDICTOR_COMPARE_REQUESTS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  double seconds = 0;  // In all.
  double median_s = 0;
  double p90_s = 0;
  std::optional<Modes> modes;
};
SeenRequests SeenOf(const DurationCounts& times);
using RequestTimes = std::map<RequestClass, SeenRequests>;

// Fewer have no mean worth comparing.
inline constexpr uint64_t kRequestsMin = 5;

inline double MeanOf(const SeenRequests& seen) {
  return seen.count == 0 ? 0 : seen.seconds / static_cast<double>(seen.count);
}

// Adds those of another daemon of the host; for quantiles the mean, by count. If either has two
// kinds, it is then not known which are whose.
void Add(const SeenRequests& more, SeenRequests& seen);

// Medians of the runs in which the class is slow.
struct SlowRequests {
  RequestClass which;
  uint32_t runs = 0;
  double count = 0;
  double mean_s = 0;
  double elsewhere_s = 0;  // The median of the means of the same class elsewhere.
  double more_s = 0;       // What all of them took more than they would there.
};

// Requests that took twice as long or more as elsewhere, and in all `more_s_min` longer, in two of
// the runs, or in the only one. Those that took most more come first. A class is held against at
// least two others, and a mean is of five requests or more.
std::vector<SlowRequests> FindSlowRequests(const std::vector<RequestTimes>& runs,
                                           double more_s_min);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REQUESTS_H_
