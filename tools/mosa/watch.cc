// `mosa watch`: whether the requests of a running cluster stay as long as its platform file says,
// interval after interval. Each interval is judged as `mosa compare` judges a run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/base/units.h"
#include "predictor/compare/comparison.h"
#include "predictor/compare/request_cells.h"
#include "tools/cluster/process.h"
#include "tools/mosa/command.h"
#include "tools/mosa/compare_draws.h"
#include "tools/mosa/compare_output.h"
#include "tools/mosa/compare_runs.h"
#include "tools/mosa/manager.h"
#include "tools/mosa/residence.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::RequestVerdict;

constexpr Duration kIntervalMin = Milliseconds(100);
constexpr Duration kIntervalMax = Seconds(3600);
constexpr Duration kLookedAtEach = Milliseconds(50);

struct Options {
  ManagerChoice manager;
  PredictionWords words;
  std::string interval = "10s";
  std::string duration;
  bool once = false;
};

// True if it is to end before that.
bool Interrupted(Time until) {
  const SystemClock clock;
  while (cluster::InterruptGuard::Interrupted() == 0) {
    const Duration left = until - clock.Monotonic();
    if (left <= Duration()) return false;
    cluster::Pause(std::min(kLookedAtEach, left));
  }
  return true;
}

std::string TimeOfDay() {
  return fmt::format("{:%H:%M:%S}", std::chrono::time_point_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now()));
}

// Hosts with a mount: they are what a prediction is of.
std::vector<std::string> HostsOf(const ClusterResidence& residence) {
  std::vector<std::string> hosts;
  for (const DaemonResidence& daemon : residence.daemons)
    if (daemon.component == "mount" && daemon.host != "-") hosts.push_back(daemon.host);
  return hosts;
}

predict::SeenRun SeenOf(const ClusterResidence& during, std::string name,
                        const std::vector<std::string>& hosts) {
  predict::SeenRun seen;
  seen.name = std::move(name);
  seen.hosts = hosts;
  for (const DaemonResidence& daemon : during.daemons) {
    // Of who is new or silent there is no interval.
    if (!daemon.failure.empty() || daemon.since_start) continue;
    for (const ResidenceRow& row : daemon.snapshot.rows)
      predict::Add({.count = row.times.Count(),
                    .seconds = static_cast<double>(row.times.sum_ns) / 1e9,
                    .median_s = static_cast<double>(row.times.Quantile(500).ns) / 1e9,
                    .p90_s = static_cast<double>(row.times.Quantile(900).ns) / 1e9},
                   seen.requests[{daemon.component, row.name, daemon.host, row.peer}]);
  }
  return seen;
}

// What has passed between the answers, by the clocks of those who gave them: the most of any.
Duration LengthOf(const ClusterResidence& during) {
  Duration length;
  for (const DaemonResidence& daemon : during.daemons) length = std::max(length, daemon.between);
  return length;
}

std::vector<std::string> NotesOf(const ClusterResidence& during) {
  std::vector<std::string> notes;
  for (const DaemonResidence& daemon : during.daemons) {
    if (!daemon.failure.empty())
      notes.push_back(fmt::format("{} is left out: {}", Describe(daemon), daemon.failure));
    if (daemon.since_start)
      notes.push_back(
          fmt::format("{} is new: it is compared from the next interval on", Describe(daemon)));
  }
  return notes;
}

// What is predicted, and the last intervals beside it.
class Watch {
 public:
  Watch(std::vector<predict::SeenRun> draws, std::vector<std::string> hosts)
      : draws_(std::move(draws)), hosts_(std::move(hosts)) {}

  struct Interval {
    std::string at;
    size_t judged = 0;  // Classes.
    size_t too_few = 0;
    std::vector<predict::RequestCell> cells;
    std::vector<std::string> notes;
  };
  Interval Add(const ClusterResidence& during) {
    Interval interval{.at = TimeOfDay(), .cells = {}, .notes = NotesOf(during)};
    intervals_.push_back(SeenOf(during, interval.at, hosts_));
    lengths_.push_back(LengthOf(during));  // What effects are shares of.
    if (intervals_.size() > predict::kJudgedRuns) {
      intervals_.erase(intervals_.begin());
      lengths_.erase(lengths_.begin());
    }
    interval.cells = predict::CompareRequests(draws_, intervals_, {}, MeanLengthSeconds());
    predict::ExplainRequests(interval.cells);
    for (const predict::RequestCell& cell : interval.cells) {
      if (cell.p) ++interval.judged;
      if (cell.verdict == RequestVerdict::kTooFew) ++interval.too_few;
    }
    return interval;
  }

 private:
  // Of the intervals in which anybody answered.
  double MeanLengthSeconds() const {
    double sum_s = 0;
    double count = 0;
    for (const Duration length : lengths_) {
      sum_s += static_cast<double>(length.ns) / 1e9;
      count += length > Duration() ? 1 : 0;
    }
    return count > 0 ? sum_s / count : 0;
  }

