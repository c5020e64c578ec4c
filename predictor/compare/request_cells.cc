#include "predictor/compare/request_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "predictor/compare/sentence.h"
#include "predictor/compare/statistics.h"

namespace mosa::predict {
namespace {

// By its own test, in one run.
constexpr double kShownP = 0.05;
constexpr size_t kShownRunsMin = 2;

// What one class is in draws or runs.
struct Figures {
  std::vector<double> counts, means, medians, p90s;
  void Add(const SeenRequests& seen, double factor) {
    counts.push_back(static_cast<double>(seen.count));
    means.push_back(MeanOf(seen) * factor);
    medians.push_back(seen.median_s * factor);
    p90s.push_back(seen.p90_s * factor);
  }
  RequestFigures Typical() const {
    return {Median(counts), Median(means), Median(medians), Median(p90s)};
  }
  std::vector<double> Places() const {
    std::vector<double> places;
    for (const double mean : means) places.push_back(PlaceOf(mean));
    return places;
  }
  static double PlaceOf(double mean_s) { return std::log(mean_s + kSmallRequestSeconds); }
};

struct InRun {
  size_t run = 0;  // Of those given.
  SeenRequests seen;
  double place = 0;
  double effect_share = 0;
  double p = 1;
  bool shows = false;
  bool shows_much = false;
};

struct Judged {
  size_t cell = 0;
  std::vector<double> places;  // Of the draws.
  std::vector<InRun> runs;
};

bool IsJudged(const RequestClass& which) {
  return !which.name.starts_with("fuse.") && which.component != "manager" &&
         !(which.component == "storage" && which.name == "read");
}

// Null: all.
std::vector<const InRun*> Showing(const Judged& judged, bool InRun::*shows) {
  std::vector<const InRun*> showing;
  for (const InRun& run : judged.runs)
    if (shows == nullptr || run.*shows) showing.push_back(&run);
  return showing;
}

std::vector<double> PlacesOf(const std::vector<const InRun*>& runs) {
  std::vector<double> places;
  for (const InRun* run : runs) places.push_back(run->place);
  return places;
}

class RequestComparer {
 public:
  RequestComparer(const std::vector<SeenRun>& draws, const std::vector<SeenRun>& runs,
                  size_t first_judged, const RequestRules& rules)
      : draws_(draws), runs_(runs), first_judged_(first_judged), rules_(rules) {}

  std::vector<RequestCell> Compare() {
    Collect();
    for (size_t run = first_judged_; run < runs_.size(); ++run) JudgeRun(run);
    JudgeCells();
    std::stable_sort(cells_.begin(), cells_.end(), [](const RequestCell& a, const RequestCell& b) {
      const auto rank = [](const RequestCell& cell) {
        const bool is_off = cell.verdict == RequestVerdict::kAnomaly;
        const auto all = [](const RequestFigures& of) { return of.count * of.mean_s; };
        return std::pair(is_off ? cell.more_s : 0.0,
                         std::max(all(cell.predicted), all(cell.measured)));
      };
      return rank(a) > rank(b);
    });
    return std::move(cells_);
  }

