#include "predictor/advise/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/units.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

constexpr int kRoundsMax = 3;
// Steps could cycle, since with many draws any of them may be slower now and then.
constexpr size_t kStepsOfClassMax = 4;
constexpr uint32_t kScreenDraws = 2;
// A choice that moves at least this share of the network bytes more is not cheaper.
constexpr double kBytesShareMin = 0.05;
// Smaller differences are not reported.
constexpr double kToldBytes = 1 << 20;
constexpr double kToldSeconds = 0.0005;

// The draws that count: draw 0 alone, or all others.
uint32_t FirstDraw(const AdviseOptions& options) { return options.draws == 0 ? 0 : 1; }
size_t DrawsOf(const AdviseOptions& options) { return options.draws == 0 ? 1 : options.draws; }

// A choice that is slower in this many draws is not faster.
size_t CounterMax(const AdviseOptions& options) {
  return std::max<size_t>(1, BeyondNineOfTen(DrawsOf(options)));
}

bool IsFasterIn(const TrialOutcome& run, const TrialOutcome& other) {
  if (!run.failure.empty()) return false;
  return !other.failure.empty() || run.time < other.time;
}

// Whether this draw contradicts "run is faster". A draw in which both fail says nothing.
bool IsCounter(const TrialOutcome& run, const TrialOutcome& other) {
  return (run.failure.empty() || other.failure.empty()) && !IsFasterIn(run, other);
}

double MedianOr(std::vector<double> values, double otherwise) {
  return values.empty() ? otherwise : Median(std::move(values));
}

// Caches outcomes, and simulates what is missing.
class Trials {
 public:
  Trials(const AdviseOptions& options, const Simulate& simulate)
      : options_(options), simulate_(simulate) {}

  // Simulates the draws that count up to `last`, for each choice.
  Status Fill(const std::vector<HintChoice>& choices, uint32_t last,
              System system = System::kWass) {
    std::vector<Trial> missing;
    for (const HintChoice& choice : choices)
      for (uint32_t draw = FirstDraw(options_); draw <= last; ++draw)
        Ask({choice, system, draw}, missing);
    return Run(missing);
  }
  // Simulates all draws, including draw 0.
  Status FillAll(const HintChoice& choice, System system = System::kWass) {
    std::vector<Trial> missing;
    for (uint32_t draw = 0; draw <= options_.draws; ++draw) Ask({choice, system, draw}, missing);
    return Run(missing);
  }
  const TrialOutcome& At(const HintChoice& choice, uint32_t draw,
                         System system = System::kWass) const {
    return known_.at({choice, system, draw});
  }
  // Draw 0 first. Precondition: FillAll() or a Fill() of all draws has run.
  std::vector<TrialOutcome> DrawsOfChoice(const HintChoice& choice,
                                          System system = System::kWass) const {
    std::vector<TrialOutcome> draws;
    for (uint32_t draw = 0; draw <= options_.draws; ++draw) {
      const auto found = known_.find({choice, system, draw});
      draws.push_back(found == known_.end() ? TrialOutcome() : found->second);
    }
    return draws;
  }
  Gain GainOver(const HintChoice& choice, const HintChoice& other) const {
    return GainOf(DrawsOfChoice(choice), DrawsOfChoice(other), options_);
  }

 private:
  void Ask(const Trial& trial, std::vector<Trial>& missing) {
    if (known_.try_emplace(trial).second) missing.push_back(trial);
  }
  Status Run(const std::vector<Trial>& missing) {
    if (missing.empty()) return OkStatus();
    MOSA_ASSIGN_OR_RETURN(std::vector<TrialOutcome> outcomes, simulate_(missing));
    for (size_t i = 0; i < missing.size(); ++i) known_[missing[i]] = std::move(outcomes[i]);
    return OkStatus();
  }

  const AdviseOptions& options_;
  const Simulate& simulate_;
  std::map<Trial, TrialOutcome> known_;
};

struct Move {
  size_t in_class = 0;
  size_t to = 0;
};

HintChoice With(HintChoice choice, const Move& move) {
  choice[move.in_class] = move.to;
  return choice;
}

