#include "predictor/compare/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/units.h"
#include "predictor/compare/request_cells.h"
#include "predictor/compare/suspect.h"

namespace mosa::predict {
namespace {

// A part that explains less than this share of the delay is no cause.
constexpr double kExplainedShareMin = 0.25;
// A cause that is less likely than the best by more than this, as a logarithm, is not mentioned.
constexpr double kNearlyAsLikely = 3;
constexpr size_t kWitnessesMax = 3;
// The best suspicion gains less than this where nothing is wrong. What it gains beyond counts for a
// fraction, since features of one cause are not independent; so does what it gains less. Neither
// decides alone.
constexpr double kGainOfChance = 12;
constexpr double kGainCounted = 0.3;
constexpr double kGainCountedMin = -1.5, kGainCountedMax = 6;

// What is slow about the part, as the subject of a sentence.
std::string HowSlow(const Suspicion& suspicion) {
  const std::string size = SizeInWords(suspicion);
  switch (suspicion.how) {
    case SlowBy::kLink:
      return fmt::format("each byte takes {} there, both ways", size);
    case SlowBy::kLinkOut:
      return fmt::format("each byte that leaves takes {}", size);
    case SlowBy::kLinkIn:
      return fmt::format("each byte that arrives takes {}", size);
    case SlowBy::kWay:
      return fmt::format("what travels from and to it arrives {}", size);
    case SlowBy::kCores:
      return fmt::format("all that its cores do takes {}", size);
    case SlowBy::kTasks:
      return fmt::format("what tasks compute there takes {}", size);
    case SlowBy::kNodeWait:
      return fmt::format("it answers requests {}", size);
    case SlowBy::kObjects:
      return fmt::format("its objects are read and written as from a disk of {}", size);
    case SlowBy::kNodePause:
    case SlowBy::kMountPause:
    case SlowBy::kManagerPause:
      return fmt::format("it stands still {}", size);
    case SlowBy::kMountWait:
      return fmt::format("it answers the kernel {}", size);
    case SlowBy::kNoPages:
      return "pages of other hosts' files are not kept";
    case SlowBy::kManagerWait:
      return fmt::format("it answers requests {}", size);
    case SlowBy::kManagerWork:
      return fmt::format("each of its decisions ends {} and holds the others", size);
    case SlowBy::kManagerLog:
      return fmt::format("each write to its database ends {}", size);
    case SlowBy::kLinks:
      return fmt::format("each byte takes {} on all links", size);
    case SlowBy::kWays:
      return fmt::format("what travels between hosts arrives {}", size);
    case SlowBy::kComputing:
      return suspicion.at.empty()
                 ? fmt::format("tasks compute {}", size)
                 : fmt::format("tasks of stage '{}' compute {}", suspicion.at, size);
    case SlowBy::kLaunch:
      return fmt::format("programs take {} to start", size);
    case SlowBy::kMounts:
      return fmt::format("moving bytes takes {}", size);
    case SlowBy::kPlaces:
      return "on other nodes than predicted, or in chunks of another size";
  }
  return "";
}

std::string NameOf(const Suspicion& suspicion) {
  if (suspicion.how == SlowBy::kComputing && !suspicion.at.empty())
    return fmt::format("computing in stage '{}'", suspicion.at);
  return Describe(SuspectOf(suspicion));
}

std::string SayRequests(const RequestClass& which) {
  const auto& [component, name, host, peer] = which;
  if (component == "manager")
    return name == "log" ? "all writes to the manager's database" : "all decisions of the manager";
  if (name == "copy.read") return fmt::format("all copies that {} fetched", host);
  if (component == "storage") return fmt::format("all writing of objects on {}", host);
  if (name == "manager") return fmt::format("all requests of the mount of {} to the manager", host);
  const char* const what = name == "node.read" ? "reads" : "writes";
  if (peer.empty()) return fmt::format("all {} of the mount of {} on other nodes", what, host);
  if (!host.empty()) return fmt::format("all {} of the mount of {} on {}", what, host, peer);
  return fmt::format("all {} on {} by mounts of other hosts", what, peer);
}

std::string SayWhat(const Feature& feature) {
  const auto& [component, name, host, peer] = feature.which;
  switch (feature.of) {
    case FeatureOf::kWorkflow:
      return "the workflow";
    case FeatureOf::kTasks:
      return fmt::format("tasks of '{}' on {}", name, host);
    case FeatureOf::kOwn:
      return fmt::format("processor time of tasks of '{}'", name);
    case FeatureOf::kStart:
      return fmt::format("waits before tasks of '{}'", name);
    case FeatureOf::kRequests:
      return SayRequests(feature.which);
    case FeatureOf::kFetched:
      return fmt::format("bytes that the mount of {} fetched", host);
  }
  return "";
}

std::string Amount(const Feature& feature, double amount) {
  if (feature.of == FeatureOf::kFetched) return HumanBytes(static_cast<int64_t>(amount));
  return ShowTime(amount);
}

std::string Say(const Witness& witness) {
  return fmt::format("{}: {}; predicted {}, replayed {}", SayWhat(witness.feature),
                     Amount(witness.feature, witness.measured),
                     Amount(witness.feature, witness.predicted),
                     Amount(witness.feature, witness.replayed));
}

// What the workflow would have taken without it. The delay may not be in what tasks did, but in
// where they were: the scheduler avoids what is slow, and follows files to bad places.
enum class Explained : uint8_t { kNot, kAsItRan, kAsItWasPlaced };
Explained ExplainedBy(const Diagnosis& diagnosis) {
  const auto explains = [&diagnosis](double without_s) {
    const double more_s = diagnosis.measured_s - without_s;
    return without_s > 0 && more_s > 0 &&
           diagnosis.replayed_s - without_s >= kExplainedShareMin * more_s;
  };
  if (diagnosis.gain > 0 && explains(diagnosis.predicted_s)) return Explained::kAsItRan;
  if (diagnosis.gain >= kGainOfChance && explains(diagnosis.drawn_s))
    return Explained::kAsItWasPlaced;
  return Explained::kNot;
}

Cause CauseOf(const Diagnosis& diagnosis) {
  Cause cause;
  cause.gain = diagnosis.gain;
  const double expected_s =
      ExplainedBy(diagnosis) == Explained::kAsItRan ? diagnosis.predicted_s : diagnosis.drawn_s;
  cause.without_s = diagnosis.measured_s * expected_s / diagnosis.replayed_s;
  std::vector<std::string> parts;
  for (const Suspicion& suspicion : diagnosis.suspicions) {
    cause.suspects.push_back(SuspectOf(suspicion));
    parts.push_back(fmt::format("{} ({})", NameOf(suspicion), HowSlow(suspicion)));
  }
  cause.sentence = fmt::format(
      "{}: a replay with this takes {:.3f} s; without it, the runs would have taken {:.3f} s.",
      fmt::join(parts, " and "), diagnosis.replayed_s, cause.without_s);
  for (const Witness& witness : diagnosis.witnesses)
    if (witness.gain > 0 && witness.feature.of != FeatureOf::kWorkflow &&
        cause.witnesses.size() < kWitnessesMax)
      cause.witnesses.push_back(Say(witness));
  std::vector<std::string> open_first;
  for (const Suspect& suspect : cause.suspects) open_first.push_back(OpenFirst(suspect));
  cause.open_first = fmt::format("{}", fmt::join(open_first, "; and "));
  return cause;
}

bool IsNearlyBest(const Diagnosis& diagnosis, const std::vector<Diagnosis>& all) {
  return diagnosis.gain >= all.front().gain - kNearlyAsLikely;
}

// What the best suspicion adds to the evidence of the runs' times; none, if nothing was replayed.
double EvidenceOf(const std::vector<Diagnosis>& diagnoses, bool is_replayed) {
  if (!is_replayed) return 0;
  double gain = 0;
  for (const Diagnosis& diagnosis : diagnoses)
    if (IsNearlyBest(diagnosis, diagnoses) && ExplainedBy(diagnosis) != Explained::kNot)
      gain = std::max(gain, diagnosis.gain);
  return std::clamp(kGainCounted * (gain - kGainOfChance), kGainCountedMin, kGainCountedMax);
}

}  // namespace

Finding FindingOf(const Detection& detection, const std::vector<Diagnosis>& diagnoses,
                  bool is_replayed, const std::vector<std::string>& runs) {
  Finding finding;
  if (detection.shown.empty()) return finding;
  finding.is_replayed = is_replayed;
  finding.evidence = detection.evidence + EvidenceOf(diagnoses, is_replayed);
  finding.is_slower = detection.may_be_slower() && finding.evidence >= kEvidenceMin;
  const size_t shown = detection.shown.size();
  const bool is_over =
      detection.excess_share >= kExcessMin && detection.last_excess_share < kExcessMin;
  finding.sentence =
      fmt::format("The last {} took {:.3f} s, expected {:.3f} s ({:+.0f} %){}.",
                  shown == 1 ? fmt::format("of {} runs", runs.size())
                             : fmt::format("{} of {} runs", shown, runs.size()),
                  detection.measured_s, detection.expected_s, 100 * detection.excess_share,
                  finding.is_slower ? fmt::format(", since {}", runs[detection.shown.front()])
                  : is_over         ? ", but the last of them no longer than expected"
                                    : "");
  std::set<std::string> known;
  for (const Diagnosis& diagnosis : diagnoses) {
    if (!IsNearlyBest(diagnosis, diagnoses)) break;
    if (ExplainedBy(diagnosis) == Explained::kNot) continue;
    std::string names;
    for (const Suspicion& suspicion : diagnosis.suspicions) names += NameOf(suspicion) + ", ";
    if (known.insert(names).second) finding.causes.push_back(CauseOf(diagnosis));
  }
  return finding;
}

}  // namespace mosa::predict
