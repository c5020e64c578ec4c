// RareLog: log lines whose rate others decide, such as a peer that is refused, or a program that
// repeats a call that fails. Without a limit they could fill the disk.
//
// Thread-safe.
#ifndef MOSA_COMMON_BASE_RARE_LOG_H_
#define MOSA_COMMON_BASE_RARE_LOG_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/sync.h"
#include "common/base/time.h"
#include "fmt/format.h"

namespace mosa {

class RareLog {
 public:
  // Writes at most `lines_max` lines in `every`; the next line says how many were left out.
  explicit RareLog(uint32_t lines_max = 1, Duration every = Seconds(60))
      : lines_max_(lines_max), every_(every) {}

  template <typename... Args>
  void Info(fmt::format_string<Args...> text, Args&&... args) {
    Write(LogLevel::kInfo, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> text, Args&&... args) {
    Write(LogLevel::kWarning, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> text, Args&&... args) {
    Write(LogLevel::kError, text, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void Write(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
    if (!LogEnabled(level)) return;
    if (const std::optional<uint64_t> left_out = Take())
      WriteLog(level, fmt::format(text, std::forward<Args>(args)...) + Remark(*left_out));
  }

  // Absent: this line is left out.
  std::optional<uint64_t> Take() {
    const std::lock_guard lock(mutex_);
    const SteadyTime now = SteadyNow();
    if (!begun_ || now - *begun_ >= std::chrono::nanoseconds(every_.ns)) {
      begun_ = now;
      lines_ = 0;
    }
    if (lines_ == lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }
  static std::string Remark(uint64_t left_out) {
    return left_out == 0 ? "" : fmt::format(" ({} more since the last line)", left_out);
  }

  const uint32_t lines_max_;
  const Duration every_;
  Mutex mutex_;
  std::optional<SteadyTime> begun_;  // Guarded by mutex_, like the rest.
  uint32_t lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_RARE_LOG_H_
