#include "tools/runner/run_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace mosa::cli {
namespace {

constexpr Duration kShownEach = Seconds(5);
constexpr Duration kShownEachOnTerminal = Milliseconds(250);

bool IsOnTerminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace

void RunProgress::Say(const std::string& sentence) const {
  if (quiet_) return;
  fmt::print(stderr, "{}mosa run: {}\n", IsOnTerminal() ? "\r\033[K" : "", sentence);
}

void RunProgress::Show(Time now, size_t running, bool end) {
  using predict::TaskState;
  if (quiet_) return;
  const bool terminal = IsOnTerminal();
  if (!end && now - shown_ < (terminal ? kShownEachOnTerminal : kShownEach)) return;
  shown_ = now;
  const uint32_t failed = execution_.count(TaskState::kFailed);
  // On a terminal each line overwrites the previous one; the last line stays.
  fmt::print(stderr, "{}mosa run: {} of {} tasks done, {} running{}, {:.1f} s{}",
             terminal ? "\r\033[K" : "", execution_.count(TaskState::kDone), tasks_, running,
             failed > 0 ? fmt::format(", {} failed", failed) : "",
             static_cast<double>((now - begun_).ns) / 1e9, terminal && !end ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace mosa::cli
