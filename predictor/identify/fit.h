// Robust least squares: finds the parameters with which a model best gives the measured values.
// Pure.
//
// Parameters and measurements are logarithms, so that all errors are relative and no figure becomes
// negative. A parameter that no measurement determines keeps its guess, with the guess's
// uncertainty. Outliers count less the further off they are (Huber's weights).
#ifndef MOSA_PREDICTOR_IDENTIFY_FIT_H_
#define MOSA_PREDICTOR_IDENTIFY_FIT_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "common/base/status.h"

namespace mosa::predict {

using Matrix = std::vector<std::vector<double>>;

struct FitProblem {
  // Returns the model's value of each measurement for these parameters.
  std::function<Result<std::vector<double>>(const std::vector<double>&)> model;
  std::vector<double> measured;
  std::vector<double> sigmas;        // Standard deviation of each measurement, > 0.
  std::vector<double> guesses;       // Initial values of the parameters.
  std::vector<double> guess_sigmas;  // > 0.
  // Returns true when the time is used up: Fit() then returns the best result so far.
  std::function<bool()> stop = [] { return false; };
};

struct FitResult {
  std::vector<double> parameters;
  // Covariance of the parameters, enlarged if the model fits worse than the measurements'
  // deviations allow.
  Matrix covariance;
  std::vector<double> residuals;  // Measured minus modelled.
  Matrix slopes;                  // Derivative of each measurement by each parameter.
  // For each measurement, how much of it the parameters follow (its leverage), 0 to 1. The rest of
  // its variance is in its residual.
  std::vector<double> followed;
  // Root of the residuals' squared sum, in units of their sigmas, per degree of freedom; at least
  // 1.
  double misfit = 1;
  int rounds = 0;  // Rounds that improved the fit.
  // False: time ran out, or the limit of rounds was reached. `slopes` then are those of the last
  // complete round. If no round improved the fit, nothing counts as measured.
  bool converged = false;
};

Result<FitResult> Fit(const FitProblem& problem);

// Solves a x = b for a symmetric, positive definite `a`. Internal if it is not.
Result<std::vector<double>> SolvePositive(Matrix a, std::vector<double> b);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_IDENTIFY_FIT_H_
