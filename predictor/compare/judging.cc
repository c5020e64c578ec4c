#include "predictor/compare/judging.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace mosa::predict {
namespace {

// A run shows a deviation if its own test has at most this p.
constexpr double kShownP = 0.05;
constexpr size_t kShownRunsMin = 2;
// The draws count as this many steps from one run to the next in the spread of runs.
constexpr double kDrawnDegrees = 6;

// The squared uncertainty of the excuse.
double UncertaintyOf(const JudgedRun& run) { return run.excused * run.excused / 4; }

// By group, as if run `without` had not been made.
std::map<std::string, RunSpread> SpreadsOf(const std::vector<JudgedValue>& values,
                                           std::optional<size_t> without) {
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
      if (!value.runs[run] || run == without) continue;
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

// For a value that is off only if slower, the p of that side alone.
double TestedP(const JudgedValue& value, const Residual& residual) {
  if (!value.is_off_if_slower_only) return residual.p;
  return residual.size > 0 ? residual.p / 2 : 1 - residual.p / 2;
}

// Which values stand, each within its family; skips values without a p.
std::vector<bool> StandingInFamilies(const std::vector<JudgedValue>& values,
                                     const std::vector<std::optional<double>>& p_values,
                                     double rate) {
  std::map<std::string, std::vector<size_t>> families;
  for (size_t i = 0; i < values.size(); ++i)
    if (p_values[i]) families[values[i].family].push_back(i);
  std::vector<bool> stands(values.size(), false);
  for (const auto& [family, members] : families) {
    std::vector<double> of_family;
    for (const size_t i : members) of_family.push_back(*p_values[i]);
    const std::vector<bool> standing = Standing(of_family, rate);
    for (size_t i = 0; i < members.size(); ++i) stands[members[i]] = standing[i];
  }
  return stands;
}

void JudgeRun(const JudgeRules& rules, size_t run, std::vector<JudgedValue>& values) {
  std::vector<std::optional<double>> p_values(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].runs[run]) continue;
    values[i].runs[run]->residual = ResidualIn(values[i], {run});
    p_values[i] = TestedP(values[i], values[i].runs[run]->residual);
  }
  const std::vector<bool> stands = StandingInFamilies(values, p_values, rules.rate_once);
  for (size_t i = 0; i < values.size(); ++i) {
    JudgedValue& value = values[i];
    if (!value.runs[run]) continue;
    JudgedRun& of_run = *value.runs[run];
    if (value.is_off_if_slower_only && of_run.residual.size <= 0) continue;
    const double effect = std::abs(of_run.effect_share);
    of_run.shows = of_run.residual.p <= kShownP && effect >= rules.share_min;
    of_run.shows_much =
        value.can_stand_alone && of_run.shows && stands[i] && effect >= rules.share_once_min;
  }
}

// The judged runs that show it, or show much of it, in the direction with more of them.
std::vector<size_t> RunsThatShow(const JudgedValue& value, bool JudgedRun::*shows) {
  std::vector<size_t> slower, faster;
  for (size_t run = FirstJudged(value.runs.size()); run < value.runs.size(); ++run)
    if (value.runs[run] && (*value.runs[run]).*shows)
      (value.runs[run]->residual.size > 0 ? slower : faster).push_back(run);
  return slower.size() >= faster.size() ? slower : faster;
}

// Sets `odd` of values that are not anomalies.
void FindOdd(const JudgeRules& rules, std::vector<JudgedValue>& values, size_t runs) {
  std::vector<size_t> odd_runs(values.size(), 0);
  for (size_t run = FirstJudged(runs); run < runs; ++run) {
    const auto spreads = SpreadsOf(values, run);
    std::vector<std::optional<double>> p_values(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const JudgedValue& value = values[i];
      if (!value.runs[run] || !value.can_stand_alone) continue;
      const Residual residual =
          ResidualOf(value.drawn, {value.runs[run]->place}, value.surest, spreads.at(value.group));
      if (residual.size > 0) p_values[i] = TestedP(value, residual);
    }
    const std::vector<bool> stands = StandingInFamilies(values, p_values, rules.rate_once);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!stands[i] || values[i].runs[run]->effect_share < rules.share_once_min) continue;
      ++odd_runs[i];
      values[i].odd = run;
    }
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (odd_runs[i] != 1 || !values[i].shown.empty()) values[i].odd.reset();
}

}  // namespace

size_t FirstJudged(size_t runs) { return runs - std::min(runs, kJudgedRuns); }

void Judge(const JudgeRules& rules, size_t runs, std::vector<JudgedValue>& values) {
  const auto spreads = SpreadsOf(values, std::nullopt);
  for (JudgedValue& value : values) value.spread = spreads.at(value.group);
  for (size_t run = 0; run < runs; ++run) JudgeRun(rules, run, values);
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
                  ? TestedP(value, of_all)
                  : std::min(1.0, WaysToChoose(shown.size(), measured.size()) *
                                      TestedP(value, ResidualIn(value, shown)));
    value.is_faster = value.is_off_if_slower_only && of_all.size < 0 && of_all.p <= rules.rate;
    p_values[i] = value.p;
  }
  const std::vector<bool> stands = StandingInFamilies(values, p_values, rules.rate);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].stands = stands[i];
    values[i].shown = RunsThatShow(values[i], &JudgedRun::shows);
    if (!stands[i] || values[i].shown.size() < kShownRunsMin)
      values[i].shown = RunsThatShow(values[i], &JudgedRun::shows_much);
  }
  if (runs > 1) FindOdd(rules, values, runs);
}

bool ShowsAs(const JudgedValue& value, size_t run, bool slower) {
  const auto& of_run = value.runs[run];
  return of_run && of_run->shows && (of_run->residual.size > 0) == slower;
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
