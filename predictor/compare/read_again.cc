#include "predictor/compare/read_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

// Of what tasks read again from other nodes.
constexpr double kColdShareMin = 0.5;
constexpr double kPredictedColdShareMax = 0.25;
// Who moved so many times what every reading of every task needs was asked by others as well. The
// kernel reads ahead, and drops pages that it then reads again: on clusters a tenth of it or more.
constexpr double kAllMax = 1.5;
// Of what tasks took longer.
constexpr double kShareMin = 0.25;

// Bytes on other nodes of what tasks read on a host, and what its mount moved from there.
struct Reading {
  double first = 0, again = 0, fetched = 0;
  double cold_share() const { return again > 0 ? (fetched - first) / again : 0; }
  void Add(const Reading& more) {
    first += more.first;
    again += more.again;
    fetched += more.fetched;
  }
};
using ReadingByHost = std::map<std::string, Reading>;

// Of hosts whose mounts say what they moved.
ReadingByHost ReadIn(const Workflow& workflow, const SeenRun& run) {
  ReadingByHost reading;
  if (!run.whole) return reading;
  for (const auto& [host, bytes] : run.fetched) reading[host].fetched = static_cast<double>(bytes);
  std::vector<size_t> order(run.tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&run](size_t task) { return run.tasks[task].start; });
  std::set<std::pair<std::string, PathIndex>> read;
  for (const size_t index : order) {
    const SeenTask& task = run.tasks[index];
    const std::string& host = run.hosts[task.host.value];
    const auto of_host = reading.find(host);
    if (of_host == reading.end()) continue;
    double all = 0, again = 0, found = 0, elsewhere = 0;
    for (const PathIndex file : workflow.tasks[index].inputs) {
      const auto bytes = static_cast<double>(workflow.at(file).size_bytes.value_or(0));
      all += bytes;
      if (!read.emplace(host, file).second) again += bytes;
    }
    for (const auto& [node, bytes] : task.read) {
      found += static_cast<double>(bytes);
      if (node != host) elsewhere += static_cast<double>(bytes);
    }
    if (all <= 0 || found <= 0) continue;
    of_host->second.again += elsewhere * again / all;
    of_host->second.first += elsewhere * (1 - again / all);
  }
  return reading;
}

double PredictedColdShare(const Workflow& workflow, const std::vector<SeenRun>& draws) {
  Reading all;
  for (const SeenRun& draw : draws)
    for (const auto& [host, reading] : ReadIn(workflow, draw)) all.Add(reading);
  return all.cold_share();
}

}  // namespace

std::optional<OwnTime> FindColdPages(const ColdPagesQuestion& question) {
  if (question.link_bytes_per_second == 0) return std::nullopt;
  ReadingByHost by_host;
  for (const size_t run : question.asked_runs)
    for (const auto& [host, reading] : ReadIn(question.workflow, question.runs[run]))
      by_host[host].Add(reading);
  const auto more_of = [](const Reading& reading) { return reading.fetched - reading.first; };
  const auto most =
      std::ranges::max_element(by_host, {}, [&](const auto& host) { return more_of(host.second); });
  if (most == by_host.end()) return std::nullopt;
  const auto& [host, reading] = *most;
  if (reading.cold_share() < kColdShareMin ||
      reading.fetched > kAllMax * (reading.first + reading.again))
    return std::nullopt;
  double more_s = 0;
  for (const auto& [name, times] : question.tasks) more_s += times.more_s;
  const auto of_host = question.tasks.find(host);
  const double moving_s = more_of(reading) / static_cast<double>(question.link_bytes_per_second);
  if (of_host == question.tasks.end() ||
      std::min(moving_s, of_host->second.more_s) < kShareMin * more_s ||
      PredictedColdShare(question.workflow, question.draws) > kPredictedColdShareMax)
    return std::nullopt;
  const auto runs = static_cast<double>(question.asked_runs.size());
  const auto in_a_run = [runs](double bytes) {
    return HumanBytes(static_cast<int64_t>(bytes / runs));
  };
  return OwnTime{
      {Part::kPageCache, host},
      std::nullopt,
      fmt::format("its mount read {} from other nodes in a run, where each file that tasks there "
                  "read has {} in all, and what they read again has {}",
                  in_a_run(reading.fetched), in_a_run(reading.first), in_a_run(reading.again)),
      std::nullopt};
}

}  // namespace mosa::predict