class Search {
 public:
  Search(const std::vector<HintClass>& classes, const AdviseOptions& options,
         const Simulate& simulate)
      : classes_(classes), options_(options), trials_(options, simulate) {}

  Result<HintAdvice> Run() {
    HintAdvice advice;
    const HintChoice itself = ByItself(classes_), none(classes_.size(), 0);
    MOSA_RETURN_IF_ERROR(trials_.FillAll(none, System::kDss));
    MOSA_RETURN_IF_ERROR(trials_.FillAll(itself));
    advice.choice = itself;
    for (int round = 0; round < kRoundsMax; ++round) {
      MOSA_ASSIGN_OR_RETURN(const bool better, Improve(advice.choice));
      if (!better && round > 0) break;
      MOSA_RETURN_IF_ERROR(Eliminate(advice.choice));
    }
    MOSA_RETURN_IF_ERROR(trials_.FillAll(advice.choice));
    const auto advised = trials_.DrawsOfChoice(advice.choice);
    const auto unhinted = trials_.DrawsOfChoice(none, System::kDss);
    advice.advised = RunTimeOf(advised, options_);
    advice.unhinted = RunTimeOf(unhinted, options_);
    advice.by_itself = RunTimeOf(trials_.DrawsOfChoice(itself), options_);
    if (advice.advised.draws_failed == DrawsOf(options_))
      return FailedPreconditionError(fmt::format(
          "the run would fail with hints and without hints: {}", advice.advised.failure));
    advice.over_unhinted = GainOf(advised, unhinted, options_);
    advice.over_by_itself = trials_.GainOver(advice.choice, itself);
    for (size_t i = 0; i < classes_.size(); ++i) {
      MOSA_ASSIGN_OR_RETURN(ClassAdvice each, Judge(advice.choice, i));
      advice.classes.push_back(std::move(each));
    }
    return advice;
  }

 private:
  // Returns the moves that make the run faster than `from`. Moves that are not faster in the first
  // draws get no more draws.
  Result<std::vector<Move>> Faster(const HintChoice& from, std::vector<Move> moves) {
    const uint32_t first = FirstDraw(options_);
    for (uint32_t draws = kScreenDraws;; draws *= 2) {
      const uint32_t last = std::min(first == 0 ? 0 : draws, options_.draws);
      MOSA_RETURN_IF_ERROR(trials_.Fill(After(from, moves), last));
      std::erase_if(moves, [&](const Move& move) {
        const HintChoice to = With(from, move);
        size_t counter = 0;
        for (uint32_t draw = first; draw <= last; ++draw)
          counter += IsCounter(trials_.At(to, draw), trials_.At(from, draw)) ? 1 : 0;
        return counter >= CounterMax(options_);
      });
      if (last == options_.draws) break;
    }
    std::erase_if(moves,
                  [&](const Move& move) { return !trials_.GainOver(With(from, move), from).pays; });
    return moves;
  }
  static std::vector<HintChoice> After(const HintChoice& from, const std::vector<Move>& moves) {
    std::vector<HintChoice> choices;
    for (const Move& move : moves) choices.push_back(With(from, move));
    return choices;
  }

