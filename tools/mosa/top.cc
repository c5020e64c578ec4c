#include "tools/mosa/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "tools/cluster/process.h"
#include "tools/mosa/manager.h"
#include "tools/mosa/residence.h"
#include "tools/mosa/top_view.h"

namespace mosa::cli {
namespace {

constexpr Duration kIntervalMin = Milliseconds(100);
constexpr Duration kIntervalMax = Seconds(3600);
// Whether a key was pressed, or a signal came.
constexpr Duration kLookedAtEach = Milliseconds(50);
constexpr size_t kClassesShown = 15;
constexpr size_t kClassesShownMin = 4;

struct Options {
  ManagerChoice manager;
  std::string interval = "2s";
  bool once = false;
};

// While one exists, keys come as they are pressed, if standard input is a terminal.
class Keys {
 public:
  Keys() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    struct termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    is_terminal_ = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
  }
  ~Keys() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // True if q was pressed.
  bool WantsEnd() const {
    struct pollfd input {
      STDIN_FILENO, POLLIN, 0
    };
    char key = 0;
    while (is_terminal_ && poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) == 1)
      if (key == 'q' || key == 'Q') return true;
    return false;
  }

 private:
  struct termios before_ {};
  bool is_terminal_ = false;
};

// True if it is to end before that.
bool WaitUntil(Time time, const Keys& keys) {
  const SystemClock clock;
  while (clock.Monotonic() < time) {
    if (cluster::InterruptGuard::Interrupted() != 0 || keys.WantsEnd()) return true;
    cluster::Pause(std::min(kLookedAtEach, time - clock.Monotonic()));
  }
  return false;
}

std::string Show(Duration time) {
  const auto ns = static_cast<double>(time.ns);
  if (time.ns < 1'000'000) return fmt::format("{:.3g} us", ns / 1e3);
  if (time.ns < 1'000'000'000) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

// How many rows the screen has left for classes.
size_t ClassesShown(const TopView& view) {
  struct winsize screen {};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) != 0)
    return kClassesShown;
  const size_t taken = view.hosts.size() + view.notes.size() + 5;
  const size_t left = screen.ws_row > taken ? screen.ws_row - taken : 0;
  return std::max(left, kClassesShownMin);
}

void Print(const TopView& view) {
  const auto rate = [&view](uint64_t bytes) {
    if (bytes == 0) return std::string("-");
    return HumanBytes(static_cast<int64_t>(static_cast<double>(bytes) / view.seconds)) + "/s";
  };
  const auto often = [&view](uint64_t count) {
    return fmt::format("{:.1f}", static_cast<double>(count) / view.seconds);
  };
  Table hosts({"HOST", "READ", "OWN NODE", "NETWORK", "WRITTEN", "KERNEL", "OWN NODE", "NETWORK",
               "FUSE/S", "SERVES", "TAKES", "NODE/S", "USED", "OF"});
  for (const TopHost& host : view.hosts)
    hosts.Add({host.name, rate(host.read.sum()), rate(host.read.own_node), rate(host.read.network),
               rate(host.written.sum()), rate(host.written.kernel), rate(host.written.own_node),
               rate(host.written.network), often(host.kernel_requests), rate(host.served_bytes),
               rate(host.taken_bytes), often(host.node_requests),
               HumanBytes(static_cast<int64_t>(host.used_bytes)),
               HumanBytes(static_cast<int64_t>(host.limit_bytes))});
  hosts.Print();
  fmt::print("\n");
  Table classes({"COMPONENT", "CLASS", "PER S", "MEAN", "50 %", "90 %", "99 %"});
  const size_t shown = std::min(ClassesShown(view), view.classes.size());
  for (size_t i = 0; i < shown; ++i) {
    const DurationCounts& times = view.classes[i].times;
    classes.Add({view.classes[i].component, view.classes[i].name, often(times.Count()),
                 Show(times.Mean()), Show(times.Quantile(500)), Show(times.Quantile(900)),
                 Show(times.Quantile(990))});
  }
  classes.Print();
  for (const std::string& note : view.notes) fmt::print("{}\n", note);
}

Status Run(const Options& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const Duration interval, ParseDuration(options.interval));
  if (interval < kIntervalMin || interval > kIntervalMax)
    return InvalidArgumentError(fmt::format("--interval {}: 100ms to an hour", options.interval));
  if (line.json && !options.once)
    return InvalidArgumentError("--json is of one interval: say --once, too");
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  const cluster::InterruptGuard guard;
  const Keys keys;
  const SystemClock clock;
  const bool redraws = !options.once && isatty(STDOUT_FILENO) == 1;
  MOSA_ASSIGN_OR_RETURN(ClusterResidence before, TakeResidence(*manager));
  Time asked = clock.Monotonic();
  while (!WaitUntil(asked + interval, keys)) {
    MOSA_ASSIGN_OR_RETURN(ClusterResidence after, TakeResidence(*manager));
    const Time now = clock.Monotonic();
    const TopView view =
        MakeTopView(Since(after, before), static_cast<double>((now - asked).ns) / 1e9);
    if (line.json) {
      PrintJson(ToJson(view));
    } else {
      if (redraws) fmt::print("\033[H\033[J");
      fmt::print("cluster {}, {:.1f} s{}\n\n", after.cluster, view.seconds,
                 redraws ? "; q ends" : "");
      Print(view);
      std::fflush(stdout);
    }
    if (options.once) break;
    before = std::move(after);
    asked = now;
  }
  if (options.once && cluster::InterruptGuard::Interrupted() != 0)
    return FailedPreconditionError("interrupted before the interval was over");
  return OkStatus();
}

}  // namespace

void AddTop(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "top",
      "What a cluster is doing: bytes by path, requests and how long they take, again and again\n\n"
      "  mosa top\n"
      "  mosa top --once --interval 10s --json");
  command->add_option("--interval", options->interval, "So long each time: 500ms, 2s")
      ->capture_default_str();
  command->add_flag("--once", options->once, "End after the first");
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return Run(*options, line); }; });
}

}  // namespace mosa::cli
