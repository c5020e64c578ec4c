#include "predictor/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::predict {
namespace {

constexpr double kSecondsMin = 1e-6;
// A file that connects more than this many vertices says little about any two of them.
constexpr size_t kRatedPinsMax = 200;
// Coarsening ends with this many vertices for each host, or when it shrinks the graph too little.
constexpr size_t kCoarsestPerHost = 8;
constexpr double kShrinksMin = 0.95;
// A merged vertex has at most this share of what a host may get of a level.
constexpr double kMergedShareMax = 0.34;
constexpr int kPassesMax = 8;
// A pass ends after this many moves that have saved nothing.
constexpr size_t kMovesInVain = 150;
constexpr int kStarts = 10;

constexpr uint32_t kNone = UINT32_MAX;

struct Work {
  uint32_t level = 0;
  double seconds = 0;
};

// Files with the vertices they connect, without those that connect fewer than two.
struct Graph {
  std::vector<std::vector<uint32_t>> pins;  // By net.
  std::vector<uint64_t> bytes;              // By net.
  std::vector<std::vector<uint32_t>> nets;  // By vertex.
  std::vector<std::vector<Work>> work;      // By vertex; by level, no level twice.
  size_t size() const { return work.size(); }
};

void AddNet(Graph& graph, std::vector<uint32_t> pins, uint64_t bytes) {
  std::sort(pins.begin(), pins.end());
  pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
  if (pins.size() < 2 || bytes == 0) return;
  const auto net = static_cast<uint32_t>(graph.pins.size());
  for (const uint32_t pin : pins) graph.nets[pin].push_back(net);
  graph.pins.push_back(std::move(pins));
  graph.bytes.push_back(bytes);
}

Graph GraphOf(const Workflow& workflow, const std::vector<double>& seconds) {
  Graph graph;
  graph.nets.resize(workflow.tasks.size());
  graph.work.resize(workflow.tasks.size());
  for (size_t i = 0; i < workflow.tasks.size(); ++i)
    graph.work[i] = {{workflow.tasks[i].level, std::max(seconds[i], kSecondsMin)}};
  for (const WorkflowFile& file : workflow.files) {
    if (!IsOnTheStore(file)) continue;
    std::vector<uint32_t> pins;
    if (file.producer) pins.push_back(file.producer->value);
    for (const TaskIndex reader : file.consumers) pins.push_back(reader.value);
    AddNet(graph, std::move(pins), file.size_bytes.value_or(0));
  }
  return graph;
}

// What each host may get of each level.
class Limits {
 public:
  Limits(const Graph& graph, const PartitionOptions& options) : hosts_(options.shares.size()) {
    std::vector<double> total, longest;
    for (const auto& works : graph.work) {
      for (const Work& work : works) {
        if (total.size() <= work.level) {
          total.resize(work.level + 1);
          longest.resize(work.level + 1);
        }
        total[work.level] += work.seconds;
        longest[work.level] = std::max(longest[work.level], work.seconds);
      }
    }
    for (size_t level = 0; level < total.size(); ++level) {
      for (const double share : options.shares) {
        const double fair = share * total[level];
        // Tasks are not divided: of five equal tasks, one of four hosts gets two.
        const double whole = std::ceil(fair / std::max(longest[level], kSecondsMin) - 1e-9);
        most_.push_back(share <= 0
                            ? 0
                            : std::max(fair * (1 + options.imbalance), whole * longest[level]) *
                                  (1 + 1e-9));
      }
    }
  }
  double Most(uint32_t level, uint32_t host) const { return most_[level * hosts_ + host]; }
  double MostOfAny(uint32_t level) const {
    const auto begin = most_.begin() + static_cast<std::ptrdiff_t>(level * hosts_);
    return *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(hosts_));
  }
  size_t hosts() const { return hosts_; }
  size_t levels() const { return most_.size() / hosts_; }

 private:
  const size_t hosts_;
  std::vector<double> most_;
};

std::vector<uint32_t> Shuffled(size_t count, Rng& rng) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  return order;
}

// ---- coarsening

bool MayMerge(const std::vector<Work>& a, const std::vector<Work>& b, const Limits& limits) {
  std::map<uint32_t, double> sum;
  for (const auto* const works : {&a, &b})
    for (const Work& work : *works) sum[work.level] += work.seconds;
  return std::all_of(sum.begin(), sum.end(), [&](const auto& each) {
    return each.second <= kMergedShareMax * limits.MostOfAny(each.first);
  });
}

