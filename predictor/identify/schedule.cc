#include "predictor/identify/schedule.h"

#include <algorithm>

namespace mosa::predict {

Measured Schedule::At(size_t index) const {
  const std::vector<double>& all = samples_[index];
  if (all.size() < 2) {
    Measured first = Summarize(all);
    first.cold = first.count > 0;
    return first;
  }
  return Summarize({all.begin() + 1, all.end()});
}

void Schedule::Add(size_t index, double sample, Duration took) {
  samples_[index].push_back(sample);
  took_[index] = took;
}

std::optional<size_t> Schedule::Next(Duration left) const {
  std::optional<size_t> next;
  for (size_t i = 0; i < count(); ++i) {
    if (dead_[i] || samples_[i].size() > kSamplesMin || took_[i] > left) continue;
    if (!next || samples_[i].size() < samples_[*next].size()) next = i;
  }
  if (next) return next;
  double widest = 0;
  for (size_t i = 0; i < count(); ++i) {
    if (dead_[i] || samples_[i].size() > kSamplesMax || took_[i] > left) continue;
    const Measured measured = At(i);
    if (measured.IsSettled()) continue;
    const double width = measured.RelativeHalf() / static_cast<double>(samples_[i].size());
    if (width <= widest) continue;
    widest = width;
    next = i;
  }
  return next;
}

}  // namespace mosa::predict
