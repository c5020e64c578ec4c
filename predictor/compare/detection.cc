#include "predictor/compare/detection.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "predictor/compare/statistics.h"

namespace mosa::predict {
namespace {

// No prediction is surer than this, as a logarithm; no two runs are usually closer.
constexpr double kModelError = 0.03;
constexpr double kUsualSpread = 0.05;
// That counts as if it had been seen in so many runs.
constexpr double kSpreadDegrees = 6;
// Slow runs may differ from each other more than sound ones do.
constexpr double kSlowDegrees = 2;
// The prediction's error has heavy tails: Student's t with so many degrees of freedom.
constexpr double kErrorDegrees = 8;
// How much slower something is that has become slower: the scale of the logarithm.
constexpr double kSlowerBy = 0.4;

struct Sums {
  double count = 0, mean = 0, squares = 0;
};
Sums SumsOf(const std::vector<double>& values, size_t begin, size_t end) {
  Sums sums;
  for (size_t i = begin; i < end; ++i) sums.mean += values[i];
  sums.count = static_cast<double>(end - begin);
  if (sums.count > 0) sums.mean /= sums.count;
  for (size_t i = begin; i < end; ++i)
    sums.squares += (values[i] - sums.mean) * (values[i] - sums.mean);
  return sums;
}

// The prediction of a mean, with what earlier runs have taught.
struct Expected {
  double mean = 0, variance = 0;
};

// What is found far from its prediction widens it.
Expected After(const Expected& prior, const Sums& seen, double of_runs) {
  if (seen.count == 0) return prior;
  const double off = seen.mean - prior.mean;
  const double variance =
      std::max(prior.variance, (kErrorDegrees * prior.variance + off * off) / (kErrorDegrees + 1));
  const double weight = variance / (variance + of_runs / seen.count);
  return {prior.mean + weight * off, variance * (1 - weight)};
}

double LogNormal(double off, double variance) {
  return -0.5 * (std::log(2 * std::numbers::pi * variance) + off * off / variance);
}
// Student's density, but for a constant.
double LogStudent(double off, double variance) {
  return -0.5 * (std::log(2 * std::numbers::pi * variance) +
                 (kErrorDegrees + 1) * std::log1p(off * off / variance / kErrorDegrees));
}

// How likely values are that differ from their mean by chance, without the mean itself.
double LogOfSpread(const Sums& sums, double of_runs) {
  if (sums.count < 2) return 0;
  return -0.5 * ((sums.count - 1) * std::log(2 * std::numbers::pi * of_runs) +
                 std::log(sums.count) + sums.squares / of_runs);
}

// The runs from `change` on may be slower than those before.
class Story {
 public:
  Story(const Expected& prior, const std::vector<double>& runs, size_t change)
      : before_(SumsOf(runs, 0, change)),
        shown_(SumsOf(runs, change, runs.size())),
        at_first_(prior) {
    spread_before_ = SpreadOf(before_, kSpreadDegrees);
    expected_ = After(prior, before_, spread_before_);
  }

  // The logarithm of the likelihood of all runs if nothing has changed.
  double LikelihoodOfNothing() const {
    return LikelihoodOfBefore() + LikelihoodOfShown(0, kSpreadDegrees);
  }
  // The same if those shown are slower by an unknown amount, and may differ more.
  double LikelihoodOfChange() const {
    return LikelihoodOfBefore() + LikelihoodOfShown(kSlowerBy * kSlowerBy, kSlowDegrees);
  }
  double expected() const { return expected_.mean; }
  double excess() const { return shown_.mean - expected_.mean; }

 private:
  static double SpreadOf(const Sums& sums, double degrees) {
    return (degrees * kUsualSpread * kUsualSpread + sums.squares) /
           (degrees + std::max(0.0, sums.count - 1));
  }
  double LikelihoodOfBefore() const {
    if (before_.count == 0) return 0;
    return LogOfSpread(before_, spread_before_) +
           LogStudent(before_.mean - at_first_.mean,
                      at_first_.variance + spread_before_ / before_.count);
  }
  double LikelihoodOfShown(double slower_variance, double degrees) const {
    const double spread = SpreadOf(shown_, degrees);
    const double variance = expected_.variance + spread / shown_.count;
    const double off = shown_.mean - expected_.mean;
    return LogOfSpread(shown_, spread) + (slower_variance > 0
                                              ? LogNormal(off, variance + slower_variance)
                                              : LogStudent(off, variance));
  }

  Sums before_, shown_;
  double spread_before_ = 0;
  Expected at_first_, expected_;
};

// Judges by how much runs are off, if predictions have this variance.
Detection DetectIn(const std::vector<double>& off, double variance) {
  const Expected prior{0, variance};
  const double nothing = Story(prior, off, 0).LikelihoodOfNothing();
  std::vector<size_t> changes{0};
  for (size_t count = std::min(kRunsJudged, off.size() - 1); count > 0; --count)
    changes.push_back(off.size() - count);
  Detection best;
  size_t since = 0;
  double most = 0;
  for (const size_t change : changes) {
    const Story story(prior, off, change);
    const double likelihood = story.LikelihoodOfChange();
    if (change != 0 && likelihood <= most) continue;
    most = likelihood;
    since = change;
    best.excess_share = std::expm1(story.excess());
    best.last_excess_share = std::expm1(off.back() - story.expected());
  }
  best.evidence = most - nothing - std::log(static_cast<double>(changes.size()));
  for (size_t run = 0; run < off.size(); ++run)
    (run < since ? best.before : best.shown).push_back(run);
  return best;
}

// Slower runs before others, then the clearer ones.
bool IsClearer(const Detection& a, const Detection& b) {
  const bool is_a = a.excess_share >= kExcessMin, is_b = b.excess_share >= kExcessMin;
  return is_a == is_b ? a.evidence > b.evidence : is_a;
}

}  // namespace

Detection Detect(const std::vector<double>& draws, const std::vector<TimeOfRun>& runs) {
  MOSA_CHECK(draws.size() >= 2 && !runs.empty());
  const double variance = VarianceOf(draws) + kModelError * kModelError;
  const double predicted = MeanOf(draws);
  std::vector<double> beside_draws, beside_replays;
  for (const TimeOfRun& run : runs) {
    beside_draws.push_back(run.measured - run.by_others - predicted);
    if (run.replayed) beside_replays.push_back(run.measured - *run.replayed);
  }
  Detection best = DetectIn(beside_draws, variance);
  if (beside_replays.size() == runs.size())
    if (Detection other = DetectIn(beside_replays, variance); IsClearer(other, best))
      best = std::move(other);
  double sum = 0;
  for (const size_t run : best.shown) sum += runs[run].measured;
  best.measured_s = std::exp(sum / static_cast<double>(best.shown.size()));
  best.expected_s = best.measured_s / (1 + best.excess_share);
  return best;
}

}  // namespace mosa::predict