// Merges pairs of vertices that share the most bytes. `to`: each vertex's coarser one.
Graph Coarser(const Graph& graph, const Limits& limits, Rng& rng, std::vector<uint32_t>& to) {
  to.assign(graph.size(), kNone);
  uint32_t count = 0;
  std::map<uint32_t, double> ratings;
  for (const uint32_t vertex : Shuffled(graph.size(), rng)) {
    if (to[vertex] != kNone) continue;
    ratings.clear();
    for (const uint32_t net : graph.nets[vertex]) {
      const auto& pins = graph.pins[net];
      if (pins.size() > kRatedPinsMax) continue;
      for (const uint32_t other : pins)
        if (other != vertex && to[other] == kNone)
          ratings[other] +=
              static_cast<double>(graph.bytes[net]) / static_cast<double>(pins.size() - 1);
    }
    uint32_t best = kNone;
    double most = 0;
    for (const auto& [other, rating] : ratings) {
      if (rating <= most || !MayMerge(graph.work[vertex], graph.work[other], limits)) continue;
      best = other;
      most = rating;
    }
    to[vertex] = count;
    if (best != kNone) to[best] = count;
    ++count;
  }
  Graph coarser;
  coarser.nets.resize(count);
  coarser.work.resize(count);
  std::vector<std::map<uint32_t, double>> work(count);
  for (size_t i = 0; i < graph.size(); ++i)
    for (const Work& each : graph.work[i]) work[to[i]][each.level] += each.seconds;
  for (uint32_t i = 0; i < count; ++i)
    for (const auto& [level, seconds] : work[i]) coarser.work[i].push_back({level, seconds});
  for (size_t net = 0; net < graph.pins.size(); ++net) {
    std::vector<uint32_t> pins;
    for (const uint32_t pin : graph.pins[net]) pins.push_back(to[pin]);
    AddNet(coarser, std::move(pins), graph.bytes[net]);
  }
  return coarser;
}

// ---- placing and refining

// Bytes that a vertex shares with others on each host.
struct Shared {
  std::vector<double> bytes;    // By host; 0 for hosts that are not in `hosts`.
  std::vector<uint32_t> hosts;  // With any.
  void Clear() {
    for (const uint32_t host : hosts) bytes[host] = 0;
    hosts.clear();
  }
};

// Where each vertex is, what each host has of each level, and how many vertices of each net are
// where.
class Division {
 public:
  Division(const Graph& graph, const Limits& limits)
      : graph_(graph),
        limits_(limits),
        at_(graph.size(), kNone),
        load_(limits.levels() * limits.hosts()),
        pins_on_(graph.pins.size()),
        shared_{std::vector<double>(limits.hosts()), {}} {}

  uint32_t at(uint32_t vertex) const { return at_[vertex]; }
  const std::vector<uint32_t>& places() const { return at_; }

  void Put(uint32_t vertex, uint32_t host) {
    if (at_[vertex] != kNone) Add(vertex, at_[vertex], -1);
    at_[vertex] = host;
    Add(vertex, host, 1);
  }
  bool Fits(uint32_t vertex, uint32_t host) const { return Excess(vertex, host) <= 0; }
  // Seconds beyond what the host may get if the vertex were there; the vertex is elsewhere.
  double Excess(uint32_t vertex, uint32_t host) const {
    double excess = 0;
    for (const Work& work : graph_.work[vertex]) {
      const double most = limits_.Most(work.level, host);
      if (most <= 0) return std::numeric_limits<double>::infinity();
      excess += std::max(0.0, LoadOf(work.level, host) + work.seconds - most);
    }
    return excess;
  }
  // Fullest level of the vertex on the host, as a share of what it may get.
  double Fullness(uint32_t vertex, uint32_t host) const {
    double fullness = 0;
    for (const Work& work : graph_.work[vertex])
      fullness = std::max(fullness, LoadOf(work.level, host) /
                                        std::max(limits_.Most(work.level, host), kSecondsMin));
    return fullness;
  }
  bool IsOver(uint32_t vertex) const {
    return std::any_of(
        graph_.work[vertex].begin(), graph_.work[vertex].end(), [&](const Work& work) {
          return LoadOf(work.level, at_[vertex]) > limits_.Most(work.level, at_[vertex]);
        });
  }
  // Valid until the next call.
  const Shared& SharedBy(uint32_t vertex) {
    shared_.Clear();
    for (const uint32_t net : graph_.nets[vertex]) {
      // With so many, nearly every host has some of them, wherever one is.
      if (graph_.pins[net].size() > kRatedPinsMax) continue;
      for (const auto& [host, count] : pins_on_[net]) {
        if (count <= (host == at_[vertex] ? 1U : 0U)) continue;
        if (shared_.bytes[host] == 0) shared_.hosts.push_back(host);
        shared_.bytes[host] += static_cast<double>(graph_.bytes[net]);
      }
    }
    return shared_;
  }
  uint64_t Cost() const {
    uint64_t cost = 0;
    for (size_t net = 0; net < pins_on_.size(); ++net)
      cost += graph_.bytes[net] * (std::max<size_t>(pins_on_[net].size(), 1) - 1);
    return cost;
  }
  double Overload() const {
    double over = 0;
    for (uint32_t level = 0; level < limits_.levels(); ++level)
      for (uint32_t host = 0; host < limits_.hosts(); ++host)
        over += std::max(0.0, LoadOf(level, host) - limits_.Most(level, host));
    return over;
  }

