// RareLog: log lines whose rate others decide, such as a peer that is refused, or a program that
// repeats a call that fails. Without a limit they could fill the disk.
//
// Thread-safe.
#ifndef MOSA_COMMON_BASE_RARE_LOG_H_
#define MOSA_COMMON_BASE_RARE_LOG_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "fmt/format.h"

namespace mosa {

class RareLog {
 public:
  // Writes at most `lines_max` lines in `every`. The last of several says so, and the next line how
  // many were left out.
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
    if (const std::optional<std::string> remark = Take())
      WriteLog(level, fmt::format(text, std::forward<Args>(args)...) + *remark);
  }

  // Returns what to add to the line, or nothing if it is left out.
  std::optional<std::string> Take() {
    const SystemMutexLock lock(mutex_);
    const SteadyTime now = std::chrono::steady_clock::now();
    if (!begun_ || now - *begun_ >= std::chrono::nanoseconds(every_.ns)) {
      begun_ = now;
      lines_ = 0;
    }
    if (lines_ == lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    std::string remark;
    if (const uint64_t left_out = std::exchange(left_out_, 0); left_out > 0)
      remark = fmt::format(" ({} other lines were left out)", left_out);
    if (++lines_ == lines_max_ && lines_max_ > 1)
      remark += fmt::format(" (others are left out for up to {} s)", every_.ns / 1'000'000'000);
    return remark;
  }

  const uint32_t lines_max_;
  const Duration every_;
  SystemMutex mutex_;
  std::optional<SteadyTime> begun_ ABSL_GUARDED_BY(mutex_);
  uint32_t lines_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_RARE_LOG_H_
