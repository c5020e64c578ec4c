// What a run was, out of the traces of all mounts: tasks, the files that they used, and how.
//
// A task is what has one MOSA_TASK, on whatever host; a process without is a task of its own,
// named after its command. A file is known by its id, so renaming makes no other file of it.
#ifndef MOSA_PREDICTOR_TRACE_TRACED_RUN_H_
#define MOSA_PREDICTOR_TRACE_TRACED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/trace.h"

namespace mosa::predict {

struct TracedFile {
  FileId id;
  std::string path;  // Below the mount, its last one; "#ID/..." where names are not known.
};

struct TracedTask {
  std::string id;
  std::string command;      // As the kernel calls it.
  std::string host;         // Where it first opened a file.
  bool is_process = false;  // Without MOSA_TASK.
};

enum class TracedKind : uint8_t { kOpen = 1, kRead, kWrite, kClose, kCut, kUnlink };

// In the order of their starts. Indices are of TracedRun's vectors.
struct TracedOperation {
  TracedKind kind = TracedKind::kOpen;
  bool made = false;       // An open that made the file.
  bool cut = false;        // An open that cut it.
  bool reads = false;      // An open for reading; of kClose: one that has read nothing.
  bool writes = false;     // An open for writing.
  bool estimated = false;  // Bytes that passed the mount by: the kernel read or wrote them.
  uint32_t task = 0;
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;  // The file's at an open or close; what it is cut to at a cut.
  Time start;
  Time end;
};

struct TracedRun {
  std::vector<TracedTask> tasks;
  std::vector<TracedFile> files;
  std::vector<TracedOperation> operations;
  uint64_t stats = 0;
  uint64_t lookups = 0;
  uint64_t renames = 0;
  uint64_t unlinks = 0;
};

// Deterministic in the order of `traces`.
TracedRun MergeTraces(const std::vector<TraceFile>& traces);

// What a task did with a file.
struct TraceSummaryRow {
  uint32_t task = 0;
  uint32_t file = 0;
  uint64_t opens = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  // Each begins where the one before it of its kind ended; reads within 4 MiB come in any order.
  bool sequential = true;
  bool estimated = false;
  Duration waited;  // In all its operations together.
};
// By task and file.
std::vector<TraceSummaryRow> Summarize(const TracedRun& run);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_TRACE_TRACED_RUN_H_