 private:
  void Collect() {
    std::map<RequestClass, Figures> drawn, measured;
    for (const SeenRun& draw : draws_)
      for (const auto& [which, seen] : draw.requests)
        if (seen.count >= kRequestsMin) drawn[which].Add(seen, draw.factor);
    for (size_t run = first_judged_; run < runs_.size(); ++run)
      for (const auto& [which, seen] : runs_[run].requests)
        if (seen.count > 0) measured[which].Add(seen, 1);
    for (const auto& [which, figures] : measured) drawn[which];
    for (const auto& [which, figures] : drawn) {
      RequestCell cell;
      cell.which = which;
      const auto found = measured.find(which);
      if (found != measured.end()) {
        cell.runs = static_cast<uint32_t>(found->second.counts.size());
        cell.measured = found->second.Typical();
      }
      const bool is_predicted = figures.means.size() >= kDrawsMin;
      if (is_predicted) {
        cell.predicted = figures.Typical();
        cell.interval_s = NineOfTen(figures.means);
        cell.verdict = cell.runs == 0    ? RequestVerdict::kNotMeasured
                       : IsJudged(which) ? RequestVerdict::kTooFew
                                         : RequestVerdict::kShown;
      } else if (found == measured.end()) {
        continue;
      }
      cells_.push_back(std::move(cell));
      if (is_predicted && IsJudged(which)) AddJudged(figures);
    }
  }
  // Of the last cell, if a run has enough of it.
  void AddJudged(const Figures& drawn) {
    RequestCell& cell = cells_.back();
    Judged judged;
    judged.cell = cells_.size() - 1;
    judged.places = drawn.Places();
    for (size_t run = first_judged_; run < runs_.size(); ++run) {
      const auto seen = runs_[run].requests.find(cell.which);
      if (seen == runs_[run].requests.end() || seen->second.count < kRequestsMin) continue;
      const double mean_s = MeanOf(seen->second);
      const double more_s =
          (mean_s - cell.predicted.mean_s) * static_cast<double>(seen->second.count);
      InRun in_run;
      in_run.run = run;
      in_run.seen = seen->second;
      in_run.place = Figures::PlaceOf(mean_s);
      in_run.effect_share = rules_.workflow_s > 0 ? more_s / rules_.workflow_s : 0;
      in_run.p = ResidualOf(judged.places, {in_run.place}, kRequestsSurest).p;
      judged.runs.push_back(in_run);
      cell.tested.push_back({run, static_cast<double>(seen->second.count), more_s});
    }
    if (!judged.runs.empty()) judged_.push_back(std::move(judged));
  }

  void JudgeRun(size_t run) {
    std::vector<InRun*> family;
    std::vector<double> p_values;
    for (Judged& judged : judged_) {
      for (InRun& in_run : judged.runs) {
        if (in_run.run != run) continue;
        family.push_back(&in_run);
        p_values.push_back(in_run.p);
      }
    }
    const std::vector<bool> stands = Standing(p_values, rules_.rate_once);
    for (size_t i = 0; i < family.size(); ++i) {
      InRun& in_run = *family[i];
      in_run.shows = in_run.p <= kShownP && in_run.effect_share >= rules_.share_min;
      in_run.shows_much = in_run.shows && stands[i] && in_run.effect_share >= rules_.share_once_min;
    }
  }

  void JudgeCells() {
    std::vector<double> p_values;
    for (const Judged& judged : judged_) {
      RequestCell& cell = cells_[judged.cell];
      const std::vector<const InRun*> shown = Showing(judged, &InRun::shows);
      Measure(judged, Showing(judged, nullptr));
      cell.p = ResidualOf(judged.places, PlacesOf(Showing(judged, nullptr)), kRequestsSurest).p;
      if (shown.size() >= kShownRunsMin)
        cell.p = std::min(1.0, WaysToChoose(shown.size(), judged.runs.size()) *
                                   ResidualOf(judged.places, PlacesOf(shown), kRequestsSurest).p);
      p_values.push_back(*cell.p);
    }
    const std::vector<bool> stands = Standing(p_values, rules_.rate);
    for (size_t i = 0; i < judged_.size(); ++i) Decide(judged_[i], stands[i]);
  }
  // The cell's figures are those of these runs.
  void Measure(const Judged& judged, const std::vector<const InRun*>& runs) {
    RequestCell& cell = cells_[judged.cell];
    Figures figures;
    std::vector<double> effects;
    for (const InRun* run : runs) {
      figures.Add(run->seen, 1);
      effects.push_back(run->effect_share);
    }
    const Residual residual = ResidualOf(judged.places, PlacesOf(runs), kRequestsSurest);
    const Interval<double> interval = IntervalOf(residual);
    cell.measured = figures.Typical();
    cell.residual_share = std::exp(residual.size) - 1;
    cell.residual_share_interval = {std::exp(interval.low) - 1, std::exp(interval.high) - 1};
    cell.effect_share = Median(std::move(effects));
    cell.more_s = cell.effect_share * rules_.workflow_s;
  }
  void Decide(const Judged& judged, bool stands) {
    RequestCell& cell = cells_[judged.cell];
    std::vector<const InRun*> shown = Showing(judged, &InRun::shows);
    if (!stands || shown.size() < kShownRunsMin) shown = Showing(judged, &InRun::shows_much);
    if (!shown.empty()) {
      cell.verdict = RequestVerdict::kAnomaly;
      for (const InRun* run : shown) cell.shown_in.push_back(runs_[run->run].name);
      Measure(judged, shown);
    } else if (!stands) {
      cell.verdict = RequestVerdict::kAsPredicted;
    } else if (cell.residual_share < 0) {
      cell.verdict = RequestVerdict::kFaster;
    } else {
      cell.verdict =
          cell.effect_share < rules_.share_min ? RequestVerdict::kSmall : RequestVerdict::kNotYet;
    }
  }

