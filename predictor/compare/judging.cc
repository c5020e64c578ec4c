#include "predictor/compare/judging.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace mosa::predict {
namespace {

// A run shows a deviation if its own test has at most this p.
constexpr double kShownP = 0.05;
constexpr size_t kShownRunsMin = 2;
// False discoveries among what persists, and in a single run alone,
constexpr double kRate = 0.01, kRateOnce = 0.001;
// whose effect must be larger.
constexpr double kEffectShareOnceMin = 0.25;
// The draws count as this many steps from one run to the next in the spread of runs.
constexpr double kDrawnDegrees = 6;

// The squared uncertainty of the excuse.
double UncertaintyOf(const JudgedRun& run) { return run.excused * run.excused / 4; }

// By group.
std::map<std::string, RunSpread> SpreadsOf(const std::vector<JudgedValue>& values) {
  struct Step {
    double squares = 0;
    size_t values = 0;
  };
  struct Sum {
    double drawn = 0;
    size_t values = 0;
    std::map<size_t, Step> steps;  // By the second run of the step.
  };
  std::map<std::string, Sum> sums;
  for (const JudgedValue& value : values) {
    Sum& sum = sums[value.group];
    sum.drawn += VarianceOf(value.drawn);
    ++sum.values;
    const JudgedRun* before = nullptr;
    for (size_t run = 0; run < value.runs.size(); ++run) {
      if (!value.runs[run]) continue;
      if (before != nullptr) {
        const double size = value.runs[run]->place - before->place;
        Step& step = sum.steps[run];
        step.squares += size * size + UncertaintyOf(*before) + UncertaintyOf(*value.runs[run]);
        ++step.values;
      }
      before = &*value.runs[run];
    }
  }
  std::map<std::string, RunSpread> spreads;
  for (const auto& [group, sum] : sums) {
    double squares = 0;
    for (const auto& [run, step] : sum.steps)
      squares += step.squares / static_cast<double>(step.values);
    const double degrees = kDrawnDegrees + static_cast<double>(sum.steps.size());
    const double drawn = sum.drawn / static_cast<double>(sum.values);
    spreads[group] = {(kDrawnDegrees * drawn + squares / 2) / degrees, degrees};
  }
  return spreads;
}

// On the slower side alone.
double TestedP(const Residual& residual) {
  return residual.size > 0 ? residual.p / 2 : 1 - residual.p / 2;
}

// Which values stand; skips those without a p.
std::vector<bool> StandingOf(const std::vector<std::optional<double>>& p_values, double rate) {
  std::vector<double> known;
  for (const auto& p : p_values)
    if (p) known.push_back(*p);
  const std::vector<bool> standing = Standing(known, rate);
  std::vector<bool> stands(p_values.size(), false);
  size_t next = 0;
  for (size_t i = 0; i < p_values.size(); ++i)
    if (p_values[i]) stands[i] = standing[next++];
  return stands;
}

void JudgeRun(size_t run, std::vector<JudgedValue>& values) {
  std::vector<std::optional<double>> p_values(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].runs[run]) continue;
    values[i].runs[run]->residual = ResidualIn(values[i], {run});
    p_values[i] = TestedP(values[i].runs[run]->residual);
  }
  const std::vector<bool> stands = StandingOf(p_values, kRateOnce);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].runs[run]) continue;
    JudgedRun& of_run = *values[i].runs[run];
    if (of_run.residual.size <= 0) continue;
    of_run.shows = of_run.residual.p <= kShownP && of_run.effect_share >= kEffectShareMin;
    of_run.shows_much = of_run.shows && stands[i] && of_run.effect_share >= kEffectShareOnceMin;
  }
}

// The judged runs that show it, or show much of it.
std::vector<size_t> RunsThatShow(const JudgedValue& value, bool JudgedRun::*shows) {
  std::vector<size_t> shown;
  for (size_t run = FirstJudged(value.runs.size()); run < value.runs.size(); ++run)
    if (value.runs[run] && (*value.runs[run]).*shows) shown.push_back(run);
  return shown;
}

}  // namespace

size_t FirstJudged(size_t runs) { return runs - std::min(runs, kJudgedRuns); }

void Judge(std::vector<JudgedValue>& values) {
  const size_t runs = values.empty() ? 0 : values.front().runs.size();
  const auto spreads = SpreadsOf(values);
  for (JudgedValue& value : values) value.spread = spreads.at(value.group);
  for (size_t run = 0; run < runs; ++run) JudgeRun(run, values);
  std::vector<std::optional<double>> p_values(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    JudgedValue& value = values[i];
    std::vector<size_t> measured;
    for (size_t run = FirstJudged(runs); run < runs; ++run)
      if (value.runs[run]) measured.push_back(run);
    if (measured.empty()) continue;
    const std::vector<size_t> shown = RunsThatShow(value, &JudgedRun::shows);
    const Residual of_all = ResidualIn(value, measured);
    value.p = shown.size() < kShownRunsMin
                  ? TestedP(of_all)
                  : std::min(1.0, WaysToChoose(shown.size(), measured.size()) *
                                      TestedP(ResidualIn(value, shown)));
    value.is_faster = of_all.size < 0 && of_all.p <= kRate;
    p_values[i] = value.p;
  }
  const std::vector<bool> stands = StandingOf(p_values, kRate);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].stands = stands[i];
    values[i].shown = RunsThatShow(values[i], &JudgedRun::shows);
    if (!stands[i] || values[i].shown.size() < kShownRunsMin)
      values[i].shown = RunsThatShow(values[i], &JudgedRun::shows_much);
  }
}

Residual ResidualIn(const JudgedValue& value, const std::vector<size_t>& runs) {
  std::vector<double> places;
  for (const size_t run : runs) places.push_back(value.runs[run]->place);
  return ResidualOf(value.drawn, places, value.surest, value.spread);
}

Interval<double> SharesOf(const Residual& residual) {
  const Interval<double> interval = IntervalOf(residual);
  return {std::exp(interval.low) - 1, std::exp(interval.high) - 1};
}

}  // namespace mosa::predict
