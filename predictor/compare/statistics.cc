#include "predictor/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "common/base/check.h"
#include "predictor/model/student_t.h"

namespace mosa::predict {

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double VarianceOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

Residual ResidualOf(const std::vector<double>& predicted, const std::vector<double>& measured,
                    double floor, const RunSpread& runs) {
  MOSA_CHECK(predicted.size() >= 2 && !measured.empty() && floor > 0);
  const auto draws = static_cast<double>(predicted.size());
  const auto count = static_cast<double>(measured.size());
  Residual residual;
  residual.size = Median(measured) - MeanOf(predicted);
  const double of_draws = VarianceOf(predicted) * (1 + 1 / draws);
  const double of_runs =
      runs.degrees > 0 ? runs.variance / count * (count > 2 ? std::numbers::pi / 2 : 1) : 0;
  const double whole = of_draws + of_runs + floor * floor;
  double parts = of_draws * of_draws / (draws - 1);
  if (runs.degrees > 0) parts += of_runs * of_runs / runs.degrees;
  residual.error = std::sqrt(whole);
  // The floor is known, not estimated, so it adds degrees; tables distinguish no more than this.
  constexpr double kDegreesMax = 1000;
  residual.degrees = parts > 0 ? std::min(kDegreesMax, whole * whole / parts) : kDegreesMax;
  residual.p = StudentTail(residual.size / residual.error, residual.degrees);
  return residual;
}

Interval<double> IntervalOf(const Residual& residual) {
  const double half = StudentT95(residual.degrees) * residual.error;
  return {residual.size - half, residual.size + half};
}

double WaysToChoose(size_t chosen, size_t all) {
  double ways = 1;
  for (size_t i = 0; i < chosen; ++i)
    ways *= static_cast<double>(all - i) / static_cast<double>(i + 1);
  return ways;
}

std::vector<bool> Standing(const std::vector<double>& p_values, double rate) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  size_t standing = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double most = rate * static_cast<double>(i + 1) / static_cast<double>(order.size());
    if (p_values[order[i]] <= most) standing = i + 1;
  }
  std::vector<bool> stands(p_values.size(), false);
  for (size_t i = 0; i < standing; ++i) stands[order[i]] = true;
  return stands;
}

}  // namespace mosa::predict
