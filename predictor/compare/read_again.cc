#include "predictor/compare/read_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

// Shares of the bytes on other nodes that tasks read again.
constexpr double kColdShareMin = 0.5;
constexpr double kPredictedColdShareMax = 0.25;
// A mount that moved more than this many times the bytes of all reads of all tasks was used by
// others too. The kernel reads ahead, and drops pages and reads them again: on clusters a tenth or
// more.
constexpr double kAllMax = 1.5;
// Share of the tasks' excess time.
constexpr double kMovingAgainShareMin = 0.25;

// Bytes on other nodes that tasks on a host read, for the first time there and again, and the bytes
// that its mount moved from other nodes; over `runs` runs.
struct Reading {
  double first = 0, again = 0, fetched = 0;
  double again_of_stage = 0;
  size_t runs = 0;
  double more() const { return fetched - first; }
  double cold_share() const { return again > 0 ? more() / again : 0; }
};
using ReadingByHost = std::map<std::string, Reading>;

// For hosts whose mounts report what they moved, and whose tasks' inputs are all known.
void AddReading(const Workflow& workflow, const std::string& stage, const SeenRun& run,
                ReadingByHost& by_host) {
  if (!run.whole) return;
  ReadingByHost reading;
  for (const auto& [host, bytes] : run.fetched) reading[host].fetched = static_cast<double>(bytes);
  std::vector<size_t> order(run.tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&run](size_t task) { return run.tasks[task].start; });
  std::set<std::pair<std::string, PathIndex>> read;
  for (const size_t index : order) {
    const SeenTask& task = run.tasks[index];
    const std::vector<PathIndex>& inputs = workflow.tasks[index].inputs;
    const auto of_host = reading.find(run.hosts[task.host.value]);
    if (of_host == reading.end()) continue;
    if (task.inputs_elsewhere.size() != inputs.size()) {
      reading.erase(of_host);
      continue;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_first = read.emplace(of_host->first, inputs[i]).second;
      const auto bytes = static_cast<double>(task.inputs_elsewhere[i]);
      (is_first ? of_host->second.first : of_host->second.again) += bytes;
      if (!is_first && (stage.empty() || workflow.tasks[index].stage == stage))
        of_host->second.again_of_stage += bytes;
    }
  }
  for (const auto& [host, in_run] : reading) {
    Reading& all = by_host[host];
    all.first += in_run.first;
    all.again += in_run.again;
    all.again_of_stage += in_run.again_of_stage;
    all.fetched += in_run.fetched;
    ++all.runs;
  }
}

bool IsCold(const Reading& reading) {
  return reading.cold_share() >= kColdShareMin &&
         reading.fetched <= kAllMax * (reading.first + reading.again);
}

}  // namespace

std::optional<OwnTime> FindColdPages(const ColdPagesQuestion& question) {
  if (question.link_bytes_per_second == 0) return std::nullopt;
  ReadingByHost measured, predicted;
  for (const size_t run : question.asked_runs)
    AddReading(question.workflow, question.stage, question.runs[run], measured);
  std::erase_if(measured, [](const auto& host) { return !IsCold(host.second); });
  const auto most =
      std::ranges::max_element(measured, {}, [](const auto& host) { return host.second.more(); });
  if (most == measured.end()) return std::nullopt;
  const auto& [host, reading] = *most;
  double more_s = 0;
  for (const auto& [name, times] : question.tasks) more_s += times.more_s;
  const auto of_host = question.tasks.find(host);
  const double moving_s = reading.more() * (reading.again_of_stage / reading.again) /
                          static_cast<double>(question.link_bytes_per_second);
  if (of_host == question.tasks.end() ||
      std::min(moving_s, of_host->second.more_s) < kMovingAgainShareMin * more_s)
    return std::nullopt;
  for (const SeenRun& draw : question.draws)
    AddReading(question.workflow, question.stage, draw, predicted);
  if (predicted[host].cold_share() > kPredictedColdShareMax) return std::nullopt;
  const auto in_a_run = [runs = reading.runs](double bytes) {
    constexpr double kSaidMax = 1e18;
    return HumanBytes(static_cast<int64_t>(std::min(kSaidMax, bytes / static_cast<double>(runs))));
  };
  return OwnTime{
      {Part::kPageCache, host},
      std::nullopt,
      fmt::format("its mount read {} from other nodes per run; of the bytes on other nodes, tasks "
                  "there read {} for the first time and {} again",
                  in_a_run(reading.fetched), in_a_run(reading.first), in_a_run(reading.again)),
      std::nullopt};
}

}  // namespace mosa::predict
