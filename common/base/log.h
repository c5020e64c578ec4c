// The daemons' log: lines such as "2026-11-21T05:17:00.123Z warning manager: text", written to
// standard error or appended to a file. Only shells and main programs log; libraries return
// reasons.
//
// Call OpenLog once, before the first line. The other functions are thread-safe. A line below the
// level costs one comparison.
#ifndef MOSA_COMMON_BASE_LOG_H_
#define MOSA_COMMON_BASE_LOG_H_

#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "fmt/format.h"

namespace mosa {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  std::string program;  // Part of every line.
  LogLevel level = LogLevel::kInfo;
  std::string file;  // Empty: standard error. Created with mode 0600.
};

// Accepts "debug", "info", "warning" and "error"; anything else is InvalidArgument.
Result<LogLevel> ParseLogLevel(std::string_view text);

// FailedPrecondition if the file cannot be opened.
Status OpenLog(const LogOptions& options);

// Writes one line. Control characters in `text` become \xNN, so that a file name cannot forge a
// log line.
void WriteLog(LogLevel level, std::string_view text);
bool LogEnabled(LogLevel level);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (LogEnabled(level)) WriteLog(level, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> text, Args&&... args) {
  Log(LogLevel::kInfo, text, std::forward<Args>(args)...);
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> text, Args&&... args) {
  Log(LogLevel::kWarning, text, std::forward<Args>(args)...);
}
template <typename... Args>
void LogError(fmt::format_string<Args...> text, Args&&... args) {
  Log(LogLevel::kError, text, std::forward<Args>(args)...);
}

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_LOG_H_
