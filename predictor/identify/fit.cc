#include "predictor/identify/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace mosa::predict {
namespace {

constexpr int kRoundsMax = 30;
constexpr int kTrialsMax = 8;
// Step of a parameter for its numerical derivative: 2 % of the figure.
constexpr double kDerivativeStep = 0.02;
// The largest change of a parameter, a logarithm, in one round.
constexpr double kStepMax = 1.5;
constexpr double kEnough = 1e-3;
// Residuals beyond this many deviations count linearly, not squared.
constexpr double kHuber = 1.5;

double WeightOf(double residual) {
  const double size = std::abs(residual);
  return size <= kHuber ? 1 : kHuber / size;
}

double LossOf(double residual) {
  const double size = std::abs(residual);
  return size <= kHuber ? size * size / 2 : kHuber * (size - kHuber / 2);
}

class Search {
 public:
  explicit Search(const FitProblem& problem) : problem_(problem) {}

  Result<FitResult> Run() {
    FitResult best;
    best.parameters = problem_.guesses;
    MOSA_ASSIGN_OR_RETURN(std::vector<double> modelled, problem_.model(best.parameters));
    double loss = Loss(best.parameters, modelled);
    double damping = 1e-3;
    for (int round = 0; round < kRoundsMax && !best.converged; ++round) {
      MOSA_ASSIGN_OR_RETURN(const bool whole, Derive(best.parameters, modelled));
      if (!whole) break;
      bool better = false, stopped = false;
      double moved = 0;
      for (int trial = 0; trial < kTrialsMax && !better; ++trial) {
        stopped = problem_.stop();
        if (stopped) break;
        MOSA_ASSIGN_OR_RETURN(std::vector<double> step, Step(best.parameters, modelled, damping));
        std::vector<double> next = best.parameters;
        moved = 0;
        for (size_t j = 0; j < next.size(); ++j) {
          step[j] = std::clamp(step[j], -kStepMax, kStepMax);
          next[j] += step[j];
          moved = std::max(moved, std::abs(step[j]));
        }
        MOSA_ASSIGN_OR_RETURN(std::vector<double> there, problem_.model(next));
        const double loss_there = Loss(next, there);
        better = loss_there < loss;
        damping = better ? std::max(damping / 5, 1e-6) : damping * 8;
        if (!better) continue;
        ++best.rounds;
        best.parameters = std::move(next);
        modelled = std::move(there);
        const double gain = loss - loss_there;
        loss = loss_there;
        if (gain < kEnough * std::max(loss, 1.0)) best.converged = true;
      }
      if (stopped) break;
      if (!better || moved < kEnough) best.converged = true;
    }
    // The slopes of guesses that no round has changed must not count as a measurement.
    if (!best.converged && best.rounds == 0) slopes_.clear();
    MOSA_RETURN_IF_ERROR(Finish(best, modelled));
    return best;
  }

