#include "predictor/identify/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "predictor/identify/figures.h"
#include "predictor/identify/fit.h"
#include "predictor/identify/simulated_probe.h"

namespace mosa::predict {
namespace {

constexpr double kRunnerGuessSigma = 2;
// No model of a machine is more accurate, however often something is measured.
constexpr double kModelSigma = 0.05;
constexpr double kNormal95 = 1.96;
// A figure counts as measured if its sigma is below this share of the guess's.
constexpr double kMeasuredBelow = 0.5;
// Share of the time limit kept for the runner's figures, which come last.
constexpr double kRunnersShare = 0.2;
// Notes report a larger misfit, and measurements that are off by more than this many intervals.
constexpr double kMisfitMin = 1.2;
constexpr double kMissMin = 2;
// The size at which the spread of a cost per byte is judged.
constexpr double kTypicalBytes = 1 << 20;
constexpr double kSpreadMax = 1;

// The deviation of a few samples is unreliable. It is pooled with two further samples of this usual
// deviation.
constexpr double kUsualDeviation = 0.2;
constexpr double kUsualSamples = 2;

// Relative variance of single samples; the usual one if there is only one sample.
double VarianceOf(const Measured& measured) {
  return std::pow(measured.count < 2 ? kUsualDeviation : measured.deviation / measured.mean, 2);
}

double SigmaOf(const Measured& measured) {
  const auto count = static_cast<double>(measured.count);
  const double own = measured.deviation / measured.mean;
  const double pooled =
      ((count - 1) * own * own + kUsualSamples * kUsualDeviation * kUsualDeviation) /
      (count - 1 + kUsualSamples);
  return std::sqrt(pooled / count + kModelSigma * kModelSigma);
}

// Probes that resemble workflows, in which hosts exchange files. Link rates are measured
// separately, with a small spread that leaves out how the model uses them. Figures of local work
// have a spread that already includes their misfit. Operations that take microseconds do not matter
// to a run. Predictions have a single error factor, so the interval of a run without transfers is
// wider than necessary.
constexpr uint64_t kWorkloadBytes = 1 << 20;

bool IsLikeAWorkload(const Probe& probe) {
  return probe.bytes * probe.at_once >= kWorkloadBytes && probe.kind != ProbeKind::kReadAgain &&
         (probe.where == Where::kOther || probe.where == Where::kDefault);
}

// How far modelled times are off, as far as the figures do not follow the measurement: the part
// that they follow says nothing about unmeasured cases. `noise`, the variance of a measurement's
// mean, is not the model's error. Each measurement is weighted by its precision.
class Misses {
 public:
  void Add(double residual, double followed, double sigma, double noise) {
    const double weight = 1 / (sigma * sigma);
    squares_ += weight * (residual * residual - (1 - followed) * noise);
    left_ += weight * (1 - followed);
  }
  // A few measurements are unreliable: they are pooled with one of the usual error.
  double Spread() const {
    return std::min(kSpreadMax, std::sqrt((1 + std::max(0.0, squares_)) / left_));
  }

 private:
  double left_ = 1 / (kModelSigma * kModelSigma);
  double squares_ = 0;
};

// One fit: groups of figures, fitted to measurements.
class Step {
 public:
  Step(const char* whose, const std::vector<FigureGroup>& groups, const Platform& known,
       double guess_sigma)
      : whose_(whose), groups_(groups), known_(known), guess_sigma_(guess_sigma) {}

  using Simulate = std::function<Result<double>(const Platform&)>;
  void Add(std::string what, const Measured& seconds, bool like_workload, Simulate simulate) {
    measurements_.push_back({std::move(what), "s", seconds.mean, seconds.half_width, seconds.count,
                             seconds.dropped, seconds.IsSettled(), std::nullopt});
    if (!simulate || seconds.count == 0 || !(seconds.mean > 0)) return;
    if (seconds.cold) {
      ++cold_;
      return;
    }
    fitted_.push_back(measurements_.size() - 1);
    problem_.measured.push_back(std::log(seconds.mean));
    problem_.sigmas.push_back(SigmaOf(seconds));
    variances_.push_back(VarianceOf(seconds));
    like_workload_.push_back(like_workload);
    simulations_.push_back(std::move(simulate));
  }

