// Refreshed: what is predicted of requests, brought up to what they took in the intervals before
// those that are judged (`mosa watch`): judged is what changes. What has gone from its prediction
// in the meantime has drifted, and is told by itself, as a platform that was measured once says
// nothing of it.
//
// Of each class and interval, the logarithm of the mean over that predicted, kSmallRequestSeconds
// added to both (request_cells.h). A class is refreshed by the median of its last kRefreshedBy
// intervals, without those that are judged: what is off does not excuse itself. It has drifted if
// that is a quarter longer or shorter, and all of the interval of 95 % (of order statistics) half
// as far at least, and if what its requests took more or less is kDriftShareMin of the time. Then
// it is told once, and again when it has gone another quarter. Pure.
#ifndef MOSA_PREDICTOR_COMPARE_REFRESHED_H_
#define MOSA_PREDICTOR_COMPARE_REFRESHED_H_

#include <cstddef>
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
// Of fewer the order statistics are no interval of 95 %.
inline constexpr size_t kRefreshedByMin = 6;
inline constexpr double kDriftShareMin = 0.01;

struct Drift {
  RequestClass which;
  double predicted_s = 0, now_s = 0;  // Means.
  Interval<double> times;             // As long as predicted; of 95 %.
  size_t intervals = 0;
  std::string since;  // The name of the first of these.
};
// One sentence.
std::string Say(const Drift& drift);

class Refreshed {
 public:
  // As predicted; their runs have requests.
  explicit Refreshed(std::vector<SeenRun> draws);

  // The next interval, of so many seconds. Returns what has drifted with it.
  std::vector<Drift> Add(const SeenRun& interval, double seconds);

  // The draws with requests as long as they are by now.
  const std::vector<SeenRun>& draws() const { return refreshed_; }
  // The mean of a class of all hosts of this component; none: it is not predicted.
  std::optional<double> MeanOf(const std::string& component, const std::string& name) const;

 private:
  struct Seen {
    std::string at;
    double place = 0;
    double more_share = 0;  // Of the interval's time.
  };
  struct Class {
    double predicted_s = 0;
    std::deque<Seen> seen;  // The newest last.
    double place = 0;       // By which it is refreshed,
    double told = 0;        // and as it was told last.
  };

  std::optional<Drift> DriftOf(const RequestClass& which, Class& of) const;
  void Refresh();

  std::vector<SeenRun> draws_;      // As predicted,
  std::vector<SeenRun> refreshed_;  // and as refreshed.
  std::map<RequestClass, Class> classes_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_REFRESHED_H_