 private:
  size_t count() const { return problem_.guesses.size(); }
  double Residual(const std::vector<double>& modelled, size_t i) const {
    return (problem_.measured[i] - modelled[i]) / problem_.sigmas[i];
  }
  double Loss(const std::vector<double>& parameters, const std::vector<double>& modelled) const {
    double loss = 0;
    for (size_t i = 0; i < modelled.size(); ++i) loss += LossOf(Residual(modelled, i));
    for (size_t j = 0; j < count(); ++j) {
      const double off = (parameters[j] - problem_.guesses[j]) / problem_.guess_sigmas[j];
      loss += off * off / 2;
    }
    return loss;
  }
  // Computes `slopes_`. Returns false, and leaves them unchanged, if the time is used up.
  Result<bool> Derive(const std::vector<double>& parameters, const std::vector<double>& modelled) {
    Matrix slopes(modelled.size(), std::vector<double>(count()));
    for (size_t j = 0; j < count(); ++j) {
      if (problem_.stop()) return false;
      std::vector<double> aside = parameters;
      aside[j] += kDerivativeStep;
      MOSA_ASSIGN_OR_RETURN(const std::vector<double> there, problem_.model(aside));
      for (size_t i = 0; i < modelled.size(); ++i)
        slopes[i][j] = (there[i] - modelled[i]) / kDerivativeStep;
    }
    slopes_ = std::move(slopes);
    return true;
  }
  // Information matrix of the measurements and the guesses.
  Matrix Information(const std::vector<double>& modelled, double misfit) const {
    Matrix information(count(), std::vector<double>(count()));
    for (size_t i = 0; i < slopes_.size(); ++i) {
      const double weight = WeightOf(Residual(modelled, i)) /
                            (problem_.sigmas[i] * problem_.sigmas[i] * misfit * misfit);
      for (size_t j = 0; j < count(); ++j)
        for (size_t k = 0; k < count(); ++k)
          information[j][k] += weight * slopes_[i][j] * slopes_[i][k];
    }
    for (size_t j = 0; j < count(); ++j)
      information[j][j] += 1 / (problem_.guess_sigmas[j] * problem_.guess_sigmas[j]);
    return information;
  }
  Result<std::vector<double>> Step(const std::vector<double>& parameters,
                                   const std::vector<double>& modelled, double damping) const {
    Matrix a = Information(modelled, 1);
    std::vector<double> b(count());
    for (size_t j = 0; j < count(); ++j) {
      b[j] = (problem_.guesses[j] - parameters[j]) /
             (problem_.guess_sigmas[j] * problem_.guess_sigmas[j]);
      a[j][j] *= 1 + damping;
    }
    for (size_t i = 0; i < slopes_.size(); ++i) {
      const double residual = Residual(modelled, i);
      for (size_t j = 0; j < count(); ++j)
        b[j] += WeightOf(residual) * residual * slopes_[i][j] / problem_.sigmas[i];
    }
    return SolvePositive(std::move(a), std::move(b));
  }
  Status Finish(FitResult& best, const std::vector<double>& modelled) {
    if (slopes_.empty()) slopes_.assign(modelled.size(), std::vector<double>(count()));
    double squares = 0;
    for (size_t i = 0; i < modelled.size(); ++i) {
      best.residuals.push_back(problem_.measured[i] - modelled[i]);
      squares += 2 * LossOf(Residual(modelled, i));
    }
    MOSA_ASSIGN_OR_RETURN(const Matrix as_told, Covariance(modelled, 1));
    // Degrees of freedom used by the parameters, as far as measurements rather than guesses
    // determine them: the trace of the matrix that maps measured values to modelled ones.
    double taken = static_cast<double>(count());
    for (size_t j = 0; j < count(); ++j)
      taken -= as_told[j][j] / (problem_.guess_sigmas[j] * problem_.guess_sigmas[j]);
    const double free = std::max(1.0, static_cast<double>(modelled.size()) - taken);
    best.misfit = std::max(1.0, std::sqrt(squares / free));
    MOSA_ASSIGN_OR_RETURN(best.covariance, Covariance(modelled, best.misfit));
    best.slopes = slopes_;
    for (size_t i = 0; i < modelled.size(); ++i) {
      double sum = 0;
      for (size_t j = 0; j < count(); ++j)
        for (size_t k = 0; k < count(); ++k) sum += slopes_[i][j] * as_told[j][k] * slopes_[i][k];
      const double weight = WeightOf(Residual(modelled, i)) / std::pow(problem_.sigmas[i], 2);
      best.followed.push_back(std::min(1.0, weight * sum));
    }
    return OkStatus();
  }
  Result<Matrix> Covariance(const std::vector<double>& modelled, double misfit) const {
    const Matrix information = Information(modelled, misfit);
    Matrix covariance(count());
    for (size_t j = 0; j < count(); ++j) {
      std::vector<double> unit(count());
      unit[j] = 1;
      MOSA_ASSIGN_OR_RETURN(covariance[j], SolvePositive(information, std::move(unit)));
    }
    return covariance;
  }

  const FitProblem& problem_;
  Matrix slopes_;
};

}  // namespace

Result<std::vector<double>> SolvePositive(Matrix a, std::vector<double> b) {
  const size_t n = b.size();
  // Cholesky: a = l * l transposed, in the lower triangle of `a`.
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    if (!(a[j][j] > 0))
      return InternalError(fmt::format("row {} of {} is not positive definite", j, n));
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

Result<FitResult> Fit(const FitProblem& problem) {
  MOSA_CHECK(problem.measured.size() == problem.sigmas.size());
  MOSA_CHECK(problem.guesses.size() == problem.guess_sigmas.size());
  return Search(problem).Run();
}

}  // namespace mosa::predict