  Result<bool> Improve(HintChoice& choice) {
    MOSA_RETURN_IF_ERROR(trials_.Fill({choice}, options_.draws));
    bool better = false;
    for (size_t step = 0; step < kStepsOfClassMax * classes_.size(); ++step) {
      std::vector<Move> moves;
      for (size_t i = 0; i < classes_.size(); ++i)
        for (size_t to = 0; to < classes_[i].alternatives.size(); ++to)
          if (to != choice[i]) moves.push_back({i, to});
      MOSA_ASSIGN_OR_RETURN(moves, Faster(choice, std::move(moves)));
      if (moves.empty()) break;
      MOSA_ASSIGN_OR_RETURN(choice, BestOf(choice, moves));
      better = true;
    }
    return better;
  }
  // Returns the best moves of all classes together, or the single best one. Precondition: `moves`
  // is not empty.
  Result<HintChoice> BestOf(const HintChoice& from, const std::vector<Move>& moves) {
    HintChoice together = from, alone = With(from, moves.front());
    std::map<size_t, Rank> best;
    for (const Move& move : moves) {
      const HintChoice to = With(from, move);
      const Rank rank = RankOf(to);
      const auto [place, is_new] = best.try_emplace(move.in_class, rank);
      if (is_new || rank < place->second) {
        place->second = rank;
        together[move.in_class] = move.to;
      }
      if (rank < RankOf(alone)) alone = to;
    }
    MOSA_RETURN_IF_ERROR(trials_.Fill({together}, options_.draws));
    const bool pays = trials_.GainOver(together, from).pays;
    return pays && RankOf(together) < RankOf(alone) ? together : alone;
  }
  // Failed draws first, then the median; lower is better. Precondition: all draws are known.
  using Rank = std::pair<uint32_t, double>;
  Rank RankOf(const HintChoice& choice) const {
    const RunTime run = RunTimeOf(trials_.DrawsOfChoice(choice), options_);
    return {run.draws_failed, run.median_s};
  }

  // Likewise over the draws up to `last`, with their sum. Precondition: these are known.
  Rank RankInFirst(const HintChoice& choice, uint32_t last) const {
    Rank rank{0, 0};
    for (uint32_t draw = FirstDraw(options_); draw <= last; ++draw) {
      const TrialOutcome& run = trials_.At(choice, draw);
      if (run.failure.empty())
        rank.second += SecondsOf(run.time);
      else
        ++rank.first;
    }
    return rank;
  }

  Status Eliminate(HintChoice& choice) {
    const HintChoice reference = choice;
    MOSA_RETURN_IF_ERROR(trials_.Fill({reference}, options_.draws));
    for (bool changed = true; changed;) {
      changed = false;
      MOSA_ASSIGN_OR_RETURN(const std::vector<size_t> order, ByLoss(choice));
      for (const size_t i : order) {
        for (size_t to = 0; to < choice[i]; ++to) {
          const HintChoice cheaper = With(choice, {i, to});
          MOSA_ASSIGN_OR_RETURN(const bool slower, IsSlower(cheaper, reference));
          if (slower) continue;
          MOSA_RETURN_IF_ERROR(trials_.Fill({choice, cheaper}, options_.draws));
          if (SavesBytes(choice, cheaper)) continue;
          choice = cheaper;
          changed = true;
          break;
        }
      }
    }
    return OkStatus();
  }
  // Classes with hints, by the time of the first draws without them: the smallest loss first.
  Result<std::vector<size_t>> ByLoss(const HintChoice& choice) {
    const uint32_t last = std::min(options_.draws, kScreenDraws * 2);
    std::vector<Move> moves;
    for (size_t i = 0; i < choice.size(); ++i)
      if (choice[i] != 0) moves.push_back({i, 0});
    MOSA_RETURN_IF_ERROR(trials_.Fill(After(choice, moves), last));
    std::vector<std::pair<Rank, size_t>> losses;
    for (const Move& move : moves)
      losses.emplace_back(RankInFirst(With(choice, move), last), move.in_class);
    std::sort(losses.begin(), losses.end());
    std::vector<size_t> order;
    for (const auto& [loss, in_class] : losses) order.push_back(in_class);
    return order;
  }
  // Whether `reference` is faster than `choice`, using as few draws as possible.
  Result<bool> IsSlower(const HintChoice& choice, const HintChoice& reference) {
    const uint32_t first = FirstDraw(options_);
    for (uint32_t draws = kScreenDraws;; draws *= 2) {
      const uint32_t last = std::min(first == 0 ? 0 : draws, options_.draws);
      MOSA_RETURN_IF_ERROR(trials_.Fill({choice}, last));
      size_t counter = 0;
      for (uint32_t draw = first; draw <= last; ++draw)
        counter += IsCounter(trials_.At(reference, draw), trials_.At(choice, draw)) ? 1 : 0;
      if (counter >= CounterMax(options_)) return false;
      if (last == options_.draws) break;
    }
    return trials_.GainOver(reference, choice).pays;
  }

