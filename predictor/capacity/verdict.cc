#include "predictor/capacity/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

bool Overlap(const Estimate& one, const Estimate& other) {
  return one.low <= other.high && other.low <= one.high;
}

// The worst error of the checks, all of one size, if C were also known at the ratio of `known`.
double WorstErrorWith(const LoadCheck& known, const SizeCapacity& seeded,
                      const std::vector<const LoadCheck*>& checks) {
  SizeCapacity size = seeded;
  size.Resample(known.load.parts.front().read_percent, known.constant);
  double worst = 0;
  for (const LoadCheck* check : checks) {
    if (check == &known) continue;
    const double estimated = size.OperationsAt(check->load.parts.front().read_percent);
    worst = std::max(worst, ErrorPercent(estimated, check->measured.median));
  }
  return worst;
}

void JudgeRatios(const SizeCapacity& seeded, const std::vector<const LoadCheck*>& checks,
                 SizeVerdict& verdict) {
  for (const LoadCheck* check : checks) {
    if (check->error_percent < verdict.worst_error_percent) continue;
    verdict.worst_error_percent = check->error_percent;
    verdict.worst_read_percent = check->load.parts.front().read_percent;
    verdict.worst_constant_percent = 100 * check->constant / seeded.ConstantAt(100);
    verdict.worst_measured = check->measured;
    verdict.worst_estimated = check->estimated;
  }
  for (const LoadCheck* check : checks) {
    if (checks.size() < 2) break;
    const double error = WorstErrorWith(*check, seeded, checks);
    if (verdict.resample_read_percent != 0 && error >= verdict.resampled_error_percent) continue;
    verdict.resample_read_percent = check->load.parts.front().read_percent;
    verdict.resampled_error_percent = error;
  }
  const double most = ErrorPercentMax(OneSize(verdict.size_bytes, 100));
  verdict.constancy = Constancy::kConstant;
  for (const LoadCheck* check : checks) {
    if (check->error_percent <= most || verdict.constancy == Constancy::kNotConstant) continue;
    verdict.constancy =
        Overlap(check->measured, check->estimated) ? Constancy::kUnsteady : Constancy::kNotConstant;
  }
}

}  // namespace

double ErrorPercentMax(const CapacityLoad& load) {
  if (load.is_mix()) return kMixErrorPercentMax;
  return load.parts.front().size_bytes <= kSmallSizeMax ? kSmallErrorPercentMax
                                                        : kLargeErrorPercentMax;
}

std::vector<LoadCheck> ChecksOf(const Capacity& capacity) {
  const CapacityModel model = ModelOf(capacity, false);
  std::vector<LoadCheck> checks;
  for (const auto& [load, samples] : capacity.samples) {
    const Result<Estimate> estimated = model.Operations(load);
    if (load.is_seed() || !estimated.ok()) continue;
    LoadCheck check{load, MeasuredOperations(samples), *estimated, 0, 0, 0};
    check.error_percent = ErrorPercent(estimated->median, check.measured.median);
    if (load.is_mix())
      check.equation_seven = EquationSeven(model.median, load);
    else
      check.constant = model.median.at(load.parts.front().size_bytes).ConstantOf(samples).median;
    checks.push_back(std::move(check));
  }
  std::stable_sort(checks.begin(), checks.end(), [](const LoadCheck& a, const LoadCheck& b) {
    return !a.load.is_mix() && b.load.is_mix();
  });
  return checks;
}

std::string_view NameOf(Constancy constancy) {
  switch (constancy) {
    case Constancy::kUnchecked:
      return "not checked";
    case Constancy::kConstant:
      return "constant";
    case Constancy::kUnsteady:
      return "unsteady seeds";
    case Constancy::kNotConstant:
      return "not constant";
  }
  return "";
}

std::vector<SizeVerdict> VerdictsOf(const Capacity& capacity) {
  const CapacityModel model = ModelOf(capacity, false);
  const std::vector<LoadCheck> checks = ChecksOf(capacity);
  std::vector<SizeVerdict> verdicts;
  for (const auto& [size, seeded] : model.median) {
    SizeVerdict verdict;
    verdict.size_bytes = size;
    verdict.read_write_factor = seeded.read_write_factor();
    std::vector<const LoadCheck*> own;
    for (const LoadCheck& check : checks) {
      if (!check.load.is_mix() && check.load.parts.front().size_bytes == size)
        own.push_back(&check);
    }
    if (!own.empty()) JudgeRatios(seeded, own, verdict);
    verdicts.push_back(verdict);
  }
  return verdicts;
}

std::string SentenceOf(const SizeVerdict& verdict) {
  const std::string size = FormatBytes(static_cast<int64_t>(verdict.size_bytes));
  if (verdict.constancy == Constancy::kUnchecked)
    return fmt::format("{}: nothing between the seeds was measured: --check does that", size);
  const std::string worst = fmt::format(
      "at {} % reads C is {:.0f} % of that of only reads and the estimate {:.1f} % off",
      verdict.worst_read_percent, verdict.worst_constant_percent, verdict.worst_error_percent);
  if (verdict.constancy == Constancy::kConstant)
    return fmt::format("{}: C is constant: at worst, {}", size, worst);
  if (verdict.constancy == Constancy::kUnsteady)
    return fmt::format(
        "{}: {}, but samples vary so much that it may be constant (estimated {:.0f} to {:.0f}/s, "
        "measured {:.0f} to {:.0f}): measure into another --output when the machines do nothing "
        "else, with more --seconds",
        size, worst, verdict.worst_estimated.low, verdict.worst_estimated.high,
        verdict.worst_measured.low, verdict.worst_measured.high);
  std::string text = fmt::format("{}: C is not constant: {}", size, worst);
  if (verdict.resample_read_percent != 0)
    text += fmt::format(
        "; a third sample, at {} % reads, leaves {:.1f} % at most (predict --resampled uses all "
        "that were measured)",
        verdict.resample_read_percent, verdict.resampled_error_percent);
  return text;
}

}  // namespace mosa::predict
