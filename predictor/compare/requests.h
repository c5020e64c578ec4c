// Requests: how long those of one class stayed with a daemon, beside the same class elsewhere. A
// record has them if the cluster could be asked; a prediction does not count them, so that a
// request is held against those of its class that other hosts made or other peers answered.
#ifndef MOSA_PREDICTOR_COMPARE_REQUESTS_H_
#define MOSA_PREDICTOR_COMPARE_REQUESTS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mosa::predict {

struct RequestClass {
  std::string component;  // "manager", "storage" or "mount".
  std::string name;       // "node.read".
  std::string host;       // Of the daemon.
  std::string peer;       // Who asked or answered; may be empty.
  auto operator<=>(const RequestClass&) const = default;
};

struct SeenRequests {
  uint64_t count = 0;
  double seconds = 0;  // In all.
};
using RequestTimes = std::map<RequestClass, SeenRequests>;

// Of those runs in which it is so: medians.
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
