#include "predictor/compare/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "predictor/compare/statistics.h"
#include "predictor/model/draws.h"

namespace mosa::predict {
namespace {

// Student's t with few degrees of freedom: heavy tails for features that the model has wrong.
constexpr double kDegrees = 4;
// The runs' own spread counts as if it had been seen in so many steps between runs.
constexpr double kRunDegrees = 6;
// Suspicions that are simulated at more than one size.
constexpr size_t kRefined = 10;
// A pair must be this much more likely than the best single suspicion, as a logarithm.
constexpr double kPairGainMin = 15;
constexpr size_t kPairsTried = 6;
// Where tasks follow files, these lie differently in every sound run: knowing where gains up to 60.
// That files lie in bad places though the same tasks would take no longer elsewhere, needs more.
constexpr double kPlacesGainMin = 100;
double LogDensity(double error) {
  return -(kDegrees + 1) / 2 * std::log1p(error * error / kDegrees);
}

// One feature of the runs beside its prediction.
struct Beside {
  Feature feature;
  double measured = 0;
  double predicted = 0;  // With what sound runs have taught,
  double taught = 0;     // and that alone.
  double scale = 1;      // The standard error of the difference.
};

double SquaresOf(const std::vector<double>& places) {
  return places.size() < 2 ? 0 : VarianceOf(places) * (static_cast<double>(places.size()) - 1);
}

// The features of replays of some runs, by run; nothing where a replay fails.
using Replays = std::map<size_t, Features>;

class Evidence {
 public:
  Evidence(const std::vector<Features>& drawn, const std::map<size_t, Features>& seen,
           const DiagnosisQuestion& question)
      : question_(question) {
    std::map<Feature, std::vector<double>> places;
    for (const Features& draw : drawn)
      for (const auto& [feature, place] : draw) places[feature].push_back(place);
    for (const auto& [feature, of_draws] : places)
      if (of_draws.size() >= 2) Add(feature, VarianceOf(of_draws), seen);
  }

  const std::vector<Beside>& all() const { return all_; }

  // By how much replays with suspicions differ from those without, by feature.
  std::vector<double> ShiftOf(const Replays& replays) const {
    std::vector<double> shift;
    for (const Beside& beside : all_) {
      std::vector<double> differences;
      for (const auto& [run, features] : replays) {
        const auto with = PlaceIn(features, beside.feature);
        const auto without = PlaceIn(AsRan(run), beside.feature);
        if (with && without) differences.push_back(*with - *without);
      }
      shift.push_back(differences.empty() ? 0 : MeanOf(differences));
    }
    return shift;
  }
  // How likely the runs are if the prediction moves by so much in each feature.
  double LikelihoodOf(const std::vector<double>& shift) const {
    double sum = 0;
    for (size_t i = 0; i < all_.size(); ++i) sum += LogDensity(ErrorOf(i, shift[i]));
    return sum;
  }
  double GainOf(size_t index, double shift) const {
    return LogDensity(ErrorOf(index, shift)) - LogDensity(ErrorOf(index, 0));
  }