  Status Run(const std::function<bool()>& stop, Identified& found, Misses& misses) {
    problem_.guesses.assign(groups_.size(), 0);
    problem_.guess_sigmas.assign(groups_.size(), guess_sigma_);
    problem_.stop = stop;
    problem_.model = [this](const std::vector<double>& logs) { return Model(logs); };
    MOSA_ASSIGN_OR_RETURN(const FitResult fit, Fit(problem_));
    found.platform = Scaled(known_, groups_, Factors(fit.parameters));
    if (cold_ > 0)
      found.evidence.notes.push_back(
          fmt::format("{} measurements have only a first sample, which takes longer than later "
                      "ones: no {} figure rests on them",
                      cold_, whose_));
    if (!fit.converged)
      found.evidence.notes.push_back(fmt::format(
          "the fit of the {} figures was cut short after {} rounds: give a larger --budget, or an "
          "idle machine",
          whose_, fit.rounds));
    SetSpreads(fit, found.platform);
    for (size_t i = 0; i < fitted_.size(); ++i)
      measurements_[fitted_[i]].modelled = std::exp(problem_.measured[i] - fit.residuals[i]);
    AddMisses(fit, found.evidence, misses);
    NoteMisses(fit, found.evidence);
    auto& all = found.evidence.measurements;
    all.insert(all.end(), measurements_.begin(), measurements_.end());
    Report(fit, found);
    found.misfit = std::max(found.misfit, fit.misfit);
    found.converged = found.converged && fit.converged;
    return OkStatus();
  }

 private:
  static std::vector<double> Factors(std::vector<double> logs) {
    for (double& value : logs) value = std::exp(value);
    return logs;
  }
  Result<std::vector<double>> Model(const std::vector<double>& logs) const {
    const Platform platform = Scaled(known_, groups_, Factors(logs));
    std::vector<double> modelled;
    for (const Simulate& simulate : simulations_) {
      MOSA_ASSIGN_OR_RETURN(const double seconds, simulate(platform));
      modelled.push_back(std::log(std::max(seconds, 1e-9)));
    }
    return modelled;
  }
  std::optional<size_t> GroupOf(const double* slot, Platform& platform) const {
    for (size_t i = 0; i < groups_.size(); ++i)
      for (const double* each : groups_[i].slots(platform))
        if (each == slot) return i;
    return std::nullopt;
  }
  // How much the samples that determine a figure vary: the mean over measurements, weighted by how
  // much each determines it.
  double VariationOf(const FitResult& fit, size_t group) const {
    double sum = 0, weights = 0;
    for (size_t i = 0; i < fit.slopes.size(); ++i) {
      const double weight = std::pow(fit.slopes[i][group] / problem_.sigmas[i], 2);
      sum += weight * variances_[i];
      weights += weight;
    }
    return weights > 0 ? std::sqrt(sum / weights) : 0;
  }
  // Sets the spread of each whole cost at kTypicalBytes: the uncertainty of its figures, and its
  // variation from call to call, in which both of its parts move together.
  void SetSpreads(const FitResult& fit, Platform& platform) const {
    for (auto& [name, cost] : CostsOf(platform)) {
      const auto call = GroupOf(&cost->ns_per_call, platform);
      const auto byte = GroupOf(&cost->ns_per_byte, platform);
      if (!call) continue;
      const double a = cost->ns_per_call;
      const double b = byte && *byte != *call ? cost->ns_per_byte * kTypicalBytes : 0;
      double variance = a * a * fit.covariance[*call][*call];
      if (byte)
        variance += 2 * a * b * fit.covariance[*call][*byte] + b * b * fit.covariance[*byte][*byte];
      const double between = a * VariationOf(fit, *call) + (byte ? b * VariationOf(fit, *byte) : 0);
      if (a + b > 0)
        cost->spread =
            std::min(kSpreadMax, std::hypot(std::sqrt(std::max(0.0, variance)), between) / (a + b));
    }
  }
  // If no round has changed the guesses, the miss is the guess's own error.
  void AddMisses(const FitResult& fit, Evidence& evidence, Misses& misses) const {
    if (!fit.converged && fit.rounds == 0) {
      evidence.notes.push_back(
          fmt::format("model.spread rests on no measurement of the {} figures, which no fit has "
                      "changed, so it is a guess",
                      whose_));
      return;
    }
    for (size_t i = 0; i < fitted_.size(); ++i)
      if (like_workload_[i])
        misses.Add(fit.residuals[i], fit.followed[i], problem_.sigmas[i],
                   variances_[i] / static_cast<double>(measurements_[fitted_[i]].samples));
  }
  // Notes measurements that the figures do not reproduce: predictions of similar operations are
  // equally wrong.
  void NoteMisses(const FitResult& fit, Evidence& evidence) const {
    if (fit.misfit > kMisfitMin)
      evidence.notes.push_back(fmt::format(
          "the {} figures are {:.1f} times as far from the measurements as the measurements' "
          "intervals allow, so their own intervals are widened by that factor",
          whose_, fit.misfit));
    for (const size_t at : fitted_) {
      const Evidence::Measurement& each = measurements_[at];
      const double interval = std::max(each.half_width / each.mean, kIntervalWanted);
      if (std::abs(std::log(*each.modelled / each.mean)) > kMissMin * interval)
        evidence.notes.push_back(fmt::format("'{}' took {:.3g} ms, but the figures give {:.3g}",
                                             each.what, 1e3 * each.mean, 1e3 * *each.modelled));
    }
  }
  void Report(const FitResult& fit, Identified& found) const {
    Platform platform = found.platform;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const double value = *groups_[i].slots(platform).front();
      const double sigma = std::sqrt(fit.covariance[i][i]);
      found.evidence.figures.push_back(
          {groups_[i].name, value, value * std::exp(-kNormal95 * sigma),
           value * std::exp(kNormal95 * sigma), sigma < kMeasuredBelow * guess_sigma_});
    }
  }