  // Whether `choice` moves at least kBytesShareMin less than `other`, and fails no more often.
  // Precondition: all draws of both are known.
  bool SavesBytes(const HintChoice& choice, const HintChoice& other) const {
    const RunTime run = RunTimeOf(trials_.DrawsOfChoice(other), options_);
    return run.link_bytes > 0 && RankOf(choice).first <= run.draws_failed &&
           trials_.GainOver(choice, other).link_bytes >= kBytesShareMin * run.link_bytes;
  }

  Result<ClassAdvice> Judge(const HintChoice& choice, size_t i) {
    ClassAdvice advice;
    advice.kept = choice[i] != 0;
    if (advice.kept) {
      advice.alternative = choice[i];
      const HintChoice without = With(choice, {i, 0});
      MOSA_RETURN_IF_ERROR(trials_.FillAll(without));
      advice.gain = trials_.GainOver(choice, without);
      const HintClass& of = classes_[i];
      if (!advice.gain.pays && SavesBytes(choice, without))
        advice.reason = "for the network: in time it cannot be told apart";
      else if (!advice.gain.pays)
        advice.reason = "with the others: alone it cannot be told apart";
      else if (of.by_itself != 0 && of.by_itself != choice[i])
        advice.reason = "instead of " + of.alternatives[of.by_itself].text;
      return advice;
    }
    if (classes_[i].alternatives.size() == 1) {
      advice.reason = "none is tried: of all classes they move least";
      return advice;
    }
    MOSA_ASSIGN_OR_RETURN(advice.alternative, LeastBad(choice, i));
    const HintChoice with = With(choice, {i, advice.alternative});
    MOSA_RETURN_IF_ERROR(trials_.FillAll(with));
    advice.gain = trials_.GainOver(with, choice);
    advice.reason = WhyNot(with, advice.gain);
    return advice;
  }
  // The alternative to report for a class without a hint: what `mosa run` uses, or the fastest in
  // the first draws.
  Result<size_t> LeastBad(const HintChoice& choice, size_t i) {
    const HintClass& of = classes_[i];
    if (of.by_itself != 0) return of.by_itself;
    const uint32_t last = std::min(options_.draws, kScreenDraws * 2);
    std::vector<Move> moves;
    for (size_t to = 1; to < of.alternatives.size(); ++to) moves.push_back({i, to});
    MOSA_RETURN_IF_ERROR(trials_.Fill(After(choice, moves), last));
    std::vector<std::pair<Rank, size_t>> ranks;
    for (const Move& move : moves)
      ranks.emplace_back(RankInFirst(With(choice, move), last), move.to);
    return std::min_element(ranks.begin(), ranks.end())->second;
  }
  std::string WhyNot(const HintChoice& with, const Gain& gain) const {
    const RunTime run = RunTimeOf(trials_.DrawsOfChoice(with), options_);
    if (run.draws_failed > 0)
      return fmt::format("the run would fail in {} of {} draws: {}", run.draws_failed,
                         DrawsOf(options_), run.failure);
    const auto within = [&gain](double seconds) {
      return gain.interval_s && gain.interval_s->low >= -seconds &&
             gain.interval_s->high <= seconds;
    };
    std::string why;
    if (within(kToldSeconds) || (!gain.interval_s && std::abs(gain.median_s) <= kToldSeconds))
      why = "makes no difference";
    else if (gain.interval_s ? gain.interval_s->high < 0 : gain.median_s < 0)
      why = fmt::format("takes {:.3f} s more", -gain.median_s);
    else if (gain.interval_s && gain.interval_s->low <= 0)
      why = "within what cannot be told apart";
    else
      why = fmt::format("{:.2f} % of the run, less than {:.2f} % is not worth a rule",
                        gain.share * 100, options_.share_min * 100);
    if (-gain.store_bytes >= kToldBytes)
      why += fmt::format("; holds {} more", HumanBytes(static_cast<int64_t>(-gain.store_bytes)));
    if (-gain.link_bytes >= kToldBytes)
      why += fmt::format("; moves {} more", HumanBytes(static_cast<int64_t>(-gain.link_bytes)));
    return why;
  }

