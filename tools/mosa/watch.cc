// `mosa watch`: whether the requests of a running cluster stay as long as its platform file says,
// interval after interval. Each interval is judged as `mosa compare` judges a run.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
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
#include "tools/mosa/compare_output.h"
#include "tools/mosa/compare_runs.h"
#include "tools/mosa/live.h"
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
  explicit Watch(Live live) : live_(std::move(live)) {}

  struct Interval {
    std::string at;
    size_t judged = 0;  // Classes.
    size_t too_few = 0;
    std::vector<predict::RequestCell> cells;
    std::vector<std::string> drifts;
    std::vector<std::string> notes;
  };
  Interval Add(const ClusterResidence& during) {
    Interval interval{.at = "", .cells = {}, .drifts = {}, .notes = NotesOf(during)};
    intervals_.push_back(live_.Add(during));
    interval.at = intervals_.back().name;
    interval.drifts = live_.drifts();
    lengths_.push_back(LengthOf(during));  // What effects are shares of.
    if (intervals_.size() > predict::kJudgedRuns) {
      intervals_.erase(intervals_.begin());
      lengths_.erase(lengths_.begin());
    }
    interval.cells =
        predict::CompareRequests(live_.refreshed().draws(), intervals_, {}, MeanLengthSeconds());
    predict::ExplainRequests(interval.cells);
    for (const predict::RequestCell& cell : interval.cells) {
      if (cell.p) ++interval.judged;
      if (cell.verdict == RequestVerdict::kTooFew) ++interval.too_few;
    }
    return interval;
  }

 private:
  // Over the intervals in which anybody answered.
  double MeanLengthSeconds() const {
    double sum_s = 0;
    double count = 0;
    for (const Duration length : lengths_) {
      sum_s += static_cast<double>(length.ns) / 1e9;
      count += length > Duration() ? 1 : 0;
    }
    return count > 0 ? sum_s / count : 0;
  }

  Live live_;
  std::vector<predict::SeenRun> intervals_;
  std::vector<Duration> lengths_;  // Lengths of intervals_.
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
                             {"drifts", interval.drifts},
                             {"notes", interval.notes}})
                           .dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    for (const std::string& note : interval.notes) fmt::print("{} {}\n", interval.at, note);
    for (const std::string& drift : interval.drifts)
      fmt::print("{} Drift: {}\n", interval.at, drift);
    for (size_t i = 0; i < off; ++i)
      fmt::print("{} {} Open first: {}\n", interval.at, interval.cells[i].sentence,
                 interval.cells[i].open_first);
    if (off == 0)
      fmt::print("{} {} classes of requests as predicted; {} have too few to be compared\n",
                 interval.at, interval.judged, interval.too_few);
  }
  std::fflush(stdout);
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
  MOSA_ASSIGN_OR_RETURN(Live live, Live::Predict(options.words, before));
  Watch watch(std::move(live));
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
      "Check while a cluster works that requests take as long as predicted\n\n"
      "  mosa watch --platform lab.json --workload nightly.json --config manager=apart\n"
      "  mosa watch --platform lab.json --workload nightly.json --for 10m || mail ops\n\n"
      "Compares each interval with the predicted requests of the workload, which must be given,\n"
      "by the rules of 'mosa compare'. Prints one line for each class of a daemon's requests\n"
      "that took longer in two of the last three intervals, or much longer in one. Prints one\n"
      "line for each class that has drifted from the prediction, and from then on judges it by\n"
      "its new times. Exit code 7 if a class took longer; drift alone does not count.");
  AddPredictionWords(*command, options->words)->required();
  command->add_option("--interval", options->interval, "Length of an interval, from 100ms to 60m")
      ->capture_default_str();
  command->add_option("--for", options->duration,
                      "Stop after this time, such as 10m; default: at Ctrl-C");
  command->add_flag("--once", options->once, "Stop after the first interval");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Run(*options, line); }; });
}

}  // namespace mosa::cli
