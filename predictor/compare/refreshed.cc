#include "predictor/compare/refreshed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "predictor/compare/judging.h"
#include "predictor/compare/request_cells.h"

namespace mosa::predict {
namespace {

const double kDrift = std::log(1.25);

// The ranks, from outside, of the order statistics that enclose the median with 95 %, for
// kRefreshedByMin values and more: from the binomial distribution with p = 1/2.
constexpr size_t kRankOfMedian[] = {0, 0, 0, 1, 1, 1, 2};
static_assert(std::size(kRankOfMedian) == kRefreshedBy - kRefreshedByMin + 1);

Interval<double> IntervalOfMedian(const std::vector<double>& sorted) {
  const size_t rank = kRankOfMedian[sorted.size() - kRefreshedByMin];
  return {sorted[rank], sorted[sorted.size() - 1 - rank]};
}

// Multiplies the time by exp(place), taking account of what is added to all times.
double Scaled(double seconds, double place) {
  const double times = std::exp(place);
  return std::max(0.0, seconds * times + kSmallRequestSeconds * (times - 1));
}

// The values before the judged ones.
template <typename Seen>
std::vector<Seen> NotJudged(const std::deque<Seen>& seen) {
  return {seen.begin(), seen.end() - static_cast<ptrdiff_t>(std::min(seen.size(), kJudgedRuns))};
}

std::vector<Drift> ByWeight(std::vector<Drift> drifts) {
  std::stable_sort(drifts.begin(), drifts.end(), [](const Drift& a, const Drift& b) {
    return std::abs(a.more_share) > std::abs(b.more_share);
  });
  return drifts;
}

}  // namespace

std::string Say(const Drift& drift) {
  const auto& [component, name, host, peer] = drift.which;
  return fmt::format(
      "Requests '{}' of the {}{}{} now take {} on average, {:.2f} times the {} that the platform "
      "predicts for the workload (95 %: {:.2f} to {:.2f}; {} intervals since {}), and are judged "
      "by that from now on: unless the workload is in a special phase, measure the platform again "
      "with 'mosa identify'.",
      name, component, host == "-" ? "" : " of " + host, peer.empty() ? "" : " with " + peer,
      ShowTime(drift.now_s), drift.now_s / drift.predicted_s, ShowTime(drift.predicted_s),
      drift.times.low, drift.times.high, drift.intervals, drift.since);
}

Refreshed::Refreshed(const std::vector<SeenRun>& draws) : draws_(draws.size()) {
  std::map<RequestClass, std::vector<double>> means;
  for (size_t i = 0; i < draws.size(); ++i) {
    draws_[i].requests = draws[i].requests;
    draws_[i].factor = draws[i].factor;
    for (const auto& [which, seen] : draws[i].requests)
      if (seen.count >= kRequestsMin && IsJudged(which))
        means[which].push_back(MeanOf(seen) * draws[i].factor);
  }
  for (auto& [which, of_draws] : means) {
    if (of_draws.size() < kDrawsMin) continue;
    Class& of = classes_[which];
    of.predicted_s = Median(std::move(of_draws));
    for (const SeenRun& draw : draws) {
      const auto drawn = draw.requests.find(which);
      of.drawn.push_back(drawn == draw.requests.end() ? std::nullopt
                                                      : std::optional(drawn->second));
    }
  }
}

std::vector<Drift> Refreshed::Add(const SeenRun& interval, double seconds) {
  std::vector<Drift> told;
  ++intervals_;
  for (auto& [which, of] : classes_) {
    while (!of.seen.empty() && of.seen.front().number + kForgottenAfter < intervals_)
      of.seen.pop_front();
    const auto found = interval.requests.find(which);
    if (found != interval.requests.end() && found->second.count >= kRequestsMin) {
      const double mean_s = MeanOf(found->second);
      const double more_s = (mean_s - of.predicted_s) * static_cast<double>(found->second.count);
      of.seen.push_back(
          {intervals_, interval.name,
           std::log((mean_s + kSmallRequestSeconds) / (of.predicted_s + kSmallRequestSeconds)),
           seconds > 0 ? more_s / seconds : 0});
      if (of.seen.size() > kRefreshedBy + kJudgedRuns) of.seen.pop_front();
    }
    std::vector<double> places;
    for (const Seen& seen : NotJudged(of.seen)) places.push_back(seen.place);
    const double place = places.size() < kRefreshedByMin ? 0 : Median(std::move(places));
    if (place != of.place) {
      of.place = place;
      Refresh(which, of);
    }
    if (std::abs(of.place) < kDrift / 2) {  // It is back to normal.
      of.drift.reset();
      of.told = 0;
    }
    auto drift = DriftOf(which, of);
    if (!drift) continue;
    of.drift = drift;
    of.told = of.place;
    told.push_back(*std::move(drift));
  }
  return ByWeight(std::move(told));
}

std::vector<Drift> Refreshed::drifting() const {
  std::vector<Drift> drifts;
  for (const auto& [which, of] : classes_)
    if (of.drift) drifts.push_back(*of.drift);
  return ByWeight(std::move(drifts));
}

double Refreshed::Class::NowSeconds() const { return Scaled(predicted_s, place); }

// A drift if the class has certainly moved far enough from its last report, and if that matters.
std::optional<Drift> Refreshed::DriftOf(const RequestClass& which, const Class& of) {
  if (std::abs(of.place) < kDrift || std::abs(of.place - of.told) < kDrift) return std::nullopt;
  const std::vector<Seen> before = NotJudged(of.seen);
  std::vector<double> places, more;
  for (const Seen& seen : before) {
    places.push_back(seen.place);
    more.push_back(seen.more_share);
  }
  std::sort(places.begin(), places.end());
  const Interval<double> interval = IntervalOfMedian(places);
  const double surely = of.place > 0 ? interval.low : -interval.high;
  const double more_share = Median(std::move(more));
  if (surely < kDrift / 2 || std::abs(more_share) < kDriftShareMin) return std::nullopt;
  return Drift{which,
               of.predicted_s,
               of.NowSeconds(),
               {Scaled(of.predicted_s, interval.low) / of.predicted_s,
                Scaled(of.predicted_s, interval.high) / of.predicted_s},
               more_share,
               places.size(),
               before.front().at};
}

void Refreshed::Refresh(const RequestClass& which, const Class& of) {
  for (size_t i = 0; i < draws_.size(); ++i) {
    if (!of.drawn[i]) continue;
    const double factor = draws_[i].factor;
    const auto scaled = [&](double seconds) { return Scaled(seconds * factor, of.place) / factor; };
    SeenRequests& now = draws_[i].requests[which];
    now.seconds = scaled(MeanOf(*of.drawn[i])) * static_cast<double>(of.drawn[i]->count);
    now.median_s = scaled(of.drawn[i]->median_s);
    now.p90_s = scaled(of.drawn[i]->p90_s);
  }
}

std::optional<double> Refreshed::PredictedMean(const RequestTimes& seen,
                                               const std::string& component,
                                               const std::string& name) const {
  double count = 0, predicted_s = 0;
  for (auto row = seen.lower_bound({component, name, "", ""});
       row != seen.end() && row->first.component == component && row->first.name == name; ++row) {
    const auto known = classes_.find(row->first);
    if (known == classes_.end()) continue;
    const auto of_class = static_cast<double>(row->second.count);
    count += of_class;
    predicted_s += known->second.NowSeconds() * of_class;
  }
  return count > 0 ? std::optional(predicted_s / count) : std::nullopt;
}

}  // namespace mosa::predict
