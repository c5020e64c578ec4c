// The file of a RequestLog: a line that says what it is, then blocks, each with a checksum: who
// writes, names of classes and peers before the records that need them, records, and an end. A file
// without its end is of a daemon that was ended, or still writes; what is before that can be read.
// Numbers are little-endian.
#ifndef MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_
#define MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa {

// As it lies in the file.
struct RequestRecord {
  uint64_t trace = 0;
  uint64_t span = 0;
  uint64_t parent = 0;   // The span that asked; 0: nothing did that is logged.
  uint64_t link = 0;     // The span whose work this one waited for; 0: none.
  int64_t begin_ns = 0;  // Monotonic.
  int64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint16_t table = 0;  // Whose class and peer these are.
  uint16_t kind = 0;
  uint32_t peer = 0;  // 0: nobody.
};
static_assert(sizeof(RequestRecord) == 64);

struct RequestLogNames {
  std::vector<std::string> classes;
  std::vector<std::string> peers;  // The first is number 1.
};

enum class RequestLogBlock : uint32_t { kWriter = 1, kClasses, kPeer, kRecords, kEnd };

inline constexpr std::string_view kRequestLogTitle = "mosa-requests 1\n";

std::string EncodeBlock(RequestLogBlock kind, std::string_view payload);
std::string EncodeWriter(std::string_view component, std::string_view host, uint32_t process);
std::string EncodeClasses(const RequestLogNames& names);
std::string EncodePeer(uint32_t table, std::string_view name);
// `to_wall`: what the monotonic clock lacks to the time of day.
std::string EncodeRecords(Duration to_wall, const std::vector<RequestRecord>& records);
std::string EncodeEnd(uint64_t records, uint64_t dropped);

struct LoggedRequest {
  RequestRecord record;
  Time begin;  // Time of day, by the writer's clock.
  std::string name;
  std::string peer;
};

struct RequestLogFile {
  std::string component;
  std::string host;
  uint32_t process = 0;
  std::vector<LoggedRequest> requests;  // As they ended, but for what threads did at once.
  uint64_t dropped = 0;
  std::string fault;  // Why this is not all: one sentence; empty: it is.
};

// InvalidArgument if this is no such file.
Result<RequestLogFile> ReadRequestLog(std::string_view bytes);

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_