  const std::vector<predict::SeenRun> draws_;
  const std::vector<std::string> hosts_;
  std::vector<predict::SeenRun> intervals_;
  std::vector<Duration> lengths_;  // Of intervals_.
};

// One line for each finding, and one if there is none.
void Show(const Watch::Interval& interval, const CommandLine& line) {
  const size_t off = predict::CountOff(interval.cells);
  if (line.json) {
    fmt::print("{}\n", json({{"at", interval.at},
                             {"judged", interval.judged},
                             {"too_few", interval.too_few},
                             {"anomalies", off},
                             {"requests", RequestsToJson(interval.cells)},
                             {"notes", interval.notes}})
                           .dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    for (const std::string& note : interval.notes) fmt::print("{} {}\n", interval.at, note);
    for (size_t i = 0; i < off; ++i)
      fmt::print("{} {} Open first: {}\n", interval.at, interval.cells[i].sentence,
                 interval.cells[i].open_first);
    if (off == 0)
      fmt::print("{} {} classes of requests as predicted; {} have too few to be compared\n",
                 interval.at, interval.judged, interval.too_few);
  }
  std::fflush(stdout);
}

Result<Watch> Predict(const Options& options, const ClusterResidence& now) {
  if (options.words.workload.empty())
    return InvalidArgumentError(
        "what is predicted of requests depends on what is done: say --workload");
  const std::vector<std::string> hosts = HostsOf(now);
  predict::Configuration base;
  base.hosts = static_cast<uint32_t>(hosts.size());
  MOSA_ASSIGN_OR_RETURN(const Asked asked, ReadAsked(options.words, options.words.workload, base));
  if (asked.configuration.hosts != hosts.size())
    return InvalidArgumentError(fmt::format(
        "the prediction is of {} hosts, cluster '{}' has mounts on {} ({}): say --config hosts={}",
        asked.configuration.hosts, now.cluster, hosts.size(), fmt::join(hosts, ", "),
        hosts.size()));
  MOSA_ASSIGN_OR_RETURN(DrawnRuns drawn,
                        DrawRuns(asked.inputs, asked.configuration,
                                 DrawsOf(options.words, asked.inputs.workflow), hosts));
  if (drawn.failed > 0)
    fmt::print(stderr, "mosa: in {} draws the workload would fail, as in: {}; they are left out\n",
               drawn.failed, drawn.failure);
  return Watch(std::move(drawn.draws), hosts);
}

Status Run(const Options& options, CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckDraws(options.words));
  MOSA_ASSIGN_OR_RETURN(const Duration interval, ParseDuration(options.interval));
  if (interval < kIntervalMin || interval > kIntervalMax)
    return InvalidArgumentError(fmt::format("--interval {}: 100ms to an hour", options.interval));
  std::optional<Duration> duration;
  if (!options.duration.empty()) {
    MOSA_ASSIGN_OR_RETURN(duration, ParseDuration(options.duration));
  }
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(ClusterResidence before, TakeResidence(*manager));
  MOSA_ASSIGN_OR_RETURN(Watch watch, Predict(options, before));
  const cluster::InterruptGuard guard;
  const SystemClock clock;
  MOSA_ASSIGN_OR_RETURN(before, TakeResidence(*manager));
  const Time begin = clock.Monotonic();
  for (Time next = begin + interval; !Interrupted(next);
       next = std::max(next, clock.Monotonic()) + interval) {
    Result<ClusterResidence> after = TakeResidence(*manager);
    if (after.ok()) {
      ClusterResidence during = Since(*after, before);
      NamePeers(during);
      const Watch::Interval seen = watch.Add(during);
      Show(seen, line);
      if (predict::CountOff(seen.cells) > 0) line.exit_code = kExitAnomaly;
      before = *std::move(after);
    } else {
      if (options.once) return after.status();
      fmt::print(stderr, "mosa: {} the interval goes on: {}\n", TimeOfDay(),
                 MessageOf(after.status()));
    }
    if (options.once || (duration && clock.Monotonic() - begin >= *duration)) return OkStatus();
  }
  return OkStatus();
}

}  // namespace

void AddWatch(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "watch",
      "Whether requests stay with the daemons as long as predicted, while the cluster works\n\n"
      "  mosa watch --platform lab.json --workload nightly.json --config manager=apart\n"
      "  mosa watch --platform lab.json --workload nightly.json --for 10m || mail ops\n\n"
      "Each interval is held against what is predicted of the workload's requests, by the rules "
      "of\n"
      "mosa compare: one line for each class of a daemon that stays longer, in two of the last "
      "three\n"
      "intervals, or much longer in one. Exit code 7: there was one.");
  AddPredictionWords(*command, options->words)->required();
  command->add_option("--interval", options->interval, "So long each time")->capture_default_str();
  command->add_option("--for", options->duration, "End after so long; without it, at Ctrl-C");
  command->add_flag("--once", options->once, "End after the first interval");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Run(*options, line); }; });
}

}  // namespace mosa::cli
