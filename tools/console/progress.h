// A progress bar with the remaining time, on standard error, for work that takes more than two
// seconds.
#ifndef MOSA_TOOLS_CONSOLE_PROGRESS_H_
#define MOSA_TOOLS_CONSOLE_PROGRESS_H_

#include <string>

#include "common/base/clock.h"
#include "common/base/time.h"

namespace mosa::cli {

// "[######    ] 12/20 pipeline medium wass, 1m40s left".
std::string ProgressLine(size_t done, size_t total, Duration left, const std::string& now);

class ProgressBar {
 public:
  ProgressBar() : begin_(clock_.Monotonic()), shown_(begin_) {}
  ~ProgressBar() { End(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `seconds_left` is an estimate for the rest; `now` names what comes next.
  void Show(size_t done, size_t total, double seconds_left, const std::string& now);
  // Ends the line, if there is one.
  void End();

 private:
  const SystemClock clock_;
  const Time begin_;
  Time shown_;
  bool open_ = false;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_PROGRESS_H_
