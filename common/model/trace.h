// The trace of a mount: what programs have asked of it, as a file of records.
//
// A file is a head of kTraceHeadBytes (text: what was traced), a foot of kTraceFootBytes behind it
// (text: how the trace ended; written last, in place, so that it needs no room), and blocks. A
// block is its payload's length, the number of its records, the CRC-32C of the payload, each 4
// bytes little-endian, and the payload: records one after the other, each its kind, its flags, a
// mask of its fields, and those that are not zero as varints. A block says nothing that another one
// needs, so a file that was cut short is good up to its last whole block. Pure.
#ifndef MOSA_COMMON_MODEL_TRACE_H_
#define MOSA_COMMON_MODEL_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa {

inline constexpr int kTraceVersion = 1;
inline constexpr size_t kTraceHeadBytes = 1536;
inline constexpr size_t kTraceFootBytes = 512;
inline constexpr size_t kTraceBlockHeadBytes = 12;
inline constexpr size_t kTraceBlockBytesMax = size_t{1} << 20;
// Limit for one run, in memory: about 3 GB.
inline constexpr size_t kTraceRecordsMax = 20'000'000;

enum class TraceKind : uint8_t {
  kOpen = 1,  // `text` is the task, NUL, the command's name.
  kCreate,    // The same for a file that the open made.
  kRead,      // `size_bytes` is what was read.
  kWrite,
  kFlush,     // close(2) of one descriptor; `text` as of an open.
  kClose,     // The last descriptor of an open is gone.
  kTruncate,  // To `size_bytes`.
  kRename,    // `parent` and `text` up to its NUL become `target` and what follows.
  kUnlink,    // `text` up to its NUL in `parent`; what follows is as of an open.
  kName,      // `file` is `text` in `parent`.
};
inline constexpr uint8_t kTraceKinds = 10;

// Flags of a record.
inline constexpr uint8_t kTraceForReading = 1;
inline constexpr uint8_t kTraceForWriting = 2;
inline constexpr uint8_t kTraceCut = 4;          // Opened with O_TRUNC.
inline constexpr uint8_t kTracePassthrough = 8;  // The kernel reads and writes by itself.
inline constexpr uint8_t kTraceKeptPages = 16;   // The kernel may have its pages already.
inline constexpr uint8_t kTraceByMapping = 32;   // A write of pages that were stored into.

struct TraceRecord {
  TraceKind kind = TraceKind::kOpen;
  uint8_t flags = 0;
  FileId file;
  uint64_t handle = 0;      // Identifies one open; a mount never uses it twice.
  uint64_t offset = 0;      // For a read or write.
  uint64_t size_bytes = 0;  // Read or written; the file's at an open, flush, close or truncate.
  Time start;               // In the manager's time base.
  Time end;
  FileId parent;
  FileId target;
  uint32_t pid = 0;
  uint64_t process_start = 0;  // With `pid` the process, for as long as its machine is up.
  std::string text;

  bool operator==(const TraceRecord&) const = default;
};

struct TraceHead {
  std::string host;
  std::string mount_point;
  bool light = false;  // Only opens, closes, sizes and names.
  Time begun;          // In the manager's time base.

  bool operator==(const TraceHead&) const = default;
};

// How a trace ended.
struct TraceFoot {
  std::string reason;    // "stopped"; else why it holds less than it should.
  uint64_t records = 0;  // In the file.
  uint64_t dropped = 0;  // Lost because they came faster than they were written.
  uint64_t bytes = 0;    // Size of the whole file.
  uint64_t stats = 0;    // How often attributes were asked for,
  uint64_t lookups = 0;  // and names.
  bool operator==(const TraceFoot&) const = default;
};
inline constexpr std::string_view kTraceStopped = "stopped";

// Exactly kTraceHeadBytes and kTraceFootBytes. What is too long for them is cut.
std::string EncodeTraceHead(const TraceHead& head);
std::string EncodeTraceFoot(const TraceFoot& foot);

// Fills one block after the other.
class TraceBlock {
 public:
  void Add(const TraceRecord& record);
  uint32_t records() const { return records_; }
  size_t bytes() const { return payload_.size(); }
  // The block as it goes into the file; begins the next one.
  std::string Take();

 private:
  std::string payload_;
  uint32_t records_ = 0;
  int64_t last_start_ns_ = 0;
};

struct TraceFile {
  TraceHead head;
  std::vector<TraceRecord> records;
  std::optional<TraceFoot> foot;
  // Empty if the trace is all that happened; else a sentence that says where it ends or what lacks.
  std::string fault;
};

// Parses the whole blocks of a file, at most `records_max` records in all; more than that is a
// fault. InvalidArgument: it is no trace, or one of another version.
Result<TraceFile> ParseTrace(std::string_view bytes, size_t records_max = kTraceRecordsMax);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_TRACE_H_
