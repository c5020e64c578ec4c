#include "predictor/compare/own_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "predictor/compare/statistics.h"
#include "predictor/model/student_t.h"

namespace mosa::predict {
namespace {

// Of what tasks took longer.
constexpr double kShareMin = 0.25;
// How well the hosts whose mounts waited are those whose tasks took longer: a squared cosine.
constexpr double kAlikeMin = 0.5;
constexpr double kChance = 0.001;
constexpr double kFactorMin = 1.25;
constexpr double kAsOthersMax = 1.15;
// Two hosts are no surer alike than that.
constexpr double kSurest = 0.1;
// The other way is slow as well if its logarithm is that share of this one's.
constexpr double kBothWays = 0.5;

// What a mount asked of a node in one run, beside what is predicted.
struct Asked {
  std::string name, host, peer;
  size_t run = 0;
  double all_s = 0;
  double place = 0;  // ln(measured / predicted).
};

// Of some Asked, how many times as long as between others.
struct Times {
  bool is_known = false;
  double place = 0;
  double p = 1;
  double factor() const { return std::exp(place); }
};

std::vector<Asked> AskedOf(const std::vector<RequestCell>& cells, const std::vector<SeenRun>& runs,
                           const std::vector<size_t>& asked_runs) {
  std::vector<Asked> all;
  for (const RequestCell& cell : cells) {
    const RequestClass& which = cell.which;
    if (which.component != "mount" || !which.name.starts_with("node.") || which.peer.empty() ||
        cell.predicted.count <= 0)
      continue;
    for (const size_t run : asked_runs) {
      const auto seen = runs[run].requests.find(which);
      if (seen == runs[run].requests.end() || seen->second.count == 0) continue;
      all.push_back({which.name, which.host, which.peer, run, seen->second.seconds,
                     std::log((MeanOf(seen->second) + kSmallRequestSeconds) /
                              (cell.predicted.mean_s + kSmallRequestSeconds))});
    }
  }
  return all;
}

// Each less the mean of its class in its run between hosts without `host`; those that have no such
// are left out.
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
  const double whole = of_with + of_without + kSurest * kSurest;
  const double parts = of_with * of_with / static_cast<double>(with.size() - 1) +
                       of_without * of_without / static_cast<double>(without.size() - 1);
  Times times;
  times.is_known = true;
  times.place = MeanOf(with) - MeanOf(without);
  constexpr double kDegreesMax = 1000;
  times.p = StudentTail(times.place / std::sqrt(whole),
                        parts > 0 ? std::min(kDegreesMax, whole * whole / parts) : kDegreesMax);
  return times;
}

// A host beside the others.
struct BesideHost {
  std::string host;
  Times asked, asking;
  std::map<std::string, double> waited_s;  // More, by the host whose mount asked.
};

BesideHost Beside(const std::vector<Asked>& all, const std::string& host) {
  BesideHost beside{host, {}, {}, {}};
  std::vector<double> asked_of, asking, others;
  const std::vector<Asked> centred = BesideOthers(all, host);
  for (const Asked& asked : centred) {
    (asked.peer == host ? asked_of : asked.host == host ? asking : others).push_back(asked.place);
    if (asked.peer == host || asked.host == host)
      beside.waited_s[asked.host] += asked.all_s * (1 - std::exp(-asked.place));
  }
  beside.asked = TimesOf(asked_of, others);
  beside.asking = TimesOf(asking, others);
  return beside;
}

// Whether what mounts waited is what tasks took longer: there, and enough of it.
bool IsWaitedFor(const std::map<std::string, TaskTimes>& tasks,
                 const std::map<std::string, double>& waited_s) {
  double both = 0, waited_squared = 0, more_squared = 0, more_s = 0, explained_s = 0;
  for (const auto& [host, times] : tasks) {
    const auto found = waited_s.find(host);
    const double waited = found == waited_s.end() ? 0 : std::max(0.0, found->second);
    both += waited * times.more_s;
    waited_squared += waited * waited;
    more_squared += times.more_s * times.more_s;
    more_s += times.more_s;
    explained_s += std::min(times.more_s, waited);  // At most: of many at once the last one counts.
  }
  return more_s > 0 && waited_squared > 0 && explained_s >= kShareMin * more_s &&
         both * both >= kAlikeMin * waited_squared * more_squared;
}

std::optional<OwnTime> SlowHost(const std::vector<RequestCell>& cells,
                                const std::vector<SeenRun>& runs,
                                const std::vector<size_t>& asked_runs,
                                const std::map<std::string, TaskTimes>& tasks) {
  const std::vector<Asked> all = AskedOf(cells, runs, asked_runs);
  std::set<std::string> hosts;
  for (const Asked& asked : all) hosts.insert(asked.peer);
  std::optional<BesideHost> slowest;
  for (const std::string& host : hosts) {
    BesideHost beside = Beside(all, host);
    if (beside.asked.factor() < kFactorMin ||
        beside.asked.p * static_cast<double>(hosts.size()) > kChance)
      continue;
    if (!slowest || beside.asked.place > slowest->asked.place) slowest = std::move(beside);
  }
  if (!slowest || !IsWaitedFor(tasks, slowest->waited_s)) return std::nullopt;
  const auto& [host, asked, asking, waited_s] = *slowest;
  if (!asking.is_known)
    return OwnTime{{Part::kNode, host},
                   Suspect{Part::kLink, host},
                   fmt::format("what mounts asked of {} took {:.1f} times as long as between other "
                               "hosts, and it asked too little of others to tell: its node or its "
                               "link",
                               host, asked.factor())};
  const bool both_ways = asking.place >= kBothWays * asked.place;
  return OwnTime{
      {both_ways ? Part::kLink : Part::kNode, host},
      std::nullopt,
      fmt::format("what mounts asked of {} took {:.1f} times as long as between other hosts, and "
                  "what {} asked of others {:.1f} times: {}",
                  host, asked.factor(), host, asking.factor(),
                  both_ways ? "both ways, as only its link is" : "its node, not its link")};
}

// Of each part the anomalies of its own work.
std::optional<OwnTime> OwnWork(const std::vector<RequestCell>& cells,
                               const std::vector<size_t>& asked_runs,
                               const std::map<std::string, TaskTimes>& tasks) {
  struct Work {
    double more_s = 0;
    const RequestCell* most = nullptr;
  };
  std::map<Suspect, Work> works;
  for (const RequestCell& cell : cells) {
    if (cell.verdict != RequestVerdict::kAnomaly || !IsOwnWork(cell.which)) continue;
    const bool is_managers = cell.which.component == "manager";
    Work& work =
        works[{is_managers ? Part::kManager : Part::kNode, is_managers ? "" : cell.which.host}];
    for (const RequestsInRun& in_run : cell.tested)
      if (std::find(asked_runs.begin(), asked_runs.end(), in_run.run) != asked_runs.end())
        work.more_s += std::max(0.0, in_run.more_s);
    if (work.most == nullptr || cell.more_s > work.most->more_s) work.most = &cell;
  }
  double more_s = 0;
  for (const auto& [host, times] : tasks) more_s += times.more_s;
  const auto most = std::max_element(works.begin(), works.end(), [](const auto& a, const auto& b) {
    return a.second.more_s < b.second.more_s;
  });
  if (most == works.end() || most->second.more_s < kShareMin * more_s) return std::nullopt;
  const RequestCell& cell = *most->second.most;
  return OwnTime{most->first, std::nullopt,
                 fmt::format("its own work says so, '{}' took {} in the mean, predicted {}, {:.3f} "
                             "s more in all of a run",
                             cell.which.name, ShowTime(cell.measured.mean_s),
                             ShowTime(cell.predicted.mean_s), cell.more_s)};
}

}  // namespace

std::set<std::string> HostsAsOthers(const std::vector<RequestCell>& cells,
                                    const std::vector<SeenRun>& runs,
                                    const std::vector<size_t>& asked_runs) {
  const std::vector<Asked> all = AskedOf(cells, runs, asked_runs);
  std::set<std::string> hosts, as_others;
  for (const Asked& asked : all) hosts.insert(asked.peer);
  for (const std::string& host : hosts) {
    const BesideHost beside = Beside(all, host);
    const auto is_as_others = [](const Times& times) {
      return times.is_known && times.factor() < kAsOthersMax;
    };
    if (is_as_others(beside.asked) && is_as_others(beside.asking)) as_others.insert(host);
  }
  return as_others;
}

std::optional<OwnTime> FindOwnTime(const std::vector<RequestCell>& cells,
                                   const std::vector<SeenRun>& runs,
                                   const std::vector<size_t>& asked_runs,
                                   const std::map<std::string, TaskTimes>& tasks) {
  auto work = OwnWork(cells, asked_runs, tasks);
  return work ? work : SlowHost(cells, runs, asked_runs, tasks);
}

}  // namespace mosa::predict
