#include "common/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/basic_file_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace mosa {

namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Created at first use and never destroyed, because threads may log until the process ends.
std::shared_ptr<spdlog::logger>& Logger() {
  static auto* const logger = new std::shared_ptr<spdlog::logger>(
      std::make_shared<spdlog::logger>("mosa", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  return *logger;
}

std::string Printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

Result<LogLevel> ParseLogLevel(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  return InvalidArgumentError(
      fmt::format("unknown log level '{}': use debug, info, warning or error", text));
}

Status OpenLog(const LogOptions& options) {
  spdlog::sink_ptr sink;
  if (options.file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    // Create the file here, because spdlog would leave its mode to the umask.
    const int fd = ::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
      return FailedPreconditionError(
          fmt::format("cannot open log file {}: {}; choose another with --log-file", options.file,
                      std::generic_category().message(errno)));
    }
    ::close(fd);
    try {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file, /*truncate=*/false);
    } catch (const spdlog::spdlog_ex& error) {
      return FailedPreconditionError(
          fmt::format("cannot open log file {}: {}", options.file, error.what()));
    }
  }
  auto logger = std::make_shared<spdlog::logger>(options.program, std::move(sink));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", spdlog::pattern_time_type::utc));
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::debug);
  Logger() = std::move(logger);
  return OkStatus();
}

void WriteLog(LogLevel level, std::string_view text) {
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(Printable(text)));
}

bool LogEnabled(LogLevel level) { return Logger()->should_log(ToSpdlog(level)); }

}  // namespace mosa
