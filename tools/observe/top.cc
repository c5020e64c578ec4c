#include "tools/observe/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "tools/cluster/process.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/residence.h"
#include "tools/forecast/compare_runs.h"
#include "tools/observe/live.h"
#include "tools/observe/top_view.h"

namespace mosa::cli {
namespace {

constexpr Duration kIntervalMin = Milliseconds(100);
constexpr Duration kIntervalMax = Seconds(3600);
// How often to check for a key or a signal.
constexpr Duration kLookedAtEach = Milliseconds(50);
constexpr size_t kClassesShown = 15;
constexpr size_t kClassesShownMin = 4;
// Two table headings, the summary line, two empty lines, two lines about rows that are not shown,
// and the line where the cursor rests.
constexpr size_t kRowsBeside = 8;
// The first clears the screen and makes the terminal cut long lines; the second undoes the latter.
constexpr const char* kBeginDrawing = "\033[H\033[J\033[?7l";
constexpr std::string_view kEndDrawing = "\033[?7h";

// The terminal's settings before Keys changed them. Global because signal handlers restore them.
struct termios terminal_before {};
volatile std::sig_atomic_t is_terminal_changed = 0;

// A background process that changes the terminal's settings would be stopped.
bool HasTerminal() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void RestoreTerminal() {
  if (is_terminal_changed != 0 && HasTerminal()) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  is_terminal_changed = 0;
}

// Restores the terminal; the signal then has its default effect.
void OnEndOrStop(int signal) {
  RestoreTerminal();
  [[maybe_unused]] const ssize_t written =
      write(STDOUT_FILENO, kEndDrawing.data(), kEndDrawing.size());
  raise(signal);
}

// While a wanted one exists, keys are read as they are pressed, if standard input is a terminal and
// this process is in its foreground. INT, TERM and HUP are left to an InterruptGuard.
class Keys {
 public:
  explicit Keys(bool wanted) : wanted_(wanted) { Take(); }
  ~Keys() {
    RestoreTerminal();
    for (const int number : kSignals)
      if (wanted_) signal(number, SIG_DFL);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // True if q was pressed.
  bool WantsEnd() const {
    if (!Take()) return false;
    struct pollfd input {
      STDIN_FILENO, POLLIN, 0
    };
    char key = 0;
    while (poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) == 1)
      if (key == 'q' || key == 'Q') return true;
    return false;
  }

 private:
  static constexpr int kSignals[] = {SIGQUIT, SIGPIPE, SIGABRT, SIGTSTP};

  // Repeated after a stop. True if keys can be read.
  bool Take() const {
    if (!wanted_ || !HasTerminal()) return false;
    if (is_terminal_changed != 0) return true;
    if (tcgetattr(STDIN_FILENO, &terminal_before) != 0) return false;
    struct sigaction action {};
    action.sa_handler = OnEndOrStop;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (const int number : kSignals) sigaction(number, &action, nullptr);
    struct termios now = terminal_before;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    is_terminal_changed = 1;
    return tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
  }

