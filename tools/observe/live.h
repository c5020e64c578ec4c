// What `mosa watch` and `mosa top` hold against a running cluster: what is predicted of a
// workload's requests on it, interval by interval brought up to what they take
// (predictor/compare/refreshed.h).
#ifndef MOSA_TOOLS_OBSERVE_LIVE_H_
#define MOSA_TOOLS_OBSERVE_LIVE_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/compare/refreshed.h"
#include "predictor/compare/seen_run.h"
#include "tools/console/residence.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

class Live {
 public:
  // Predicts for hosts with a mount now. InvalidArgument if no workload, or other hosts, are named.
  static Result<Live> Predict(const PredictionWords& words, const ClusterResidence& now);

  // The next interval: a difference as of Since(), with names of peers. Its requests, under the
  // time of day as its name.
  predict::SeenRun Add(const ClusterResidence& during);
  // What has drifted with that interval, and all that has and has not come back: one sentence each,
  // for the first ten.
  const std::vector<std::string>& drifts() const { return drifts_; }
  std::vector<std::string> Drifting() const;
  const predict::Refreshed& refreshed() const { return refreshed_; }

 private:
  Live(const std::vector<predict::SeenRun>& draws, std::vector<std::string> hosts)
      : refreshed_(draws), hosts_(std::move(hosts)) {}

  predict::Refreshed refreshed_;
  std::vector<std::string> hosts_;
  std::vector<std::string> drifts_;
};

// "15:04:05".
std::string TimeOfDay();

// What has passed between the answers, by the daemons' own clocks: the most of any.
Duration LengthOf(const ClusterResidence& during);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_LIVE_H_
