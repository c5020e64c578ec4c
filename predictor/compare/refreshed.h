// Refreshed: adjusts the predictions of requests to what they took in the intervals before the
// judged ones (`mosa watch`), so that judging finds changes. A class that has left its prediction
// in the meantime has drifted, and is reported separately: a platform that was measured once cannot
// predict it.
//
// For each class that can be judged (request_cells.h) and each interval, takes the logarithm of
// measured over predicted mean, with kSmallRequestSeconds added to both. A class is refreshed by
// the median of its last kRefreshedBy intervals, without the newest kJudgedRuns, so that a
// deviation does not excuse itself. Intervals older than kForgottenAfter are forgotten: a class
// that rested starts again.
//
// A class has drifted if its median is a quarter longer or shorter, if its whole 95 % interval
// (from order statistics) is at least half as far, and if the time gained or lost by its requests
// is kDriftShareMin of the interval; until its median is less than half as far. It is reported when
// this happens, and again after each further quarter. Intervals are assumed to be independent, and
// the workload to be the same in all: if it has long phases, a class may drift with them. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_REFRESHED_H_
#define MOSA_PREDICTOR_COMPARE_REFRESHED_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"
#include "predictor/model/draws.h"

namespace mosa::predict {

inline constexpr size_t kRefreshedBy = 12;
// With fewer values, order statistics give no 95 % interval.
inline constexpr size_t kRefreshedByMin = 6;
inline constexpr uint64_t kForgottenAfter = 60;
inline constexpr double kDriftShareMin = 0.01;

struct Drift {
  RequestClass which;
  double predicted_s = 0, now_s = 0;  // Means.
  Interval<double> times;             // Factor over the prediction; 95 %.
  double more_share = 0;              // Share of the interval's time; negative if less.
  size_t intervals = 0;
  std::string since;  // The name of the first of these intervals.
};
// One sentence.
std::string Say(const Drift& drift);

class Refreshed {
 public:
  // `draws` are the predicted runs; keeps only their requests.
  explicit Refreshed(const std::vector<SeenRun>& draws);

  // Adds the next interval, of `seconds`. Returns what has drifted with it, largest effect first.
  std::vector<Drift> Add(const SeenRun& interval, double seconds);
  // All that has drifted and has not come back, in the same order.
  std::vector<Drift> drifting() const;

  // The draws with their requests adjusted to the present times.
  const std::vector<SeenRun>& draws() const { return draws_; }
  // The present prediction of the mean of these requests over all hosts, weighting each class by
  // its number of seen requests; none if none of them is predicted.
  std::optional<double> PredictedMean(const RequestTimes& seen, const std::string& component,
                                      const std::string& name) const;

 private:
  struct Seen {
    uint64_t number = 0;  // The interval's number.
    std::string at;       // Its name.
    double place = 0;
    double more_share = 0;  // Share of the interval's time.
  };
  struct Class {
    double predicted_s = 0;
    // Means, medians and 90th percentiles by draw; none if a draw has no such requests.
    std::vector<std::optional<SeenRequests>> drawn;
    std::deque<Seen> seen;       // The newest last.
    double place = 0;            // The logarithm that refreshes it,
    std::optional<Drift> drift;  // its last report, until it has come back,
    double told = 0;             // and the logarithm at that report.
    double NowSeconds() const;
  };

  static std::optional<Drift> DriftOf(const RequestClass& which, const Class& of);
  void Refresh(const RequestClass& which, const Class& of);

  std::vector<SeenRun> draws_;
  std::map<RequestClass, Class> classes_;
  uint64_t intervals_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REFRESHED_H_