  const std::vector<SeenRun>& draws_;
  const std::vector<SeenRun>& runs_;
  const size_t first_judged_;
  const RequestRules rules_;
  std::vector<RequestCell> cells_;
  std::vector<Judged> judged_;
};

// Who waits for an answer of others; what of it is in another class as well is not here.
bool IsWaiting(const RequestClass& which) { return which.component == "mount" && IsJudged(which); }

// A delay counts once where it is waited for, and once more if a node's own work takes it: that
// tells the node from the links.
bool IsCounted(const RequestClass& which) {
  return IsWaiting(which) || which.name == "write.object" || which.name == "copy.read";
}

bool Asks(const RequestClass& which) {
  return which.component == "mount" || which.name == "copy.read";
}

// The parts that a class of requests uses.
std::vector<Suspect> SuspectsOf(const RequestClass& which) {
  const auto& [component, name, host, peer] = which;
  std::vector<Suspect> suspects = {{Part::kHost, host}, {Part::kProcessor, host}};
  if (component == "mount" && name.starts_with("manager.")) {
    suspects.push_back({Part::kManager, ""});
    suspects.push_back({Part::kLink, host});
    suspects.push_back({Part::kNetwork, ""});
  } else if (!peer.empty()) {
    for (const Part part : {Part::kHost, Part::kProcessor, Part::kLink})
      suspects.push_back({part, peer});
    suspects.push_back({Part::kLink, host});
    suspects.push_back({Part::kNetwork, ""});
    suspects.push_back({Part::kMounts, ""});
    suspects.push_back({Part::kNode, Asks(which) ? peer : host});
  } else if (name == "write.object") {
    suspects.push_back({Part::kMounts, ""});
    suspects.push_back({Part::kNode, host});
  }
  return suspects;
}

bool IsIn(const RequestScope& scope, const RequestClass& which) {
  return scope.tasks == nullptr || which.component != "mount" || scope.tasks->contains(which.host);
}
bool IsIn(const RequestScope& scope, const RequestsInRun& in_run) {
  return std::find(scope.runs.begin(), scope.runs.end(), in_run.run) != scope.runs.end();
}

std::string ShowTime(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string WhoseRequests(const RequestClass& which) {
  const std::string whose =
      fmt::format("'{}' of the {} of {}", which.name, which.component, which.host);
  if (which.peer.empty()) return whose;
  return fmt::format("{}, {} {}", whose, Asks(which) ? "asked of" : "asked by", which.peer);
}

// Of those that the class uses the one that explains most of what requests stay longer.
std::string OpenFirst(const RequestClass& which, const std::map<Suspect, double>& evidence) {
  const Suspect* best = nullptr;
  double most = 0;
  const std::vector<Suspect> suspects = SuspectsOf(which);
  for (const Suspect& suspect : suspects) {
    const auto found = evidence.find(suspect);
    if (found == evidence.end() || found->second < kExplainedMin || found->second <= most) continue;
    most = found->second;
    best = &suspect;
  }
  if (best != nullptr) return OpenFirst(*best);
  return fmt::format("{}: the log of its {}, and 'mosa top' while a run is made", which.host,
                     which.component);
}

}  // namespace

const char* ToText(RequestVerdict verdict) {
  static constexpr const char* kNames[] = {"as predicted", "not predicted", "not measured",
                                           "too few",      "not judged",    "faster",
                                           "small",        "not yet",       "anomaly"};
  return kNames[static_cast<size_t>(verdict)];
}

std::vector<RequestCell> CompareRequests(const std::vector<SeenRun>& draws,
                                         const std::vector<SeenRun>& runs, size_t first_judged,
                                         const RequestRules& rules) {
  return RequestComparer(draws, runs, first_judged, rules).Compare();
}

size_t CountOff(const std::vector<RequestCell>& cells) {
  return static_cast<size_t>(std::count_if(cells.begin(), cells.end(), [](const RequestCell& cell) {
    return cell.verdict == RequestVerdict::kAnomaly;
  }));
}

std::map<Suspect, double> RequestEvidence(const std::vector<RequestCell>& cells,
                                          const RequestScope& scope) {
  std::map<Suspect, double> evidence;
  if (CountOff(cells) == 0) return evidence;
  struct Fit {
    double used_squared = 0, used_off = 0;
  };
  std::map<Suspect, Fit> fits;
  double off_squared = 0;
  for (const RequestCell& cell : cells) {
    if (!IsCounted(cell.which) || !IsIn(scope, cell.which)) continue;
    const std::vector<Suspect> suspects = SuspectsOf(cell.which);
    for (const RequestsInRun& in_run : cell.tested) {
      if (!IsIn(scope, in_run)) continue;
      off_squared += in_run.more_s * in_run.more_s;
      for (const Suspect& suspect : suspects) {
        const bool by_count = suspect.part == Part::kManager || suspect.part == Part::kNode;
        const double used = in_run.count * (by_count ? 1 : cell.predicted.mean_s);
        Fit& fit = fits[suspect];
        fit.used_squared += used * used;
        fit.used_off += used * in_run.more_s;
      }
    }
  }
  for (const auto& [suspect, fit] : fits)
    if (fit.used_off > 0 && fit.used_squared > 0 && off_squared > 0)
      evidence[suspect] = fit.used_off * fit.used_off / (fit.used_squared * off_squared);
  return evidence;
}

double WaitingShare(const std::vector<RequestCell>& cells, const RequestScope& scope) {
  struct Waiting {
    double predicted_s = 0, more_s = 0;
  };
  std::map<std::string, Waiting> by_host;
  for (const RequestCell& cell : cells) {
    if (!IsWaiting(cell.which)) continue;
    Waiting& waiting = by_host[cell.which.host];
    for (const RequestsInRun& in_run : cell.tested) {
      if (!IsIn(scope, in_run)) continue;
      waiting.predicted_s += cell.predicted.mean_s * in_run.count;
      if (cell.verdict == RequestVerdict::kAnomaly) waiting.more_s += std::max(0.0, in_run.more_s);
    }
  }
  double all_s = 0, waited_s = 0;
  for (const auto& [host, times] : *scope.tasks) {
    all_s += times.more_s;
    const auto found = by_host.find(host);
    if (found == by_host.end() || times.moving_s <= 0) continue;
    const double at_once = std::max(1.0, found->second.predicted_s / times.moving_s);
    waited_s += std::min(times.more_s, found->second.more_s / at_once);
  }
  return all_s > 0 ? waited_s / all_s : 0;
}

void ExplainRequests(std::vector<RequestCell>& cells) {
  std::set<size_t> runs;
  for (const RequestCell& cell : cells)
    for (const RequestsInRun& in_run : cell.tested) runs.insert(in_run.run);
  const auto evidence = RequestEvidence(cells, {{runs.begin(), runs.end()}, nullptr});
  const auto percent = [](double share) { return fmt::format("{:+.0f} %", share * 100); };
  for (RequestCell& cell : cells) {
    if (cell.verdict != RequestVerdict::kAnomaly) continue;
    cell.sentence = fmt::format(
        "Requests {} stayed {} in the mean (half of them up to {}, nine of ten up to {}), "
        "predicted {} ({}, 95 %: {} to {}), in {} of {} run{}: {:.3f} s more for all {:.0f} of a "
        "run.",
        WhoseRequests(cell.which), ShowTime(cell.measured.mean_s), ShowTime(cell.measured.median_s),
        ShowTime(cell.measured.p90_s), ShowTime(cell.predicted.mean_s),
        percent(cell.residual_share), percent(cell.residual_share_interval.low),
        percent(cell.residual_share_interval.high), cell.shown_in.size(), cell.tested.size(),
        cell.tested.size() == 1 ? "" : "s", cell.more_s, cell.measured.count);
    cell.open_first = OpenFirst(cell.which, evidence);
  }
}

}  // namespace mosa::predict