  const char* const whose_;
  const std::vector<FigureGroup>& groups_;
  const Platform known_;
  const double guess_sigma_;
  FitProblem problem_;
  std::vector<Simulate> simulations_;
  std::vector<size_t> fitted_;
  std::vector<bool> like_workload_;  // Parallel to `fitted_`.
  size_t cold_ = 0;
  std::vector<double> variances_;  // Relative variances of samples; parallel to `fitted_`.
  std::vector<Evidence::Measurement> measurements_;
};

}  // namespace

Result<Identified> Identify(const Platform& known, const Configuration& deployment,
                            const Findings& findings, const std::function<double()>& time_left) {
  Identified found;
  found.platform = known;
  Step store("store's", StoreFigures(), known, findings.guess_sigma);
  for (const Findings::OfProbe& each : findings.probes) {
    const bool kernels_own = each.probe.kind == ProbeKind::kStatAgain;
    Step::Simulate simulate;
    if (!kernels_own)
      simulate = [&deployment, &each](const Platform& platform) {
        return SimulateProbe(each.probe, platform, deployment);
      };
    store.Add(ToText(each.probe), each.seconds, IsLikeAWorkload(each.probe), std::move(simulate));
  }
  Misses misses;
  MOSA_RETURN_IF_ERROR(store.Run([&] { return time_left() <= kRunnersShare; }, found, misses));
  Step runner("runner's", RunnerFigures(), found.platform, kRunnerGuessSigma);
  Configuration run_deployment = deployment;
  if (findings.run_hosts > 0) run_deployment.hosts = findings.run_hosts;
  for (const Findings::OfRun& each : findings.runs)
    runner.Add(ToText(each.probe), each.seconds, true, [&](const Platform& platform) {
      return SimulateRun(each.probe, platform, run_deployment);
    });
  MOSA_RETURN_IF_ERROR(runner.Run([&] { return time_left() <= 0; }, found, misses));
  found.platform.model.spread = misses.Spread();
  return found;
}

}  // namespace mosa::predict
