// The file format of a RequestLog: a title line, then blocks with checksums. The blocks are: the
// writer, names of classes and peers (before the records that use them), records, and an end. A
// file without an end block was cut off or is still being written; its blocks are readable. Numbers
// are little-endian.
#ifndef MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_
#define MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa {

// The layout in the file.
struct RequestRecord {
  uint64_t trace = 0;
  uint64_t span = 0;
  uint64_t parent = 0;   // The span that caused it; 0: none that is logged.
  uint64_t link = 0;     // The span whose work it waited for; 0: none.
  int64_t begin_ns = 0;  // Monotonic.
  int64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint16_t table = 0;  // The table to which class and peer belong.
  uint16_t kind = 0;
  uint32_t peer = 0;  // 0: no peer.
};
static_assert(sizeof(RequestRecord) == 64);

struct RequestLogNames {
  std::vector<std::string> classes;
  std::vector<std::string> peers;  // Peer numbers start at 1.
};

enum class RequestLogBlock : uint32_t { kWriter = 1, kClasses, kPeer, kRecords, kEnd };

inline constexpr std::string_view kRequestLogTitle = "mosa-requests 1\n";

std::string EncodeBlock(RequestLogBlock kind, std::string_view payload);
std::string EncodeWriter(std::string_view component, std::string_view host, uint32_t process);
std::string EncodeClasses(const RequestLogNames& names);
std::string EncodePeer(uint32_t table, std::string_view name);
// `to_wall`: the offset from the monotonic clock to wall time.
std::string EncodeRecords(Duration to_wall, const std::vector<RequestRecord>& records);
std::string EncodeEnd(uint64_t records, uint64_t dropped);

struct LoggedRequest {
  RequestRecord record;
  Time begin;  // Wall time, by the writer's clock.
  std::string name;
  std::string peer;
};

struct RequestLogFile {
  std::string component;
  std::string host;
  uint32_t process = 0;
  std::vector<LoggedRequest> requests;  // In order of their ends, except among concurrent threads.
  uint64_t dropped = 0;
  std::string fault;  // A sentence that says why the log is incomplete; empty if it is complete.
};

// InvalidArgument if it is not a request log.
Result<RequestLogFile> ReadRequestLog(std::string_view bytes);

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_REQUEST_LOG_FILE_H_
