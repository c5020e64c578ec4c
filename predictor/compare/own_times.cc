#include "predictor/compare/own_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/model/session.h"
#include "predictor/compare/statistics.h"
#include "predictor/model/student_t.h"

namespace mosa::predict {
namespace {

// Minimum shares: of the tasks' excess time that mounts waited, and of the tasks' deviation that
// the part explains. A part that mounts waited for during half of the excess need not explain how
// tasks used it.
constexpr double kShareMin = 0.25;
constexpr double kShareEnough = 0.5;
// A starved host slows everything that it does by about the same factor.
constexpr double kAsMuchLonger = 4;
// How well the hosts whose mounts waited match those whose tasks took longer: a squared cosine.
constexpr double kAlikeMin = 0.5;
constexpr double kChance = 0.01;
constexpr double kFactorMin = 1.25;
constexpr double kAsOthersMax = 1.15;
// The upper end of the 95 % interval, for a part that certainly takes no longer.
constexpr double kSurelyAsOthersMax = 1.25;
// The least uncertainty of how alike two hosts are.
constexpr double kSurest = 0.1;
// Compared with those to any other node.
constexpr double kConnectionsFactorMin = 3;
// Lost packets: minimum share of a host's requests, and factor over those between other hosts.
constexpr double kLostShareMin = 0.1;
constexpr double kLostFactorMin = 3;
// The other direction is slow as well if its logarithm is at least this share of this one's.
constexpr double kBothWays = 0.5;

// Requests of a mount to a node in one run, compared with the prediction.
struct Asked {
  std::string name, host, peer;
  size_t run = 0;
  double all_s = 0;
  double place = 0;  // ln(measured / predicted).
};

// How many times as long some requests took as those between others.
struct Times {
  bool is_known = false;
  double place = 0;
  double most = 0;  // Upper end of the 95 % interval.
  double p = 1;
  double factor() const { return std::exp(place); }
};

bool IsConnection(const RequestClass& which) {
  return which.component == "mount" && which.name == "node.connect";
}
bool IsResent(const RequestClass& which) {
  return which.component == "mount" && which.name == "node.resent";
}
bool IsAskedOfANode(const RequestClass& which) {
  return which.component == "mount" && which.name.starts_with("node.") && !which.peer.empty() &&
         !IsConnection(which) && !IsResent(which);
}
bool IsANodesOwn(const RequestClass& which) {
  return which.component == "storage" && IsOwnWork(which);
}

std::vector<Asked> AskedOf(const AskedRequests& requests, bool (*is_asked)(const RequestClass&)) {
  std::vector<Asked> all;
  for (const RequestCell& cell : requests.cells) {
    const RequestClass& which = cell.which;
    if (!is_asked(which) || cell.predicted.count <= 0) continue;
    for (const size_t run : requests.asked_runs) {
      const RequestTimes& of_run = requests.runs[run].requests;
      const auto seen = of_run.find(which);
      if (seen == of_run.end() || seen->second.count == 0) continue;
      all.push_back({which.name, which.host, which.peer, run, seen->second.seconds,
                     std::log((MeanOf(seen->second) + kSmallRequestSeconds) /
                              (cell.predicted.mean_s + kSmallRequestSeconds))});
    }
  }
  return all;
}

std::set<std::string> PeersOf(const std::vector<Asked>& all) {
  std::set<std::string> peers;
  for (const Asked& asked : all) peers.insert(asked.peer);
  return peers;
}
// Hosts that ask nodes, or whose nodes are asked.
std::set<std::string> HostsAsked(const AskedRequests& requests) {
  std::set<std::string> hosts;
  for (const RequestCell& cell : requests.cells)
    if (IsAskedOfANode(cell.which)) hosts.insert({cell.which.host, cell.which.peer});
  return hosts;
}
// A truncated record does not say which rows it dropped, so its requests cannot be attributed.
bool KnowAllRequests(const AskedRequests& requests) {
  return std::ranges::all_of(requests.asked_runs,
                             [&](size_t run) { return requests.runs[run].knows_all_requests; });
}

// Subtracts from each the mean of its class and run between hosts other than `host`; drops those
// without such a mean.
std::vector<Asked> BesideOthers(const std::vector<Asked>& all, const std::string& host) {
  std::map<std::pair<std::string, size_t>, std::vector<double>> elsewhere;
  for (const Asked& asked : all)
    if (asked.host != host && asked.peer != host)
      elsewhere[{asked.name, asked.run}].push_back(asked.place);
  std::vector<Asked> beside;
  for (Asked asked : all) {
    const auto others = elsewhere.find({asked.name, asked.run});
    if (others == elsewhere.end() || others->second.size() < 2) continue;
    asked.place -= MeanOf(others->second);
    beside.push_back(std::move(asked));
  }
  return beside;
}

Times TimesOf(const std::vector<double>& with, const std::vector<double>& without) {
  if (with.size() < 2 || without.size() < 3) return {};
  const double of_with = VarianceOf(with) / static_cast<double>(with.size());
  const double of_without = VarianceOf(without) / static_cast<double>(without.size());
  const double by_chance = of_with + of_without;
  const double whole = by_chance + kSurest * kSurest;
  const double parts = of_with * of_with / static_cast<double>(with.size() - 1) +
                       of_without * of_without / static_cast<double>(without.size() - 1);
  Times times;
  times.is_known = true;
  times.place = MeanOf(with) - MeanOf(without);
  constexpr double kDegreesMax = 1000;
  const auto degrees_of = [&](double variance) {
    return parts > 0 ? std::clamp(variance * variance / parts, 1.0, kDegreesMax) : kDegreesMax;
  };
  times.p = StudentTail(times.place / std::sqrt(whole), degrees_of(whole));
  times.most = times.place + StudentT95(degrees_of(by_chance)) * std::sqrt(by_chance);
  return times;
}

// A host compared with the others.
struct BesideHost {
  std::string host;
  Times asked, asking, either;
  std::map<std::string, double> waited_s;  // Excess, by the host whose mount asked.
  // As for a slow link.
  bool is_both_ways() const { return asked.place > 0 && asking.place >= kBothWays * asked.place; }
  // The smaller p of two tests: a node is slow in one direction, a link in both and by about as
  // much.
  double p() const {
    const bool is_alike = is_both_ways() && asked.place >= kBothWays * asking.place;
    return std::min(asked.p, is_alike ? either.p : 1) * 2;
  }
};

BesideHost Beside(const std::vector<Asked>& all, const std::string& host) {
  BesideHost beside;
  beside.host = host;
  std::vector<double> asked_of, asking, either, others;
  const std::vector<Asked> centred = BesideOthers(all, host);
  for (const Asked& asked : centred) {
    (asked.peer == host ? asked_of : asked.host == host ? asking : others).push_back(asked.place);
    if (asked.peer != host && asked.host != host) continue;
    either.push_back(asked.place);
    beside.waited_s[asked.host] += asked.all_s * (1 - std::exp(-asked.place));
  }
  beside.asked = TimesOf(asked_of, others);
  beside.asking = TimesOf(asking, others);
  beside.either = TimesOf(either, others);
  return beside;
}

// Whether mounts waited where tasks took longer, and for enough of that time.
bool IsWaitedFor(const std::map<std::string, TaskTimes>& tasks,
                 const std::map<std::string, double>& waited_s, double share_min) {
  double both = 0, waited_squared = 0, more_squared = 0, more_s = 0, explained_s = 0;
  for (const auto& [host, times] : tasks) {
    const auto found = waited_s.find(host);
    const double waited = found == waited_s.end() ? 0 : std::max(0.0, found->second);
    both += waited * times.more_s;
    waited_squared += waited * waited;
    more_squared += times.more_s * times.more_s;
    more_s += times.more_s;
    explained_s += std::min(times.more_s, waited);  // Upper limit: of requests at once, the last
                                                    // counts.
  }
  return more_s > 0 && waited_squared > 0 && explained_s >= share_min * more_s &&
         both * both >= kAlikeMin * waited_squared * more_squared;
}

// The own work of the host's node, compared with that of other nodes.
Times OwnWorkBeside(const AskedRequests& requests, const std::string& host) {
  std::vector<double> own, others;
  for (const Asked& work : BesideOthers(AskedOf(requests, IsANodesOwn), host))
    (work.host == host ? own : others).push_back(work.place);
  return TimesOf(own, others);
}
bool IsSurelyAsOthers(const Times& times) {
  return times.is_known && std::exp(times.most) < kSurelyAsOthersMax;
}
bool IsSurelySlow(const Times& times) {
  return times.is_known && times.factor() >= kFactorMin && times.p <= kChance;
}

// Which direction of a host's link is slow, if only one is: compares what mounts write to its node
// and read from it with what its own mount reads and writes elsewhere.
std::string SideOf(const AskedRequests& requests, const std::string& host) {
  std::vector<double> written, fetched, sent, served, others;
  for (const Asked& asked : BesideOthers(AskedOf(requests, IsAskedOfANode), host)) {
    const bool is_write = asked.name == "node.write";
    if (!is_write && asked.name != "node.read") continue;
    (asked.peer == host   ? (is_write ? written : served)
     : asked.host == host ? (is_write ? sent : fetched)
                          : others)
        .push_back(asked.place);
  }
  const auto are_slow = [&others](const std::vector<double>& one,
                                  const std::vector<double>& other) {
    return IsSurelySlow(TimesOf(one, others)) && IsSurelySlow(TimesOf(other, others));
  };
  const auto are_as_others = [&others](const std::vector<double>& one,
                                       const std::vector<double>& other) {
    const Times of_one = TimesOf(one, others), of_other = TimesOf(other, others);
    return IsSurelyAsOthers(of_one) && IsSurelyAsOthers(of_other);
  };
  if (are_slow(written, fetched) && are_as_others(sent, served))
    return "; receiving is slow, but not sending: several hosts send to it at once (in-cast), or "
           "that direction of the link is at fault";
  if (are_slow(sent, served) && are_as_others(written, fetched))
    return "; sending is slow, but not receiving: that direction of the link is at fault";
  return "";
}

// Evidence against a host that is slow in both directions.
OwnTime BothWays(const AskedRequests& requests, const std::string& host,
                 const std::string& measured) {
  const Times own = OwnWorkBeside(requests, host);
  OwnTime found{{Part::kLink, host}, std::nullopt, measured, std::nullopt};
  if (IsSurelySlow(own)) {
    found.suspect.part = Part::kHost;
    found.evidence += fmt::format(
        "both directions are slow, and its node's own work took {:.1f} times as long: everything "
        "that runs there",
        own.factor());
  } else if (own.is_known && own.factor() < kAsOthersMax) {
    found.evidence +=
        "both directions are slow, but not its node's own work: its link" + SideOf(requests, host);
  } else {
    found.evidence += "both directions are slow: its link, or everything that runs there";
    found.is_told = false;
  }
  return found;
}

std::optional<OwnTime> SlowHost(const AskedRequests& requests,
                                const std::map<std::string, TaskTimes>& tasks) {
  const std::vector<Asked> all = AskedOf(requests, IsAskedOfANode);
  const std::set<std::string> hosts = PeersOf(all);
  const auto tests = static_cast<double>(hosts.size());
  std::optional<BesideHost> slowest;
  for (const std::string& host : hosts) {
    BesideHost beside = Beside(all, host);
    if (beside.asked.factor() < kFactorMin || beside.p() * tests > kChance) continue;
    if (!slowest || beside.asked.place > slowest->asked.place) slowest = std::move(beside);
  }
  if (!slowest || !IsWaitedFor(tasks, slowest->waited_s, kShareMin)) return std::nullopt;
  const std::string& host = slowest->host;
  const Times &asked = slowest->asked, &asking = slowest->asking;
  OwnTime found{{Part::kNode, host}, std::nullopt, "", std::nullopt};
  const std::string measured =
      fmt::format("requests to {} took {:.1f} times as long as requests between other hosts, and ",
                  host, asked.factor());
  if (!asking.is_known) {
    found.or_else = Suspect{Part::kLink, host};
    found.evidence = measured + "it sent too few requests itself to tell: its node or its link";
  } else {
    const std::string both =
        fmt::format("{}requests from {} to others {:.1f} times: ", measured, host, asking.factor());
    if (slowest->is_both_ways()) {
      found = BothWays(requests, host, both);
    } else {
      found.evidence = both + "its node, not its link";
    }
  }
  found.beside_p = slowest->p() * tests;
  return found;
}

// By host, how much longer mounts waited for the part than predicted, assuming that as many of
// these requests wait at once as predicted.
std::map<std::string, double> WaitedFor(const AskedRequests& requests, const Suspect& suspect,
                                        const std::map<std::string, TaskTimes>& tasks) {
  struct Waits {
    double more_s = 0, predicted_s = 0;
  };
  std::map<std::string, Waits> waits;
  for (const RequestCell& cell : requests.cells) {
    const auto& [component, name, host, peer] = cell.which;
    const bool is_its =
        suspect.part == Part::kManager
            ? name.starts_with("manager.")
            : name.starts_with("node.") &&
                  (peer == suspect.host || (suspect.part == Part::kLink && host == suspect.host));
    if (component != "mount" || !is_its || cell.predicted.count <= 0) continue;
    for (const size_t run : requests.asked_runs) {  // Also counts how often one waits for few.
      const RequestTimes& of_run = requests.runs[run].requests;
      const auto seen = of_run.find(cell.which);
      if (seen == of_run.end()) continue;
      const double predicted_s = cell.predicted.mean_s * static_cast<double>(seen->second.count);
      waits[host].more_s += std::max(0.0, seen->second.seconds - predicted_s);
      waits[host].predicted_s += predicted_s;
    }
  }
  std::map<std::string, double> waited_s;
  for (const auto& [host, times] : tasks) {
    const Waits& of_host = waits[host];
    const double at_once = times.moving_s > 0 ? of_host.predicted_s / times.moving_s : 1;
    waited_s[host] = of_host.more_s / std::max(1.0, at_once);
  }
  return waited_s;
}

// Connections of all mounts to a host's node, in the run with the fewest.
struct Connections {
  double to = 0;
  double to_any_other = 0;     // The most to any other node in any run.
  std::optional<Modes> modes;  // One mount's, in one run: the slowest ones.
  double slow_s = 0;           // Total of these.
};

// Nothing if in some run mounts did not need to connect again.
std::optional<Connections> MadeAgain(const AskedRequests& requests, const std::string& host) {
  std::optional<Connections> made;
  for (const size_t run : requests.asked_runs) {
    std::map<std::string, double> to_others;
    double to_host = 0, mounts = 0;
    std::optional<Modes> modes = made ? made->modes : std::nullopt;
    double slow_s = made ? made->slow_s : 0;
    for (const auto& [which, seen] : requests.runs[run].requests) {
      if (!IsConnection(which)) continue;
      const auto count = static_cast<double>(seen.count);
      if (which.peer != host) {
        to_others[which.peer] += count;
      } else {
        to_host += count;
        ++mounts;
        const double of_it_s = seen.modes ? count * seen.modes->slow_share * seen.modes->slow_s : 0;
        if (of_it_s > slow_s) {
          slow_s = of_it_s;
          modes = seen.modes;
        }
      }
    }
    double most = 0;
    for (const auto& [peer, count] : to_others) most = std::max(most, count);
    if (to_host <= mounts * kNodeConnectionsMax || to_host < kConnectionsFactorMin * most)
      return std::nullopt;
    if (!made) made = {to_host, most, std::nullopt, 0};
    made->modes = modes;
    made->slow_s = slow_s;
    made->to = std::min(made->to, to_host);
    made->to_any_other = std::max(made->to_any_other, most);
  }
  return made;
}

std::string SayMadeAgain(const std::optional<Modes>& modes) {
  return modes
             ? fmt::format("; from one mount, {}, as after a retry with a fixed delay", Say(*modes))
             : "";
}

// The node whose connections do not last, if mounts waited for it.
std::optional<OwnTime> BrokenConnections(const AskedRequests& requests,
                                         const std::map<std::string, TaskTimes>& tasks) {
  std::optional<OwnTime> found;
  double most = 0;
  for (const std::string& host : HostsAsked(requests)) {
    const auto made = MadeAgain(requests, host);
    if (!made || made->to <= most) continue;
    const Suspect node = {Part::kNode, host};
    if (!IsWaitedFor(tasks, WaitedFor(requests, node, tasks), kShareMin)) continue;
    most = made->to;
    found = OwnTime{
        node, Suspect{Part::kLink, host},
        fmt::format("mounts connected to it at least {:.0f} times in each run, and to any other "
                    "node at most {:.0f} times: connections break or are refused there, or on its "
                    "link{} ('nstat -az' there counts them: TcpExtListenDrops, TcpEstabResets)",
                    made->to, made->to_any_other, SayMadeAgain(made->modes)),
        std::nullopt};
  }
  return found;
}

// The share of mounts' requests to nodes that lost packets: those to and from a host, and those
// between others, in the run in which the host stands out least.
struct LostPackets {
  double with = 0;
  double between_others = 0;
  double times() const { return with / std::max(between_others, kLostShareMin / kLostFactorMin); }
};

// Nothing if a run has too few requests or the host does not stand out in it. Requests of a mount
// to its own host's node do not cross a link.
std::optional<LostPackets> LostWith(const AskedRequests& requests, const std::string& host) {
  struct Counts {
    double all = 0, resent = 0;
    double share() const { return all > 0 ? resent / all : 0; }
  };
  std::optional<LostPackets> least;
  for (const size_t run : requests.asked_runs) {
    Counts with, between_others;
    for (const auto& [which, seen] : requests.runs[run].requests) {
      if (which.host == which.peer) continue;
      Counts& counts = which.host == host || which.peer == host ? with : between_others;
      if (IsResent(which)) counts.resent += static_cast<double>(seen.count);
      if (IsAskedOfANode(which)) counts.all += static_cast<double>(seen.count);
    }
    const LostPackets lost = {with.share(), between_others.share()};
    if (with.all < kRequestsMin || between_others.all < kRequestsMin || lost.with < kLostShareMin ||
        lost.times() < kLostFactorMin)
      return std::nullopt;
    if (!least || lost.times() < least->times()) least = lost;
  }
  return least;
}

// The link that loses packets, if mounts waited for it; the whole host if that is slow itself,
// since a host that does not run does not acknowledge.
std::optional<OwnTime> LossyLink(const AskedRequests& requests,
                                 const std::map<std::string, TaskTimes>& tasks) {
  std::optional<OwnTime> found;
  double most = 0;
  for (const std::string& host : HostsAsked(requests)) {
    const auto lost = LostWith(requests, host);
    if (!lost || lost->times() <= most) continue;
    const Suspect link = {Part::kLink, host};
    if (!IsWaitedFor(tasks, WaitedFor(requests, link, tasks), kShareMin)) continue;
    most = lost->times();
    const Times own = OwnWorkBeside(requests, host);
    const std::string lost_there = fmt::format(
        "TCP retransmitted in {:.0f} % of the requests to and from {}, and in {:.0f} % of those "
        "between other hosts",
        lost->with * 100, host, lost->between_others * 100);
    found = OwnTime{link, std::nullopt, lost_there + ": it loses packets" + SideOf(requests, host),
                    std::nullopt};
    if (IsSurelySlow(own)) {
      found->suspect.part = Part::kHost;
      found->evidence = fmt::format(
          "{}, and its node's own work took {:.1f} times as long as that of others: everything "
          "that runs there",
          lost_there, own.factor());
    }
    found->is_beside_others = true;
  }
  return found;
}

double ExplainedBy(const Suspect& suspect, const std::vector<Blame>& blamed) {
  for (const Blame& blame : blamed)
    if (blame.suspect == suspect) return blame.explained;
  return 0;
}

// The part with the largest excess of own work over the prediction, if mounts waited for it.
std::optional<OwnTime> OwnWork(const AskedRequests& requests,
                               const std::map<std::string, TaskTimes>& tasks,
                               const std::vector<Blame>& blamed) {
  struct Work {
    double more_s = 0;
    const RequestCell* most = nullptr;
  };
  std::map<Suspect, Work> works;
  for (const RequestCell& cell : requests.cells) {
    if (cell.verdict != RequestVerdict::kAnomaly || !IsOwnWork(cell.which)) continue;
    const bool is_managers = cell.which.component == "manager";
    Work& work =
        works[{is_managers ? Part::kManager : Part::kNode, is_managers ? "" : cell.which.host}];
    for (const RequestsInRun& in_run : cell.tested)
      if (std::ranges::count(requests.asked_runs, in_run.run) > 0)
        work.more_s += std::max(0.0, in_run.more_s);
    if (work.most == nullptr || cell.more_s > work.most->more_s) work.most = &cell;
  }
  const auto most = std::max_element(works.begin(), works.end(), [](const auto& a, const auto& b) {
    return a.second.more_s < b.second.more_s;
  });
  if (most == works.end()) return std::nullopt;
  // A mount reads and writes what its own host's node holds without requests.
  std::map<std::string, TaskTimes> asking = tasks;
  asking.erase(most->first.host);
  const auto waited_s = WaitedFor(requests, most->first, asking);
  double all_waited_s = 0;
  for (const auto& [host, seconds] : waited_s) all_waited_s += seconds;
  const bool explains = ExplainedBy(most->first, blamed) >= kShareMin;
  if (most->second.more_s < kShareMin * all_waited_s ||
      !IsWaitedFor(asking, waited_s, explains ? kShareMin : kShareEnough))
    return std::nullopt;
  const RequestCell& cell = *most->second.most;
  return OwnTime{most->first,
                 std::nullopt,
                 fmt::format("its own work shows it: '{}' took {} on average, predicted {}, {:.3f} "
                             "s more in total per run",
                             cell.which.name, ShowTime(cell.measured.mean_s),
                             ShowTime(cell.predicted.mean_s), cell.more_s),
                 std::nullopt,
                 /*is_told=*/false,
                 (cell.measured.mean_s + kSmallRequestSeconds) /
                     (cell.predicted.mean_s + kSmallRequestSeconds)};
}

}  // namespace

bool IsOutweighed(const OwnTime& own, const std::vector<Blame>& blamed) {
  const Blame& best = blamed.front();
  if (own.suspect.part == Part::kManager || best.suspect.host != own.suspect.host ||
      best.explained < kExplainedMin || own.times > kAsMuchLonger * (1 + best.factor))
    return false;
  if (best.suspect.part == Part::kProcessor) return own.suspect.part == Part::kLink || !own.is_told;
  return best.suspect.part == Part::kHost && !own.is_told;
}

std::set<std::string> HostsAsOthers(const AskedRequests& requests) {
  const std::vector<Asked> all = AskedOf(requests, IsAskedOfANode);
  std::set<std::string> as_others;
  for (const std::string& host : PeersOf(all)) {
    const BesideHost beside = Beside(all, host);
    if (IsSurelyAsOthers(beside.asked) && IsSurelyAsOthers(beside.asking)) as_others.insert(host);
  }
  return as_others;
}

std::optional<OwnTime> FindOwnTime(const AskedRequests& requests,
                                   const std::map<std::string, TaskTimes>& tasks,
                                   const std::vector<Blame>& blamed) {
  const bool know_all = KnowAllRequests(requests);
  for (auto own : {OwnWork(requests, tasks, blamed),
                   know_all ? BrokenConnections(requests, tasks) : std::nullopt,
                   know_all ? LossyLink(requests, tasks) : std::nullopt, SlowHost(requests, tasks)})
    if (own && !IsOutweighed(*own, blamed)) return own;
  return std::nullopt;
}

}  // namespace mosa::predict
