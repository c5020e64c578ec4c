// Schedule: decides what is measured next, and when to stop. Pure: the caller reports how long each
// sample took.
//
// First every item gets a few samples, in rounds, so that drift affects all alike. Then come the
// items whose interval is still too wide, the widest for its number of samples first, until all are
// settled or the time is used up.
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

  // Returns nothing if all are settled, or no further sample fits into `left`.
  std::optional<size_t> Next(Duration left) const;
  // Adds a sample of `index` that took `took` in all. The first sample of each item is discarded,
  // unless it is the only one, because it includes work that is done only once.
  void Add(size_t index, double sample, Duration took);
  // Marks the item as unmeasurable; Next() does not return it again.
  void GiveUp(size_t index) { dead_[index] = true; }

  size_t count() const { return samples_.size(); }
  bool is_dead(size_t index) const { return dead_[index]; }
  Measured At(size_t index) const;

 private:
  // Samples beyond this number tell nothing new: such an item simply varies.
  static constexpr size_t kSamplesMax = 60;

  std::vector<std::vector<double>> samples_;  // Includes the first, which is discarded.
  std::vector<Duration> took_;                // How long the last sample took.
  std::vector<bool> dead_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_SCHEDULE_H_
