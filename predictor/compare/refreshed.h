// Refreshed: what is predicted of requests, brought up to what they took in the intervals before
// those that are judged (`mosa watch`): judged is what changes. What has gone from its prediction
// in the meantime has drifted, and is told by itself, as a platform that was measured once says
// nothing of it.
//
// For each class that can be judged (request_cells.h) and each interval, it takes the logarithm of
// mean over predicted, kSmallRequestSeconds added to both. A class is refreshed by the median of
// its last kRefreshedBy intervals, without the newest kJudgedRuns: what is off does not excuse
// itself. What is older than kForgottenAfter intervals is forgotten: a class that rested begins
// anew.
//
// A class has drifted if that is a quarter longer or shorter, if all of its interval of 95 % (of
// order statistics) is half as far at least, and if what its requests took more or less is
// kDriftShareMin of the time; until it is half as far again. It is told when it has, and once more
// when it has gone another quarter. Intervals are taken to know nothing of each other, and the
// workload to be alike in all: where it goes through long phases, a class may drift with these.
// Pure.
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
// With fewer, the order statistics are no interval of 95 %.
inline constexpr size_t kRefreshedByMin = 6;
inline constexpr uint64_t kForgottenAfter = 60;
inline constexpr double kDriftShareMin = 0.01;

struct Drift {
  RequestClass which;
  double predicted_s = 0, now_s = 0;  // Means.
  Interval<double> times;             // As long as predicted; of 95 %.
  double more_share = 0;              // Share of the time; less: negative.
  size_t intervals = 0;
  std::string since;  // The name of the first of these.
};
// One sentence.
std::string Say(const Drift& drift);

class Refreshed {
 public:
  // As predicted: runs with requests, of which nothing else is kept.
  explicit Refreshed(const std::vector<SeenRun>& draws);

  // The next interval, of so many seconds. Returns what has drifted with it, what matters most
  // first.
  std::vector<Drift> Add(const SeenRun& interval, double seconds);
  // All that has drifted and has not come back, in that order.
  std::vector<Drift> drifting() const;

  // The draws with requests as long as they are by now.
  const std::vector<SeenRun>& draws() const { return draws_; }
  // What is predicted by now of the mean of these requests of all hosts, those of each class as
  // many as were seen; none: of none of them anything is.
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
    // Means, medians and nine of ten as drawn; by draw; none: it has no such requests.
    std::vector<std::optional<SeenRequests>> drawn;
    std::deque<Seen> seen;       // The newest last.
    double place = 0;            // By which it is refreshed,
    std::optional<Drift> drift;  // as it was told last, until it has come back,
    double told = 0;             // and at which place.
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