 private:
  const Features& AsRan(size_t run) const { return question_.replayed.at(run).features; }
  // The differences of these runs from their replays.
  std::vector<double> OffIn(const Feature& feature, const std::map<size_t, Features>& seen,
                            const std::vector<size_t>& runs) const {
    std::vector<double> off;
    for (const size_t run : runs) {
      const auto measured = PlaceIn(seen.at(run), feature);
      const auto replayed = PlaceIn(AsRan(run), feature);
      if (measured && replayed) off.push_back(*measured - *replayed);
    }
    return off;
  }
  void Add(const Feature& feature, double of_draws, const std::map<size_t, Features>& seen) {
    const std::vector<double> shown = OffIn(feature, seen, question_.shown);
    if (shown.empty()) return;
    const std::vector<double> before = OffIn(feature, seen, question_.before);
    const double usual = UsualSpreadOf(feature), model = ModelErrorOf(feature);
    const double degrees = kRunDegrees + static_cast<double>(shown.size() - 1) +
                           static_cast<double>(before.empty() ? 0 : before.size() - 1);
    const double of_runs =
        (kRunDegrees * (usual * usual + of_draws) + SquaresOf(shown) + SquaresOf(before)) / degrees;
    const double of_prediction = of_draws + model * model;
    Beside beside{feature, PlaceOf(feature, seen), 0, 1};
    double left = of_prediction, bias = 0;
    if (!before.empty()) {
      // What sound runs show far from their prediction widens it.
      const double off = MeanOf(before);
      const double widened =
          std::max(of_prediction, (kDegrees * of_prediction + off * off) / (kDegrees + 1));
      const double of_mean = of_runs / static_cast<double>(before.size());
      const double weight = widened / (widened + of_mean);
      bias = weight * off;
      left = widened * (1 - weight);
    }
    beside.predicted = beside.measured - MeanOf(shown) + bias;
    beside.taught = bias;
    // Replays differ by chance as well.
    beside.scale = std::sqrt(left + (of_runs + of_draws) / static_cast<double>(shown.size()));
    all_.push_back(beside);
  }
  // As measured.
  double PlaceOf(const Feature& feature, const std::map<size_t, Features>& seen) const {
    std::vector<double> places;
    for (const size_t run : question_.shown)
      if (const auto found = PlaceIn(seen.at(run), feature); found && PlaceIn(AsRan(run), feature))
        places.push_back(*found);
    return MeanOf(places);
  }
  double ErrorOf(size_t index, double shift) const {
    const Beside& beside = all_[index];
    return (beside.measured - beside.predicted - shift) / beside.scale;
  }

  const DiagnosisQuestion& question_;
  std::vector<Beside> all_;
};

// How many of the bytes that tasks read and wrote lay on other nodes.
double DistanceOf(const SeenRun& run, const SeenRun& replayed) {
  double bytes = 0;
  const auto add = [&bytes](const BytesByNodeName& here, const BytesByNodeName& there) {
    for (const auto& [node, count] : here) {
      const auto found = there.find(node);
      const uint64_t other = found == there.end() ? 0 : found->second;
      bytes += static_cast<double>(count > other ? count - other : 0);
    }
  };
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    add(run.tasks[i].read, replayed.tasks[i].read);
    add(run.tasks[i].written, replayed.tasks[i].written);
  }
  return bytes;
}

struct Candidate {
  std::vector<Suspicion> suspicions;
  std::vector<double> shift;  // By feature of the evidence.
  double likelihood = 0;
};

class Diagnoser {
 public:
  Diagnoser(const Workflow& workflow, const DiagnosisQuestion& question, const Replay& replay,
            const Evidence& evidence, double drawn_s)
      : workflow_(workflow),
        question_(question),
        replay_(replay),
        evidence_(evidence),
        drawn_s_(drawn_s) {}

  std::vector<Diagnosis> Diagnose() {
    nothing_likelihood_ = evidence_.LikelihoodOf(std::vector<double>(evidence_.all().size(), 0));
    std::vector<Candidate> first = BestOfEach(Simulated(WithFirstSizes({}, question_.suspicions)));
    KeepBest(kRefined, first);
    const std::vector<Candidate> best = Refined(std::move(first));
    std::vector<Diagnosis> found;
    if (!best.empty())
      if (const auto pair = BestPair(best); pair && pair->likelihood > nothing_likelihood_)
        found.push_back(DiagnosisOf(*pair));
    for (const Candidate& candidate : best)
      if (candidate.likelihood > nothing_likelihood_) found.push_back(DiagnosisOf(candidate));
    return found;
  }