 private:
  double LoadOf(uint32_t level, uint32_t host) const {
    return load_[level * limits_.hosts() + host];
  }
  void Add(uint32_t vertex, uint32_t host, int sign) {
    for (const Work& work : graph_.work[vertex])
      load_[work.level * limits_.hosts() + host] += sign * work.seconds;
    for (const uint32_t net : graph_.nets[vertex]) {
      auto& counts = pins_on_[net];
      auto found = std::find_if(counts.begin(), counts.end(),
                                [host](const auto& each) { return each.first == host; });
      if (found == counts.end()) found = counts.insert(counts.end(), {host, 0});
      found->second += static_cast<uint32_t>(sign);
      if (found->second == 0) counts.erase(found);
    }
  }

  const Graph& graph_;
  const Limits& limits_;
  std::vector<uint32_t> at_;
  std::vector<double> load_;                                         // By level, then host.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> pins_on_;  // By net: host, vertices.
  Shared shared_;
};

// Each vertex goes where most of what it shares is, if there is room.
void PlaceAll(const Graph& graph, const Limits& limits, Rng& rng, Division& division) {
  // Beginning with a random vertex, along its files: so hosts fill up with what belongs together.
  std::vector<bool> seen(graph.size());
  for (const uint32_t start : Shuffled(graph.size(), rng)) {
    if (seen[start]) continue;
    seen[start] = true;
    std::vector<uint32_t> queue = {start};
    for (size_t next = 0; next < queue.size(); ++next) {
      const uint32_t vertex = queue[next];
      const Shared& shared = division.SharedBy(vertex);
      std::optional<uint32_t> best;
      const auto rank = [&](uint32_t host) {
        return std::tuple(-division.Excess(vertex, host), shared.bytes[host],
                          -division.Fullness(vertex, host));
      };
      for (uint32_t host = 0; host < limits.hosts(); ++host)
        if (!best || rank(host) > rank(*best)) best = host;
      division.Put(vertex, *best);
      for (const uint32_t net : graph.nets[vertex]) {
        if (graph.pins[net].size() > kRatedPinsMax) continue;
        for (const uint32_t other : graph.pins[net]) {
          if (seen[other]) continue;
          seen[other] = true;
          queue.push_back(other);
        }
      }
    }
  }
}

// One pass of Fiduccia and Mattheyses: the best move of any vertex again and again, each vertex at
// most once, also if it costs bytes; then back to the best state on the way.
class Pass {
 public:
  Pass(const Graph& graph, const Limits& limits, Division& division)
      : graph_(graph),
        limits_(limits),
        division_(division),
        moved_(graph.size()),
        queued_(graph.size()) {}

