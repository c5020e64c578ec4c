#include "tools/forecast/explore_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>

#include "predictor/model/cost.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Explored;
using predict::Fate;

constexpr size_t kRowsShownMax = 20;

struct Counts {
  size_t collapsed = 0;
  size_t pruned = 0;
  size_t simulated = 0;
  size_t failed = 0;  // Simulated, or equivalent to one that was.
  size_t undecided = 0;
};

bool Fails(const Explored& each) { return each.outcome && !each.outcome->failure.empty(); }

Counts Count(const Exploration& exploration) {
  Counts counts;
  for (const Explored& each : exploration.explored) {
    counts.collapsed += each.fate == Fate::kCollapsed ? 1 : 0;
    counts.pruned += each.fate == Fate::kPruned ? 1 : 0;
    counts.simulated += each.fate == Fate::kSimulated ? 1 : 0;
    counts.failed += Fails(exploration.explored[each.same_as]) ? 1 : 0;
    counts.undecided += each.undecided ? 1 : 0;
  }
  return counts;
}

// The marked points, fastest first (by the median if all had draws). Equals keep the order of the
// space.
std::vector<size_t> Marked(const Exploration& exploration, bool Explored::*mark,
                           bool by_median = false) {
  const auto seconds = [&](size_t i) {
    const Explored& each = exploration.explored[i];
    return by_median ? each.median_s.value_or(each.objectives.time_s) : each.objectives.time_s;
  };
  std::vector<size_t> marked;
  for (size_t i = 0; i < exploration.explored.size(); ++i)
    if (exploration.explored[i].*mark) marked.push_back(i);
  std::stable_sort(marked.begin(), marked.end(),
                   [&](size_t a, size_t b) { return seconds(a) < seconds(b); });
  return marked;
}
// Removes and returns the first item of "name=value,...".
std::string_view TakeItem(std::string_view& rest) {
  const std::string_view item = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(item.size() + 1, rest.size()));
  return item;
}

std::vector<size_t> LikeBest(const Exploration& exploration) {
  return Marked(exploration, &Explored::like_best, true);
}

std::string ShowInterval(const std::optional<predict::Interval<double>>& interval, double scale,
                         int digits) {
  if (!interval) return "-";
  return fmt::format("{:.{}f} to {:.{}f}", interval->low * scale, digits, interval->high * scale,
                     digits);
}

void PrintPoints(const Exploration& exploration, const std::vector<size_t>& points) {
  std::map<size_t, size_t> twins;
  for (const Explored& each : exploration.explored)
    if (each.fate == Fate::kCollapsed) ++twins[each.same_as];
  std::vector<std::string> heading = {"SECONDS", "MEDIAN", "90 % INTERVAL", "NODE-HOURS"};
  if (exploration.with_energy) heading.insert(heading.end(), {"KJ", "90 % INTERVAL"});
  heading.emplace_back("CONFIGURATION");
  Table table(heading);
  for (size_t i = 0; i < std::min(points.size(), kRowsShownMax); ++i) {
    const Explored& each = exploration.explored[points[i]];
    std::string interval = ShowInterval(each.time_s, 1, 3);
    if (each.draws_failed > 0)
      interval += fmt::format(", {} of {} fail", each.draws_failed, exploration.draws);
    std::vector<std::string> row = {fmt::format("{:.3f}", each.objectives.time_s),
                                    each.median_s ? fmt::format("{:.3f}", *each.median_s) : "-",
                                    interval, fmt::format("{:.4f}", each.objectives.node_hours)};
    if (exploration.with_energy)
      row.insert(row.end(), {fmt::format("{:.3f}", each.objectives.joules / 1e3),
                             ShowInterval(each.joules, 1e-3, 3)});
    row.push_back(VariedText(exploration, points[i]));
    if (const auto found = twins.find(points[i]); found != twins.end())
      row.back() += fmt::format(" and {} equivalent", found->second);
    table.Add(std::move(row));
  }
  table.Print();
  if (points.size() > kRowsShownMax)
    fmt::print("and {} more: --json has all\n", points.size() - kRowsShownMax);
}