 private:
  // These, each beside `known` and with several sizes.
  static std::vector<std::vector<Suspicion>> WithFirstSizes(
      const std::vector<Suspicion>& known, const std::vector<Suspicion>& suspicions) {
    std::vector<std::vector<Suspicion>> all;
    for (const Suspicion& suspicion : suspicions) {
      for (const double size : FirstSizesOf(suspicion.how)) {
        all.push_back(known);
        all.back().push_back({suspicion.how, suspicion.at, size});
      }
    }
    return all;
  }
  // One candidate for each; without those whose replays all fail.
  std::vector<Candidate> Simulated(const std::vector<std::vector<Suspicion>>& asked) const {
    std::vector<ReplayOf> wanted;
    for (const auto& suspicions : asked)
      for (const size_t run : question_.shown)
        wanted.push_back({run, question_.replayed.at(run).seed, true, suspicions});
    const auto replays = replay_(wanted);
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < asked.size(); ++i) {
      Replays features;
      for (size_t k = 0; k < question_.shown.size(); ++k)
        if (const auto& replay = replays[i * question_.shown.size() + k])
          features.emplace(question_.shown[k], FeaturesOf(workflow_, *replay));
      if (features.empty()) continue;
      Candidate candidate{asked[i], evidence_.ShiftOf(features), 0};
      candidate.likelihood = evidence_.LikelihoodOf(candidate.shift);
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }
  static void KeepBest(size_t count, std::vector<Candidate>& candidates) {
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.likelihood > b.likelihood; });
    if (candidates.size() > count) candidates.resize(count);
  }
  // Simulates larger and smaller sizes of the last suspicions, by ever smaller steps.
  std::vector<Candidate> Refined(std::vector<Candidate> best) const {
    for (const double step : {1.8, 1.35, 1.35, 1.15}) {
      std::vector<std::vector<Suspicion>> asked;
      for (const Candidate& candidate : best) {
        if (IsWhole(candidate.suspicions.back().how)) continue;
        for (const double times : {1 / step, step}) {
          asked.push_back(candidate.suspicions);
          asked.back().back().size *= times;
        }
      }
      for (Candidate& candidate : Simulated(asked)) best.push_back(std::move(candidate));
      best = BestOfEach(best);
    }
    KeepBest(kDiagnosesMax, best);
    return best;
  }
  // The most likely size of each suspicion.
  static std::vector<Candidate> BestOfEach(const std::vector<Candidate>& tried) {
    std::map<std::pair<SlowBy, std::string>, Candidate> best;
    for (const Candidate& candidate : tried) {
      const Suspicion& last = candidate.suspicions.back();
      const auto [found, is_new] = best.try_emplace({last.how, last.at}, candidate);
      if (!is_new && candidate.likelihood > found->second.likelihood) found->second = candidate;
    }
    std::vector<Candidate> all;
    for (auto& [which, candidate] : best) all.push_back(std::move(candidate));
    return all;
  }
  // The best suspicion and another one, if they explain much more together.
  std::optional<Candidate> BestPair(const std::vector<Candidate>& singles) const {
    const Candidate& first = singles.front();
    const Suspicion& one = first.suspicions.front();
    std::vector<Suspicion> others;
    for (const Suspicion& second : question_.suspicions)
      if (SuspectOf(second) != SuspectOf(one)) others.push_back(second);
    std::vector<Candidate> pairs = BestOfEach(Simulated(WithFirstSizes({one}, others)));
    KeepBest(kPairsTried, pairs);
    pairs = Refined(std::move(pairs));
    if (pairs.empty() || pairs.front().likelihood < first.likelihood + kPairGainMin)
      return std::nullopt;
    return pairs.front();
  }

  Diagnosis DiagnosisOf(const Candidate& candidate) const {
    Diagnosis diagnosis;
    diagnosis.suspicions = candidate.suspicions;
    diagnosis.gain = candidate.likelihood - nothing_likelihood_;
    for (size_t i = 0; i < evidence_.all().size(); ++i) {
      const Beside& beside = evidence_.all()[i];
      Witness witness{beside.feature, AmountOf(beside.feature, beside.measured),
                      AmountOf(beside.feature, beside.predicted),
                      AmountOf(beside.feature, beside.predicted + candidate.shift[i]),
                      evidence_.GainOf(i, candidate.shift[i])};
      if (beside.feature.of == FeatureOf::kWorkflow) {
        diagnosis.predicted_s = witness.predicted;
        diagnosis.drawn_s = drawn_s_ * std::exp(beside.taught);
        diagnosis.replayed_s = witness.replayed;
        diagnosis.measured_s = witness.measured;
      }
      diagnosis.witnesses.push_back(std::move(witness));
    }
    std::stable_sort(diagnosis.witnesses.begin(), diagnosis.witnesses.end(),
                     [](const Witness& a, const Witness& b) { return a.gain > b.gain; });
    return diagnosis;
  }

  const Workflow& workflow_;
  const DiagnosisQuestion& question_;
  const Replay& replay_;
  const Evidence& evidence_;
  const double drawn_s_;
  double nothing_likelihood_ = 0;
};

