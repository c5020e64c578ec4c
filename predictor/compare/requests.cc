#include "predictor/compare/requests.h"

#include <optional>

namespace mosa::predict {

SeenRequests SeenOf(const DurationCounts& times) {
  const auto seconds = [](Duration duration) { return static_cast<double>(duration.ns) / 1e9; };
  return {times.Count(), static_cast<double>(times.sum_ns) / 1e9, seconds(times.Quantile(500)),
          seconds(times.Quantile(900)), ModesOf(times)};
}

void Add(const SeenRequests& more, SeenRequests& seen) {
  if (more.count == 0) return;
  seen.modes = seen.count == 0 ? more.modes : std::nullopt;
  const double share =
      static_cast<double>(more.count) / static_cast<double>(seen.count + more.count);
  seen.count += more.count;
  seen.seconds += more.seconds;
  seen.median_s += (more.median_s - seen.median_s) * share;
  seen.p90_s += (more.p90_s - seen.p90_s) * share;
}

}  // namespace mosa::predict
