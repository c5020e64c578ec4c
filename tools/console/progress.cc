#include "tools/console/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace mosa::cli {
namespace {

constexpr Duration kQuiet = Seconds(2);
constexpr Duration kEachElsewhere = Seconds(10);
constexpr size_t kBarWidth = 24;

std::string HumanTime(Duration duration) {
  const int64_t seconds = duration.ns / 1'000'000'000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

std::string ProgressLine(size_t done, size_t total, Duration left, const std::string& now) {
  const size_t full = total == 0 ? kBarWidth : std::min(done, total) * kBarWidth / total;
  return fmt::format("[{:<{}}] {}/{} {}, {} left", std::string(full, '#'), kBarWidth, done, total,
                     now, HumanTime(left));
}

void ProgressBar::Show(size_t done, size_t total, double seconds_left, const std::string& now) {
  const Time time = clock_.Monotonic();
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (time - begin_ < kQuiet || (!terminal && time - shown_ < kEachElsewhere)) return;
  shown_ = time;
  const Duration left{static_cast<int64_t>(std::clamp(seconds_left, 0.0, 1e8) * 1e9)};
  fmt::print(stderr, "{}{}{}", terminal ? "\r\033[K" : "", ProgressLine(done, total, left, now),
             terminal ? "" : "\n");
  std::fflush(stderr);
  open_ = terminal;
}

void ProgressBar::End() {
  if (open_) fmt::print(stderr, "\n");
  open_ = false;
}

}  // namespace mosa::cli