// Where files lie, if that makes the runs longer than they would be otherwise.
std::optional<Diagnosis> DiagnosisOfPlaces(const Evidence& evidence, const Replays& elsewhere,
                                           double drawn_s) {
  if (elsewhere.empty()) return std::nullopt;
  const std::vector<double> shift = evidence.ShiftOf(elsewhere);
  Diagnosis places;
  places.suspicions = {{SlowBy::kPlaces, "", 1}};
  places.gain =
      evidence.LikelihoodOf(std::vector<double>(shift.size(), 0)) - evidence.LikelihoodOf(shift);
  for (size_t i = 0; i < shift.size(); ++i) {
    const Beside& beside = evidence.all()[i];
    Witness witness{beside.feature, AmountOf(beside.feature, beside.measured),
                    AmountOf(beside.feature, beside.predicted + shift[i]),
                    AmountOf(beside.feature, beside.predicted), -evidence.GainOf(i, shift[i])};
    if (beside.feature.of == FeatureOf::kWorkflow) {
      places.predicted_s = witness.predicted;
      places.drawn_s = drawn_s * std::exp(beside.taught);
      places.replayed_s = witness.replayed;
      places.measured_s = witness.measured;
    }
    places.witnesses.push_back(std::move(witness));
  }
  std::ranges::stable_sort(places.witnesses, std::ranges::greater(), &Witness::gain);
  const bool is_faster = places.predicted_s < places.replayed_s;
  if (places.gain < (is_faster ? 0 : kPlacesGainMin)) return std::nullopt;
  return places;
}

}  // namespace

size_t ReplaysOf(const std::vector<Suspicion>& suspicions) {
  size_t sizes = 0;
  for (const Suspicion& suspicion : suspicions) sizes += FirstSizesOf(suspicion.how).size();
  return 2 * sizes + 8 * (kRefined + kPairsTried);
}

std::map<size_t, RunReplayed> ReplayRuns(const Workflow& workflow, const std::vector<SeenRun>& runs,
                                         const std::vector<size_t>& which, const Replay& replay) {
  std::vector<ReplayOf> wanted;
  for (const size_t run : which)
    for (uint64_t seed = 1; seed <= kSeedsTried; ++seed) wanted.push_back({run, seed, true, {}});
  const auto replays = replay(wanted);
  std::map<size_t, RunReplayed> best;
  std::map<size_t, double> distances;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!replays[i]) continue;
    const size_t run = wanted[i].run;
    const double distance = DistanceOf(runs[run], *replays[i]);
    if (distances.contains(run) && distance >= distances[run]) continue;
    distances[run] = distance;
    best[run] = {wanted[i].seed, FeaturesOf(workflow, *replays[i])};
  }
  return best;
}

std::vector<Diagnosis> Diagnose(const Workflow& workflow, const std::vector<SeenRun>& draws,
                                const std::vector<SeenRun>& runs, const DiagnosisQuestion& question,
                                const Replay& replay) {
  std::map<size_t, Features> seen;
  for (const std::vector<size_t>* which : {&question.shown, &question.before})
    for (const size_t run : *which) seen.emplace(run, FeaturesOf(workflow, runs[run]));
  std::vector<Features> drawn;
  std::vector<double> drawn_s;
  for (const SeenRun& draw : draws) {
    drawn.push_back(FeaturesOf(workflow, draw));
    if (const auto place = PlaceIn(drawn.back(), Feature{}))
      drawn_s.push_back(AmountOf(Feature{}, *place));
  }
  if (drawn_s.empty()) return {};
  const double typical_s = Median(std::move(drawn_s));
  const Evidence evidence(drawn, seen, question);
  std::vector<Diagnosis> found =
      Diagnoser(workflow, question, replay, evidence, typical_s).Diagnose();
  std::vector<ReplayOf> elsewhere;
  for (const size_t run : question.shown)
    elsewhere.push_back({run, question.replayed.at(run).seed, false, {}});
  const auto unplaced = replay(elsewhere);
  Replays features;
  for (size_t i = 0; i < elsewhere.size(); ++i)
    if (unplaced[i]) features.emplace(elsewhere[i].run, FeaturesOf(workflow, *unplaced[i]));
  if (const auto places = DiagnosisOfPlaces(evidence, features, typical_s))
    found.insert(
        std::ranges::upper_bound(found, places->gain, std::ranges::greater(), &Diagnosis::gain),
        *places);
  return found;
}

}  // namespace mosa::predict