  const bool wanted_;
};

// True if the program should end before `time`. Checks at least once.
bool WaitUntil(Time time, const Keys& keys) {
  const SystemClock clock;
  while (true) {
    if (cluster::InterruptGuard::Interrupted() != 0 || keys.WantsEnd()) return true;
    const Duration left = time - clock.Monotonic();
    if (left <= Duration()) return false;
    cluster::Pause(std::min(kLookedAtEach, left));
  }
}

std::string Show(Duration time) {
  const auto ns = static_cast<double>(time.ns);
  if (time.ns < 1'000'000) return fmt::format("{:.3g} us", ns / 1e3);
  if (time.ns < 1'000'000'000) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

// How many rows of each are shown.
struct Shown {
  size_t hosts = 0, classes = 0, notes = 0;
};

// As much as the screen has room for if it is redrawn, else all. Hosts have priority over all
// classes but the first few.
Shown ShownOf(const TopView& view, bool redraws) {
  Shown shown{view.hosts.size(), std::min(view.classes.size(), kClassesShown), view.notes.size()};
  struct winsize screen {};
  if (!redraws || ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) != 0 || screen.ws_row == 0)
    return shown;
  size_t left = screen.ws_row > kRowsBeside ? screen.ws_row - kRowsBeside : 0;
  const auto take = [&left](size_t count) {
    const size_t taken = std::min(count, left);
    left -= taken;
    return taken;
  };
  shown.notes = take(std::min(view.notes.size(), left / 4));
  const size_t some = take(std::min(view.classes.size(), kClassesShownMin));
  shown.hosts = take(view.hosts.size());
  shown.classes = some + take(view.classes.size() - some);
  return shown;
}

void Print(const TopView& view, const Shown& shown, bool predicts) {
  const auto rate = [](double bytes) {
    return bytes == 0 ? std::string("-") : HumanBytes(static_cast<int64_t>(bytes)) + "/s";
  };
  const auto often = [](double count) { return fmt::format("{:.1f}", count); };
  const auto say_more = [](size_t all, size_t shown_of_it, const char* what) {
    if (all > shown_of_it) fmt::print("and {} more {}\n", all - shown_of_it, what);
  };
  Table hosts({"HOST", "READ", "OWN NODE", "NETWORK", "WRITTEN", "KERNEL", "OWN NODE", "NETWORK",
               "FUSE/S", "SENDS", "RECEIVES", "NODE/S", "USED", "LIMIT"});
  for (size_t i = 0; i < shown.hosts; ++i) {
    const TopHost& host = view.hosts[i];
    hosts.Add({host.name, rate(host.read.sum()), rate(host.read.own_node), rate(host.read.network),
               rate(host.written.sum()), rate(host.written.kernel), rate(host.written.own_node),
               rate(host.written.network), often(host.kernel_requests), rate(host.served_bytes),
               rate(host.taken_bytes), often(host.node_requests),
               HumanBytes(static_cast<int64_t>(host.used_bytes)),
               HumanBytes(static_cast<int64_t>(host.limit_bytes))});
  }
  hosts.Print();
  say_more(view.hosts.size(), shown.hosts, "hosts");
  fmt::print("\n");
  std::vector<std::string> titles = {"COMPONENT", "CLASS", "PER S", "MEAN", "50 %", "90 %", "99 %"};
  if (predicts) titles.insert(titles.end(), {"PREDICTED", "RATIO"});
  Table classes(std::move(titles));
  for (size_t i = 0; i < shown.classes; ++i) {
    const TopClass& one = view.classes[i];
    std::vector<std::string> row = {one.component,
                                    one.name,
                                    often(one.per_second),
                                    Show(one.times.Mean()),
                                    Show(one.times.Quantile(500)),
                                    Show(one.times.Quantile(900)),
                                    Show(one.times.Quantile(990))};
    if (predicts && one.predicted_s && *one.predicted_s > 0) {
      const double times = static_cast<double>(one.times.Mean().ns) / 1e9 / *one.predicted_s;
      row.insert(row.end(), {Show(Duration{static_cast<int64_t>(*one.predicted_s * 1e9)}),
                             fmt::format("{:.2f}", times)});
    } else if (predicts) {
      row.insert(row.end(), {"-", "-"});
    }
    classes.Add(row);
  }
  classes.Print();
  for (size_t i = 0; i < shown.notes; ++i) fmt::print("{}\n", view.notes[i]);
  say_more(view.notes.size(), shown.notes, "notes");
}

}  // namespace

Status RunTop(const TopRequest& options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const Duration interval, ParseDuration(options.interval));
  if (interval < kIntervalMin || interval > kIntervalMax)
    return InvalidArgumentError(
        fmt::format("--interval {}: must be between 100ms and 60m", options.interval));
  if (as_json && !options.once)
    return InvalidArgumentError("--json prints a single interval: add --once");
  if (options.words.platform.empty() && !options.words.workload.empty())
    return InvalidArgumentError("--workload needs a --platform to predict with: add one");
  MOSA_RETURN_IF_ERROR(CheckDraws(options.words));
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  std::optional<Live> live;
  if (!options.words.platform.empty()) {
    MOSA_ASSIGN_OR_RETURN(const ClusterResidence now, TakeResidence(*manager));
    MOSA_ASSIGN_OR_RETURN(live, Live::Predict(options.words, now));
  }
  const cluster::InterruptGuard guard;
  const bool redraws = !options.once && isatty(STDOUT_FILENO) == 1;
  const Keys keys(redraws);
  const SystemClock clock;
  // A silent daemon delays the answer, but does not change what the others report.
  Time asked = clock.Monotonic();
  MOSA_ASSIGN_OR_RETURN(ClusterResidence before, TakeResidence(*manager));
  while (!WaitUntil(asked + interval, keys)) {
    const Time now = clock.Monotonic();
    MOSA_ASSIGN_OR_RETURN(ClusterResidence after, TakeResidence(*manager));
    ClusterResidence during = Since(after, before);
    TopView view = MakeTopView(during, static_cast<double>((now - asked).ns) / 1e9);
    if (live) {
      NamePeers(during);
      const predict::SeenRun seen = live->Add(during);
      for (TopClass& one : view.classes)
        one.predicted_s = live->refreshed().PredictedMean(seen.requests, one.component, one.name);
      const std::vector<std::string> drifting = live->Drifting();
      view.notes.insert(view.notes.end(), drifting.begin(), drifting.end());
    }
    if (as_json) {
      PrintJson(ToJson(view));
    } else {
      if (redraws) fmt::print("{}", kBeginDrawing);
      fmt::print("cluster {}, {:.1f} s{}\n\n", after.cluster, view.seconds,
                 redraws ? "; q quits" : "");
      Print(view, ShownOf(view, redraws), live.has_value());
      if (redraws) fmt::print("{}", kEndDrawing);
      std::fflush(stdout);
    }
    if (options.once) return OkStatus();
    before = std::move(after);
    asked = now;
  }
  if (options.once) return FailedPreconditionError("interrupted before the end of the interval");
  return OkStatus();
}

}  // namespace mosa::cli
