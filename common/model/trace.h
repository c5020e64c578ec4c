// The trace of a mount: a file of records of what programs did.
//
// A file is a head of kTraceHeadBytes (text: what was traced), a foot of kTraceFootBytes (text: how
// the trace ended), and blocks. The foot is written last, in space that was reserved for it, so it
// needs no room. A block is the payload's length, the number of records and the CRC-32C of the
// payload, each 4 bytes little-endian, then the payload. A record is its kind, its flags, a mask of
// its fields, and the non-zero fields as varints. Blocks do not depend on each other, so a
// truncated file is valid up to its last whole block. Pure.
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
// Limit on the records of one run in memory: about 3 GB.
inline constexpr size_t kTraceRecordsMax = 20'000'000;

enum class TraceKind : uint8_t {
  kOpen = 1,  // `text` is the task, NUL, the command's name.
  kCreate,    // As kOpen, for a file that the open created.
  kRead,      // `size_bytes` is the number of bytes read.
  kWrite,
  kFlush,     // close(2) of one descriptor; `text` as in kOpen.
  kClose,     // The last descriptor of an open is gone.
  kTruncate,  // To `size_bytes`.
  kRename,    // From `parent` and `text` up to its NUL to `target` and the rest of `text`.
  kUnlink,    // `text` up to its NUL in `parent`; the rest is as in kOpen.
  kName,      // `file` has the name `text` in `parent`.
};
inline constexpr uint8_t kTraceKinds = 10;

// Flags of a record.
inline constexpr uint8_t kTraceForReading = 1;
inline constexpr uint8_t kTraceForWriting = 2;
inline constexpr uint8_t kTraceCut = 4;          // Opened with O_TRUNC.
inline constexpr uint8_t kTracePassthrough = 8;  // The kernel reads and writes directly.
inline constexpr uint8_t kTraceKeptPages = 16;   // The kernel may already have the file's pages.
// Write-back of pages that were stored into through a mapping.
inline constexpr uint8_t kTraceByMapping = 32;

struct TraceRecord {
  TraceKind kind = TraceKind::kOpen;
  uint8_t flags = 0;
  FileId file;
  uint64_t handle = 0;  // Identifies one open; a mount never reuses it.
  uint64_t offset = 0;  // For a read or write.
  // Bytes read or written; for open, flush, close and truncate, the file's size.
  uint64_t size_bytes = 0;
  Time start;  // In the manager's time base.
  Time end;
  FileId parent;
  FileId target;
  uint32_t pid = 0;
  uint64_t process_start = 0;  // With `pid`, identifies the process until its machine reboots.
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
  std::string reason;    // "stopped", or why the trace is incomplete.
  uint64_t records = 0;  // In the file.
  uint64_t dropped = 0;  // Lost because they came faster than they were written.
  uint64_t bytes = 0;    // Size of the whole file.
  uint64_t stats = 0;    // How often attributes
  uint64_t lookups = 0;  // and names were looked up.
  bool operator==(const TraceFoot&) const = default;
};
inline constexpr std::string_view kTraceStopped = "stopped";

// Returns exactly kTraceHeadBytes or kTraceFootBytes; longer text is cut.
std::string EncodeTraceHead(const TraceHead& head);
std::string EncodeTraceFoot(const TraceFoot& foot);

// Encodes records, block by block.
class TraceBlock {
 public:
  void Add(const TraceRecord& record);
  uint32_t records() const { return records_; }
  size_t bytes() const { return payload_.size(); }
  // Returns the block as it goes into the file, and begins the next one.
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
  // Empty if the trace is complete; otherwise a sentence that says what is missing.
  std::string fault;
};

// Parses the whole blocks of a file, up to `records_max` records; more is a fault. InvalidArgument
// if it is not a trace, or one of another version.
Result<TraceFile> ParseTrace(std::string_view bytes, size_t records_max = kTraceRecordsMax);

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_TRACE_H_