std::string Plural(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

void PrintCounts(const Exploration& exploration) {
  const Counts counts = Count(exploration);
  fmt::print("\n{} of the space: {} simulated, {} pruned, {} equivalent to another.\n",
             Plural(exploration.explored.size(), "configuration", "configurations"),
             counts.simulated, counts.pruned, counts.collapsed);
  fmt::print("{} in {:.1f} s, {} of them reused.\n",
             Plural(exploration.simulations, "simulation", "simulations"), exploration.seconds,
             exploration.remembered);
  if (exploration.space.impossible > 0)
    fmt::print("{} left out as impossible; the first: {}\n",
               Plural(exploration.space.impossible, "combination", "combinations"),
               exploration.space.why);
  if (counts.undecided > 0)
    fmt::print(
        "{} slower with the measured figures but had no draws, which leaves open whether the "
        "difference is real.\n",
        Plural(counts.undecided, "configuration is", "configurations are"));
  if (counts.failed == 0) return;
  const auto failed = std::find_if(exploration.explored.begin(), exploration.explored.end(), Fails);
  const auto index = static_cast<size_t>(failed - exploration.explored.begin());
  fmt::print("{} simulated or equivalent would fail; the first: {}: {}\n", counts.failed,
             VariedText(exploration, index), failed->outcome->failure);
}

json ToJson(const std::optional<predict::Interval<double>>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

const char* ToText(Fate fate) {
  switch (fate) {
    case Fate::kWaiting:
      return "waiting";
    case Fate::kCollapsed:
      return "collapsed";
    case Fate::kPruned:
      return "pruned";
    case Fate::kSimulated:
      return "simulated";
  }
  return "";
}

json PointToJson(const Exploration& exploration, size_t index) {
  const Explored& each = exploration.explored[index];
  const predict::Configuration& configuration = exploration.space.points[index].configuration;
  json point = {{"configuration", ToText(exploration.space.points[index])},
                {"hosts_in_all", predict::HostsInAll(configuration)},
                {"fate", ToText(each.fate)}};
  if (each.fate == Fate::kCollapsed)
    point["same_as"] = ToText(exploration.space.points[each.same_as]);
  else
    point["turnaround_at_least_s"] = predict::SecondsOf(each.time_at_least);
  if (!each.outcome) return point;
  if (Fails(each)) {
    point["failure"] = each.outcome->failure;
    return point;
  }
  point["turnaround_s"] = each.objectives.time_s;
  point["turnaround_interval_s"] = ToJson(each.time_s);
  point["turnaround_median_s"] = each.median_s ? json(*each.median_s) : json();
  point["node_hours"] = each.objectives.node_hours;
  point["energy_j"] = exploration.with_energy ? json(each.objectives.joules) : json();
  point["energy_interval_j"] = ToJson(each.joules);
  point["draws_failed"] = each.draws_failed;
  point["on_front"] = each.on_front;
  point["like_best"] = each.like_best;
  point["undecided"] = each.undecided;
  return point;
}

}  // namespace

std::string VariedText(const Exploration& exploration, size_t point) {
  const std::string text = ToText(exploration.space.points[point]);
  std::string varied;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = TakeItem(rest);
    const std::string_view name = item.substr(0, item.find('='));
    if (std::find(exploration.varied.begin(), exploration.varied.end(), name) ==
        exploration.varied.end())
      continue;
    if (!varied.empty()) varied += ',';
    varied += item;
  }
  return varied.empty() ? text : varied;
}

std::string ValueOf(const predict::Point& point, std::string_view dimension) {
  if (dimension == "nodes") return fmt::format("{}", predict::HostsInAll(point.configuration));
  const std::string text = ToText(point);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = TakeItem(rest);
    const size_t equals = item.find('=');
    if (item.substr(0, equals) == dimension) return std::string(item.substr(equals + 1));
  }
  return "";
}

std::vector<size_t> OnFront(const Exploration& exploration) {
  return Marked(exploration, &Explored::on_front);
}

void PrintExploration(const Exploration& exploration) {
  if (exploration.best) {
    fmt::print("Pareto front by {}:\n",
               exploration.with_energy ? "time, cost and energy" : "time and cost");
    PrintPoints(exploration, OnFront(exploration));
    fmt::print("\nAs fast as the fastest, within the uncertainty:\n");
    PrintPoints(exploration, LikeBest(exploration));
  } else {
    fmt::print("Every configuration would fail.\n");
  }
  PrintCounts(exploration);
}

json ToJson(const Exploration& exploration) {
  const Counts counts = Count(exploration);
  json root = {{"workflow", exploration.workflow},
               {"points", exploration.explored.size()},
               {"simulated", counts.simulated},
               {"pruned", counts.pruned},
               {"collapsed", counts.collapsed},
               {"failed", counts.failed},
               {"undecided", counts.undecided},
               {"impossible", exploration.space.impossible},
               {"simulations", exploration.simulations},
               {"remembered", exploration.remembered},
               {"draws", exploration.draws},
               {"seconds", exploration.seconds},
               {"best", nullptr},
               {"front", json::array()},
               {"like_best", json::array()},
               {"configurations", json::array()}};
  if (exploration.best) root["best"] = ToText(exploration.space.points[*exploration.best]);
  for (const size_t i : OnFront(exploration))
    root["front"].push_back(ToText(exploration.space.points[i]));
  for (const size_t i : LikeBest(exploration))
    root["like_best"].push_back(ToText(exploration.space.points[i]));
  for (size_t i = 0; i < exploration.explored.size(); ++i)
    root["configurations"].push_back(PointToJson(exploration, i));
  return root;
}

}  // namespace mosa::cli