  const std::vector<HintClass>& classes_;
  const AdviseOptions& options_;
  Trials trials_;
};

}  // namespace

TrialOutcome TrialOutcomeOf(const Prediction& prediction) {
  TrialOutcome outcome;
  outcome.time = prediction.turnaround;
  outcome.computing = prediction.computing;
  outcome.failure = prediction.failure.value_or("");
  for (const PredictedMachine& machine : prediction.machines) {
    outcome.link_bytes += machine.link.sent_in_all();
    outcome.store_bytes += machine.store_bytes_max;
  }
  return outcome;
}

RunTime RunTimeOf(const std::vector<TrialOutcome>& draws, const AdviseOptions& options) {
  RunTime run;
  run.measured_s = SecondsOf(draws.front().time);
  run.failure = draws.front().failure;
  std::vector<double> seconds, intervals, link_bytes, store_bytes;
  for (size_t draw = FirstDraw(options); draw < draws.size(); ++draw) {
    const TrialOutcome& outcome = draws[draw];
    if (!outcome.failure.empty()) {
      ++run.draws_failed;
      if (run.failure.empty()) run.failure = outcome.failure;
      continue;
    }
    seconds.push_back(SecondsOf(outcome.time));
    intervals.push_back(outcome.seconds_off());
    link_bytes.push_back(static_cast<double>(outcome.link_bytes));
    store_bytes.push_back(static_cast<double>(outcome.store_bytes));
  }
  run.median_s = MedianOr(std::move(seconds), run.measured_s);
  run.interval_s = NineOfTen(std::move(intervals));
  run.link_bytes = MedianOr(std::move(link_bytes), 0);
  run.store_bytes = MedianOr(std::move(store_bytes), 0);
  return run;
}

Gain GainOf(const std::vector<TrialOutcome>& run, const std::vector<TrialOutcome>& other,
            const AdviseOptions& options) {
  Gain gain;
  std::vector<double> seconds, intervals, others, link_bytes, store_bytes;
  size_t counter = 0, alone = 0;
  for (size_t draw = FirstDraw(options); draw < run.size(); ++draw) {
    const bool well = run[draw].failure.empty(), other_well = other[draw].failure.empty();
    if (!well && !other_well) continue;
    counter += IsFasterIn(run[draw], other[draw]) ? 0 : 1;
    alone += well && !other_well ? 1 : 0;
    if (!well || !other_well) continue;
    const auto less = [](uint64_t a, uint64_t b) {
      return static_cast<double>(b) - static_cast<double>(a);
    };
    seconds.push_back(SecondsOf(other[draw].time) - SecondsOf(run[draw].time));
    intervals.push_back(other[draw].seconds_off() - run[draw].seconds_off());
    others.push_back(SecondsOf(other[draw].time));
    link_bytes.push_back(less(run[draw].link_bytes, other[draw].link_bytes));
    store_bytes.push_back(less(run[draw].store_bytes, other[draw].store_bytes));
  }
  const size_t counted = seconds.size() + alone;
  const double of_other = MedianOr(std::move(others), 0);
  gain.median_s = MedianOr(std::move(seconds), 0);
  gain.share = of_other > 0 ? gain.median_s / of_other : 0;
  gain.interval_s = NineOfTen(std::move(intervals));
  gain.link_bytes = MedianOr(std::move(link_bytes), 0);
  gain.store_bytes = MedianOr(std::move(store_bytes), 0);
  // Ending well where the other fails is worth a rule, whatever the time.
  gain.pays = counted >= std::min<size_t>(DrawsOf(options), kDrawsMin) &&
              counter < CounterMax(options) && (alone > 0 || gain.share >= options.share_min);
  return gain;
}

Result<HintAdvice> FindHints(const std::vector<HintClass>& classes, const AdviseOptions& options,
                             const Simulate& simulate) {
  return Search(classes, options, simulate).Run();
}

}  // namespace mosa::predict
