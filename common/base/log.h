// The daemons' log: lines "2026-11-21T05:17:00.123Z warning manager: text" to standard error or to
// a file that is appended to. Only shells and main programs log; libraries return reasons.
//
// OpenLog once, before the first line; the functions below are safe from any thread. A line that is
// below the level costs one comparison.
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
  std::string file;  // Empty: standard error. Made with mode 0600.
};

// "debug", "info", "warning" or "error"; anything else is InvalidArgument.
Result<LogLevel> ParseLogLevel(std::string_view text);

// FailedPrecondition if the file cannot be opened.
Status OpenLog(const LogOptions& options);

// One line. Control characters of `text` are shown as \xNN, so that a name that somebody chose
// cannot forge a line.
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
