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

// Of order statistics, 95 %. Precondition: kRefreshedByMin values, sorted.
Interval<double> IntervalOfMedian(const std::vector<double>& sorted) {
  const auto count = static_cast<double>(sorted.size());
  const double half = 1.96 * std::sqrt(count) / 2;
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(count / 2 - half)));
  return {sorted[low], sorted[sorted.size() - 1 - low]};
}

}  // namespace

std::string Say(const Drift& drift) {
  const auto& [component, name, host, peer] = drift.which;
  return fmt::format(
      "Requests '{}' of the {}{}{} take {} in the mean by now, {:.2f} times the {} of the platform "
      "(95 %: {:.2f} to {:.2f}; {} intervals since {}), and are judged by that from here on: 'mosa "
      "identify' measures the platform anew.",
      name, component, host == "-" ? "" : " of " + host, peer.empty() ? "" : " with " + peer,
      ShowTime(drift.now_s), drift.now_s / drift.predicted_s, ShowTime(drift.predicted_s),
      drift.times.low, drift.times.high, drift.intervals, drift.since);
}

Refreshed::Refreshed(std::vector<SeenRun> draws) : draws_(std::move(draws)), refreshed_(draws_) {
  std::map<RequestClass, std::vector<double>> means;
  for (const SeenRun& draw : draws_)
    for (const auto& [which, seen] : draw.requests)
      if (seen.count >= kRequestsMin && IsJudged(which))
        means[which].push_back(mosa::predict::MeanOf(seen) * draw.factor);
  for (auto& [which, of_draws] : means)
    if (of_draws.size() >= kDrawsMin) classes_[which].predicted_s = Median(std::move(of_draws));
}

std::vector<Drift> Refreshed::Add(const SeenRun& interval, double seconds) {
  std::vector<Drift> drifts;
  for (auto& [which, of] : classes_) {
    const auto found = interval.requests.find(which);
    if (found == interval.requests.end() || found->second.count < kRequestsMin) continue;
    const double mean_s = mosa::predict::MeanOf(found->second);
    const double more_s = (mean_s - of.predicted_s) * static_cast<double>(found->second.count);
    of.seen.push_back(
        {interval.name,
         std::log((mean_s + kSmallRequestSeconds) / (of.predicted_s + kSmallRequestSeconds)),
         seconds > 0 ? more_s / seconds : 0});
    if (of.seen.size() > kRefreshedBy + kJudgedRuns) of.seen.pop_front();
    if (const auto drift = DriftOf(which, of)) drifts.push_back(*drift);
  }
  Refresh();
  return drifts;
}

std::optional<Drift> Refreshed::DriftOf(const RequestClass& which, Class& of) const {
  if (of.seen.size() < kRefreshedByMin + kJudgedRuns) return std::nullopt;
  const auto end = of.seen.end() - static_cast<ptrdiff_t>(kJudgedRuns);
  std::vector<double> places, more;
  for (auto seen = of.seen.begin(); seen != end; ++seen) {
    places.push_back(seen->place);
    more.push_back(seen->more_share);
  }
  std::sort(places.begin(), places.end());
  of.place = Median(places);
  const Interval<double> interval = IntervalOfMedian(places);
  const double surely = of.place > 0 ? interval.low : -interval.high;
  if (std::abs(of.place) < kDrift / 2) of.told = 0;  // It has come back.
  if (std::abs(of.place) < kDrift || surely < kDrift / 2 || std::abs(of.place - of.told) < kDrift ||
      std::abs(Median(more)) < kDriftShareMin)
    return std::nullopt;
  of.told = of.place;
  // As requests take that much longer, the added time left out again.
  const auto seconds = [&of](double place) {
    return (of.predicted_s + kSmallRequestSeconds) * std::exp(place) - kSmallRequestSeconds;
  };
  return Drift{which,
               of.predicted_s,
               seconds(of.place),
               {seconds(interval.low) / of.predicted_s, seconds(interval.high) / of.predicted_s},
               places.size(),
               of.seen.front().at};
}

void Refreshed::Refresh() {
  for (size_t i = 0; i < draws_.size(); ++i)
    for (const auto& [which, of] : classes_) {
      const auto drawn = draws_[i].requests.find(which);
      if (drawn == draws_[i].requests.end()) continue;
      SeenRequests& now = refreshed_[i].requests[which];
      // What is added to both is no part of what is scaled.
      const auto scale = [&](double before) {
        const double times = std::exp(of.place);
        return std::max(0.0, before * times + kSmallRequestSeconds * (times - 1));
      };
      const auto count = static_cast<double>(drawn->second.count);
      now.seconds = scale(mosa::predict::MeanOf(drawn->second)) * count;
      now.median_s = scale(drawn->second.median_s);
      now.p90_s = scale(drawn->second.p90_s);
    }
}

std::optional<double> Refreshed::MeanOf(const std::string& component,
                                        const std::string& name) const {
  std::vector<double> means;
  for (const SeenRun& draw : refreshed_) {
    SeenRequests all;
    for (auto row = draw.requests.lower_bound({component, name, "", ""});
         row != draw.requests.end() && row->first.component == component && row->first.name == name;
         ++row) {
      all.count += row->second.count;
      all.seconds += row->second.seconds;
    }
    if (all.count >= kRequestsMin) means.push_back(mosa::predict::MeanOf(all) * draw.factor);
  }
  if (means.size() < kDrawsMin) return std::nullopt;
  return Median(std::move(means));
}

}  // namespace mosa::predict