  // Returns true if that saved bytes or ended an overload.
  bool Run() {
    for (uint32_t vertex = 0; vertex < graph_.size(); ++vertex) Queue(vertex);
    std::vector<std::pair<uint32_t, uint32_t>> moves;  // Vertices, and where they were.
    double saved = 0, best = 0;
    size_t kept = 0;
    while (!queue_.empty() && moves.size() - kept < kMovesInVain) {
      const Move move = *queue_.rbegin();
      queue_.erase(move);
      queued_[move.vertex].reset();
      // Earlier moves may have filled the host, or ended the overload.
      const bool is_over = move.gain >= kOverGain / 2;
      if (!division_.Fits(move.vertex, move.host) || is_over != division_.IsOver(move.vertex)) {
        Queue(move.vertex);
        continue;
      }
      moves.emplace_back(move.vertex, division_.at(move.vertex));
      division_.Put(move.vertex, move.host);
      moved_[move.vertex] = true;
      saved += move.gain;
      if (saved > best) {
        best = saved;
        kept = moves.size();
      }
      for (const uint32_t net : graph_.nets[move.vertex]) {
        if (graph_.pins[net].size() > kRatedPinsMax) continue;
        for (const uint32_t other : graph_.pins[net]) Queue(other);
      }
    }
    for (size_t i = moves.size(); i-- > kept;) division_.Put(moves[i].first, moves[i].second);
    return kept > 0;
  }

 private:
  // To end an overload is worth more than all bytes.
  static constexpr double kOverGain = 1e18;
  struct Move {
    double gain = 0;
    uint32_t vertex = 0;
    uint32_t host = 0;
    auto operator<=>(const Move&) const = default;
  };

  void Queue(uint32_t vertex) {
    if (moved_[vertex]) return;
    if (queued_[vertex]) queue_.erase(*std::exchange(queued_[vertex], std::nullopt));
    const uint32_t from = division_.at(vertex);
    const bool over = division_.IsOver(vertex);
    const Shared& shared = division_.SharedBy(vertex);
    const auto consider = [&](uint32_t host) {
      if (host == from) return;
      const double gain = shared.bytes[host] - shared.bytes[from] + (over ? kOverGain : 0);
      if (queued_[vertex] && gain <= queued_[vertex]->gain) return;
      if (division_.Fits(vertex, host)) queued_[vertex] = Move{gain, vertex, host};
    };
    if (over) {
      for (uint32_t host = 0; host < limits_.hosts(); ++host) consider(host);
    } else {
      for (const uint32_t host : shared.hosts) consider(host);
    }
    if (queued_[vertex]) queue_.insert(*queued_[vertex]);
  }

  const Graph& graph_;
  const Limits& limits_;
  Division& division_;
  std::vector<bool> moved_;
  std::vector<std::optional<Move>> queued_;
  std::set<Move> queue_;
};

void Refine(const Graph& graph, const Limits& limits, Division& division) {
  for (int pass = 0; pass < kPassesMax; ++pass)
    if (!Pass(graph, limits, division).Run()) return;
}

}  // namespace

std::vector<HostIndex> PartitionTasks(const Workflow& workflow, const std::vector<double>& seconds,
                                      const PartitionOptions& options) {
  MOSA_CHECK(std::any_of(options.shares.begin(), options.shares.end(),
                         [](double share) { return share > 0; }));
  Rng rng(options.seed);
  std::vector<Graph> graphs = {GraphOf(workflow, seconds)};
  const Limits limits(graphs.front(), options);
  std::vector<std::vector<uint32_t>> coarser_of;
  while (graphs.back().size() > kCoarsestPerHost * limits.hosts()) {
    std::vector<uint32_t> to;
    Graph coarser = Coarser(graphs.back(), limits, rng, to);
    const bool enough = static_cast<double>(coarser.size()) >
                        kShrinksMin * static_cast<double>(graphs.back().size());
    if (enough) break;
    graphs.push_back(std::move(coarser));
    coarser_of.push_back(std::move(to));
  }
  std::vector<uint32_t> places;
  std::pair best{std::numeric_limits<double>::infinity(), uint64_t{0}};
  for (int start = 0; start < kStarts; ++start) {
    Division division(graphs.back(), limits);
    PlaceAll(graphs.back(), limits, rng, division);
    Refine(graphs.back(), limits, division);
    const std::pair found{division.Overload(), division.Cost()};
    if (found >= best) continue;
    best = found;
    places = division.places();
  }
  for (size_t i = coarser_of.size(); i-- > 0;) {
    Division division(graphs[i], limits);
    for (uint32_t vertex = 0; vertex < graphs[i].size(); ++vertex)
      division.Put(vertex, places[coarser_of[i][vertex]]);
    Refine(graphs[i], limits, division);
    places = division.places();
  }
  std::vector<HostIndex> hosts;
  for (const uint32_t place : places) hosts.push_back(HostIndex{place});
  return hosts;
}

}  // namespace mosa::predict
