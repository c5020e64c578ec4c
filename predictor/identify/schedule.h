// Schedule: what is measured next, and when it is enough. Pure: told what each sample took.
//
// All are measured a few times first, in rounds, so that what drifts hits all alike; then those
// whose interval is still too wide, the widest for its number of samples first, until none is or
// the time is used up.
#ifndef MOSA_PREDICTOR_IDENTIFY_SCHEDULE_H_
#define MOSA_PREDICTOR_IDENTIFY_SCHEDULE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/time.h"
#include "predictor/identify/sample.h"

namespace mosa::predict {

class Schedule {
 public:
  explicit Schedule(size_t count) : samples_(count), took_(count), dead_(count) {}

  // Nothing: all are settled, or no more of them fits into `left`.
  std::optional<size_t> Next(Duration left) const;
  // A sample of `index`, which took so long in all. The first of each is not counted, unless there
  // is no other: whatever is done only once is done then.
  void Add(size_t index, double sample, Duration took);
  // It cannot be measured: it is not asked for again.
  void GiveUp(size_t index) { dead_[index] = true; }

  size_t count() const { return samples_.size(); }
  bool is_dead(size_t index) const { return dead_[index]; }
  Measured At(size_t index) const;
  // Those whose interval is as wanted, or that were given up.
  size_t settled() const;

 private:
  // More tell nothing new: what varies so much varies.
  static constexpr size_t kSamplesMax = 60;

  std::vector<std::vector<double>> samples_;  // With the first.
  std::vector<Duration> took_;                // The last.
  std::vector<bool> dead_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SCHEDULE_H_
