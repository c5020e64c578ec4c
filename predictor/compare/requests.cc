#include "predictor/compare/requests.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

constexpr size_t kOthersMin = 2;
constexpr double kTimesMin = 2;
constexpr size_t kRunsMin = 2;

// Other classes contain these requests too, by their operation: those that lost packets.
bool AreListedElsewhere(const RequestClass& which) { return which.name.ends_with(".resent"); }

// In one run.
std::optional<SlowRequests> Slow(const RequestClass& which, const SeenRequests& seen,
                                 const RequestTimes& all, double more_s_min) {
  if (seen.count < kRequestsMin || AreListedElsewhere(which)) return std::nullopt;
  std::vector<double> others;
  for (auto other = all.lower_bound({which.component, which.name, "", ""});
       other != all.end() && other->first.component == which.component &&
       other->first.name == which.name;
       ++other)
    if (other->first != which && other->second.count >= kRequestsMin)
      others.push_back(MeanOf(other->second));
  if (others.size() < kOthersMin) return std::nullopt;
  SlowRequests slow{which, 1, static_cast<double>(seen.count), MeanOf(seen), Median(others), 0};
  slow.more_s = (slow.mean_s - slow.elsewhere_s) * slow.count;
  if (slow.mean_s < kTimesMin * slow.elsewhere_s || slow.more_s < more_s_min) return std::nullopt;
  return slow;
}

SlowRequests MedianOf(const std::vector<SlowRequests>& runs) {
  const auto median = [&runs](double SlowRequests::*field) {
    std::vector<double> values;
    for (const SlowRequests& run : runs) values.push_back(run.*field);
    return Median(std::move(values));
  };
  return {runs.front().which,
          static_cast<uint32_t>(runs.size()),
          median(&SlowRequests::count),
          median(&SlowRequests::mean_s),
          median(&SlowRequests::elsewhere_s),
          median(&SlowRequests::more_s)};
}

}  // namespace

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

std::vector<SlowRequests> FindSlowRequests(const std::vector<RequestTimes>& runs,
                                           double more_s_min) {
  std::map<RequestClass, std::vector<SlowRequests>> found;
  for (const RequestTimes& run : runs)
    for (const auto& [which, seen] : run)
      if (const auto slow = Slow(which, seen, run, more_s_min)) found[which].push_back(*slow);
  std::vector<SlowRequests> slow;
  for (const auto& [which, shown] : found)
    if (shown.size() >= std::min(kRunsMin, runs.size())) slow.push_back(MedianOf(shown));
  std::stable_sort(slow.begin(), slow.end(), [](const SlowRequests& a, const SlowRequests& b) {
    return a.more_s > b.more_s;
  });
  return slow;
}

}  // namespace mosa::predict
