// Robust least squares: which parameters make a model give what was measured. Pure.
//
// Parameters and measurements are logarithms, so that all are relative, and none ever becomes
// negative. What no measurement tells keeps its guess, with the guess's own uncertainty. Single
// measurements that fit nothing count less and less (Huber's weights).
#ifndef MOSA_PREDICTOR_IDENTIFY_FIT_H_
#define MOSA_PREDICTOR_IDENTIFY_FIT_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "common/base/status.h"

namespace mosa::predict {

using Matrix = std::vector<std::vector<double>>;

struct FitProblem {
  // The model's measurements for these parameters: as many as `measured`.
  std::function<Result<std::vector<double>>(const std::vector<double>&)> model;
  std::vector<double> measured;
  std::vector<double> sigmas;        // Standard deviation of each, > 0.
  std::vector<double> guesses;       // For the parameters.
  std::vector<double> guess_sigmas;  // > 0.
  // True: there is no time left; the best so far is taken.
  std::function<bool()> stop = [] { return false; };
};

struct FitResult {
  std::vector<double> parameters;
  // Covers the parameters. Where the model fits worse than the measurements' deviations allow, it
  // is enlarged by as much.
  Matrix covariance;
  std::vector<double> residuals;  // Measured less the model's.
  Matrix slopes;                  // Each measurement by each parameter.
  // For each measurement: how much of it the parameters follow, 0 to 1. The rest of its variance is
  // in its residual.
  std::vector<double> followed;
  // Residuals over their sigmas, root of their squares' sum over the measurements that are left for
  // it once parameters have taken theirs; 1 if that is less.
  double misfit = 1;
  int rounds = 0;  // In which it got better.
  // False: there was no time for more, or there were too many rounds. Then slopes are of the last
  // whole round; without one that got better, nothing counts as measured.
  bool converged = false;
};

Result<FitResult> Fit(const FitProblem& problem);

// x of a x = b, for a symmetric and positive definite. Internal if it is not.
Result<std::vector<double>> SolvePositive(Matrix a, std::vector<double> b);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_FIT_H_
