#include "tools/observe/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "predictor/compare/comparison.h"
#include "predictor/compare/request_cells.h"
#include "tools/cluster/process.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"
#include "tools/forecast/compare_output.h"
#include "tools/forecast/compare_runs.h"
#include "tools/observe/live.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::RequestVerdict;

constexpr Duration kIntervalMin = Milliseconds(100);
constexpr Duration kIntervalMax = Seconds(3600);
constexpr Duration kLookedAtEach = Milliseconds(50);

// True if the program was interrupted before `until`.
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
          fmt::format("{} is new: comparing it starts with the next interval", Describe(daemon)));
  }
  return notes;
}

// The prediction and the last intervals that are compared with it.
class Watch {
 public:
  explicit Watch(Live live) : live_(std::move(live)) {}

  struct Interval {
    std::string at;
    size_t judged = 0;  // Number of classes.
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
    lengths_.push_back(LengthOf(during));  // Effects are shares of these.
    if (intervals_.size() > predict::kJudgedRuns) {
      intervals_.erase(intervals_.begin());
      lengths_.erase(lengths_.begin());
    }
    interval.cells =
        predict::CompareRequests(live_.refreshed().draws(), intervals_, MeanLengthSeconds());
    predict::ExplainRequests(interval.cells);
    for (const predict::RequestCell& cell : interval.cells) {
      if (cell.p) ++interval.judged;
      if (cell.verdict == RequestVerdict::kTooFew) ++interval.too_few;
    }
    return interval;
  }

 private:
  // Mean over the intervals with an answer from any daemon.
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

// Prints one line for each finding, or one line if there is none.
void Show(const Watch::Interval& interval, bool as_json) {
  const size_t off = predict::CountOff(interval.cells);
  if (as_json) {
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
      fmt::print("{} {} classes of requests as predicted; {} have too few requests to compare\n",
                 interval.at, interval.judged, interval.too_few);
  }
  std::fflush(stdout);
}

}  // namespace

Result<bool> RunWatch(const WatchRequest& options, bool as_json) {
  MOSA_RETURN_IF_ERROR(CheckDraws(options.words));
  MOSA_ASSIGN_OR_RETURN(const Duration interval, ParseDuration(options.interval));
  if (interval < kIntervalMin || interval > kIntervalMax)
    return InvalidArgumentError(
        fmt::format("--interval {}: must be between 100ms and 60m", options.interval));
  std::optional<Duration> duration;
  if (!options.duration.empty()) {
    MOSA_ASSIGN_OR_RETURN(duration, ParseDuration(options.duration));
  }
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(ClusterResidence before, TakeResidence(*manager));
  MOSA_ASSIGN_OR_RETURN(Live live, Live::Predict(options.words, before));
  Watch watch(std::move(live));
  bool longer = false;
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
      Show(seen, as_json);
      longer = longer || predict::CountOff(seen.cells) > 0;
      before = *std::move(after);
    } else {
      if (options.once) return after.status();
      fmt::print(stderr, "mosa: {} no answer, so the interval is extended: {}\n", TimeOfDay(),
                 MessageOf(after.status()));
    }
    if (options.once || (duration && clock.Monotonic() - begin >= *duration)) break;
  }
  return longer;
}

}  // namespace mosa::cli
