#include "predictor/compare/request_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "predictor/compare/busy.h"

namespace mosa::predict {
namespace {

// A suspect that explains less is not named.
constexpr double kSuspectExplainsMin = 0.5;

// The figures of one class in draws or runs.
struct Figures {
  std::vector<double> counts, means, medians, p90s;
  std::vector<Modes> modes;
  void Add(const SeenRequests& seen, double factor) {
    counts.push_back(static_cast<double>(seen.count));
    means.push_back(MeanOf(seen) * factor);
    medians.push_back(seen.median_s * factor);
    p90s.push_back(seen.p90_s * factor);
    if (seen.modes) modes.push_back(*seen.modes);
  }
  // Two modes, if most have two.
  std::optional<Modes> TypicalModes() const {
    if (modes.size() * 2 <= counts.size()) return std::nullopt;
    const auto median = [this](double Modes::*field) {
      std::vector<double> values;
      for (const Modes& each : modes) values.push_back(each.*field);
      return Median(std::move(values));
    };
    return Modes{median(&Modes::slow_share), median(&Modes::quick_s), median(&Modes::slow_s)};
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

class RequestComparer {
 public:
  RequestComparer(const std::vector<SeenRun>& draws, const std::vector<SeenRun>& runs,
                  double workflow_s)
      : draws_(draws),
        runs_(runs),
        workflow_s_(workflow_s),
        first_judged_(FirstJudged(runs.size())) {}

  std::vector<RequestCell> Compare() {
    Collect();
    decided_ = judged_;
    Judge(judged_);
    const bool are_busy =
        std::ranges::any_of(runs_, [](const SeenRun& run) { return TakenShare(run) > kBusyShare; });
    if (are_busy) {
      TakeOthersOff();
      Judge(decided_);
    } else {
      decided_ = judged_;
    }
    for (size_t i = 0; i < judged_.size(); ++i) Decide(i);
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
        cell.modes = found->second.TypicalModes();
      }
      if (figures.TypicalModes()) {
        are_modes_predicted_.insert(which);
        cell.modes.reset();
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
  // Adds a value to judge for the last cell, if a judged run has enough of its requests.
  void AddJudged(const Figures& drawn) {
    RequestCell& cell = cells_.back();
    JudgedValue judged;
    judged.drawn = drawn.Places();
    judged.surest = kRequestsSurest;
    judged.group = cell.which.component + cell.which.name;
    judged.runs.resize(runs_.size());
    for (size_t run = 0; run < runs_.size(); ++run) {
      const auto seen = runs_[run].requests.find(cell.which);
      if (seen == runs_[run].requests.end() || seen->second.count < kRequestsMin) continue;
      const double mean_s = MeanOf(seen->second);
      const double more_s =
          (mean_s - cell.predicted.mean_s) * static_cast<double>(seen->second.count);
      JudgedRun& in_run = judged.runs[run].emplace();
      in_run.place = Figures::PlaceOf(mean_s);
      in_run.effect_share = workflow_s_ > 0 ? more_s / workflow_s_ : 0;
      if (run >= first_judged_)
        cell.tested.push_back({run, static_cast<double>(seen->second.count), more_s});
    }
    if (cell.tested.empty()) return;
    judged_.push_back(std::move(judged));
    cell_of_judged_.push_back(cells_.size() - 1);
  }

  // Takes off what the work of others on the machines explains.
  void TakeOthersOff() {
    for (size_t i = 0; i < decided_.size(); ++i) {
      JudgedValue& value = decided_[i];
      const double predicted_place = MeanOf(value.drawn);
      for (size_t run = 0; run < runs_.size(); ++run)
        if (value.runs[run])
          value.runs[run] =
              WithoutOthers(*value.runs[run], predicted_place,
                            ExcuseFor(TakenShareOf(cells_[cell_of_judged_[i]].which, runs_[run])));
    }
  }
  static double TakenShareOf(const RequestClass& which, const SeenRun& run) {
    const double at_host = TakenShareAt(run, which.host);
    if (which.component == "manager" || which.name.starts_with("manager."))
      return std::max(at_host, TakenShareAtManager(run));
    return std::max(at_host, TakenShareAt(run, which.peer));
  }

  // Sets the cell's figures to those of these runs.
  void Measure(size_t index, const std::vector<size_t>& runs) {
    RequestCell& cell = cells_[cell_of_judged_[index]];
    Figures figures;
    std::vector<double> effects;
    for (const size_t run : runs) {
      figures.Add(runs_[run].requests.at(cell.which), 1);
      effects.push_back(judged_[index].runs[run]->effect_share);
    }
    const Residual residual = ResidualIn(judged_[index], runs);
    cell.measured = figures.Typical();
    cell.modes = are_modes_predicted_.contains(cell.which) ? std::nullopt : figures.TypicalModes();
    cell.residual_share = std::exp(residual.size) - 1;
    cell.residual_share_interval = SharesOf(residual);
    cell.effect_share = Median(std::move(effects));
    cell.more_s = cell.effect_share * workflow_s_;
  }
  void Decide(size_t index) {
    RequestCell& cell = cells_[cell_of_judged_[index]];
    const JudgedValue& judged = judged_[index];
    std::vector<size_t> tested;
    for (const RequestsInRun& in_run : cell.tested) tested.push_back(in_run.run);
    const std::vector<size_t>& shown = decided_[index].shown;
    Measure(index, shown.empty() ? tested : shown);
    cell.p = shown.empty() ? judged.p : decided_[index].p;
    for (const size_t run : shown) cell.shown_in.push_back(runs_[run].name);
    if (!shown.empty()) {
      cell.verdict = RequestVerdict::kAnomaly;
    } else if (!judged.shown.empty()) {
      cell.verdict = RequestVerdict::kMachineBusy;
    } else if (judged.is_faster) {
      cell.verdict = RequestVerdict::kFaster;
    } else if (!judged.stands) {
      cell.verdict = RequestVerdict::kAsPredicted;
    } else {
      cell.verdict =
          cell.effect_share < kEffectShareMin ? RequestVerdict::kSmall : RequestVerdict::kNotYet;
    }
  }

  const std::vector<SeenRun>& draws_;
  const std::vector<SeenRun>& runs_;
  const double workflow_s_;
  const size_t first_judged_;
  std::vector<RequestCell> cells_;
  std::vector<JudgedValue> judged_;
  std::vector<JudgedValue> decided_;  // Without what the work of others explains.
  std::vector<size_t> cell_of_judged_;
  std::set<RequestClass> are_modes_predicted_;
};

// Waits for an answer from others. Excludes times that another class contains as well.
bool IsWaiting(const RequestClass& which) { return which.component == "mount" && IsJudged(which); }

// Counts a delay where something waits for it, and once more if a node's own work takes it: that
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
  std::vector<Suspect> suspects = {{Part::kProcessor, host}};
  if (component == "mount" && name.starts_with("manager.")) {
    suspects.push_back({Part::kManager, ""});
    suspects.push_back({Part::kLink, host});
    suspects.push_back({Part::kNetwork, ""});
  } else if (!peer.empty()) {
    for (const Part part : {Part::kProcessor, Part::kLink}) suspects.push_back({part, peer});
    suspects.push_back({Part::kLink, host});
    suspects.push_back({Part::kNetwork, ""});
    suspects.push_back({Part::kMounts, ""});
    suspects.push_back({Part::kNode, Asks(which) ? peer : host});
  } else if (component == "manager") {
    return {{Part::kManager, ""}};
  } else if (IsOwnWork(which)) {
    suspects.push_back({Part::kMounts, ""});
    suspects.push_back({Part::kNode, host});
  }
  return suspects;
}

std::string WhoseRequests(const RequestClass& which) {
  const std::string whose =
      fmt::format("'{}' of the {} of {}", which.name, which.component, which.host);
  if (which.peer.empty()) return whose;
  return fmt::format("{}, {} {}", whose, Asks(which) ? "asked of" : "asked by", which.peer);
}

// What to open first for the suspect of the class that explains most of the excess time.
std::string OpenFirst(const RequestClass& which, const std::map<Suspect, double>& evidence) {
  const Suspect* best = nullptr;
  double most = 0;
  const std::vector<Suspect> suspects = SuspectsOf(which);
  for (const Suspect& suspect : suspects) {
    const auto found = evidence.find(suspect);
    if (found == evidence.end() || found->second < kSuspectExplainsMin || found->second <= most)
      continue;
    most = found->second;
    best = &suspect;
  }
  if (best != nullptr) return OpenFirst(*best);
  return fmt::format("{}: the log of its {}, and 'mosa top' during a run", which.host,
                     which.component);
}

}  // namespace

const char* ToText(RequestVerdict verdict) {
  static constexpr const char* kNames[] = {
      "as predicted", "not predicted", "not measured", "too few",      "not judged",
      "faster",       "small",         "not yet",      "machine busy", "anomaly"};
  return kNames[static_cast<size_t>(verdict)];
}

std::vector<RequestCell> CompareRequests(const std::vector<SeenRun>& draws,
                                         const std::vector<SeenRun>& runs, double workflow_s) {
  return RequestComparer(draws, runs, workflow_s).Compare();
}

bool IsJudged(const RequestClass& which) {
  if (which.component == "manager") return IsOwnWork(which);
  return !which.name.starts_with("fuse.") &&
         !(which.component == "storage" && which.name == "read");
}

bool IsOwnWork(const RequestClass& which) {
  if (which.component == "manager") return which.name == "log" || which.name.ends_with(".core");
  return which.component == "storage" && which.name.ends_with(".object");
}

std::string ShowTime(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 100 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

size_t CountOff(const std::vector<RequestCell>& cells) {
  return static_cast<size_t>(std::count_if(cells.begin(), cells.end(), [](const RequestCell& cell) {
    return cell.verdict == RequestVerdict::kAnomaly;
  }));
}

std::map<Suspect, double> RequestEvidence(const std::vector<RequestCell>& cells) {
  std::map<Suspect, double> evidence;
  if (CountOff(cells) == 0) return evidence;
  struct Fit {
    double used_squared = 0, used_off = 0;
  };
  std::map<Suspect, Fit> fits;
  double off_squared = 0;
  for (const RequestCell& cell : cells) {
    if (!IsCounted(cell.which)) continue;
    const std::vector<Suspect> suspects = SuspectsOf(cell.which);
    for (const RequestsInRun& in_run : cell.tested) {
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

void ExplainRequests(std::vector<RequestCell>& cells) {
  const auto evidence = RequestEvidence(cells);
  const auto percent = [](double share) { return fmt::format("{:+.0f} %", share * 100); };
  for (RequestCell& cell : cells) {
    if (cell.verdict != RequestVerdict::kAnomaly) continue;
    cell.sentence = fmt::format(
        "Requests {} took {} on average (median {}, 90th percentile {}), predicted {} ({}, 95 %: "
        "{} to {}), in {} of {} run{}: {:.3f} s more for all {:.0f} requests of a run.",
        WhoseRequests(cell.which), ShowTime(cell.measured.mean_s), ShowTime(cell.measured.median_s),
        ShowTime(cell.measured.p90_s), ShowTime(cell.predicted.mean_s),
        percent(cell.residual_share), percent(cell.residual_share_interval.low),
        percent(cell.residual_share_interval.high), cell.shown_in.size(), cell.tested.size(),
        cell.tested.size() == 1 ? "" : "s", cell.more_s, cell.measured.count);
    if (cell.modes)
      cell.sentence += fmt::format(
          " Their times have two modes, which is not predicted: {}. The slow ones wait for "
          "something with a delay of its own, such as a retry.",
          Say(*cell.modes));
    cell.open_first = OpenFirst(cell.which, evidence);
  }
}

}  // namespace mosa::predict
