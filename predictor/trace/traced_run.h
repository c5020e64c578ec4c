// Reconstructs a run from the traces of all mounts: tasks, the files they used, and how.
//
// A task is everything with the same MOSA_TASK, on any host. A process without one is a task of its
// own, named after its command. A file is identified by its id, so a rename does not make another
// file.
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
  std::string path;  // Its last path below the mount; "#ID/..." where names are not known.
};

struct TracedTask {
  std::string id;
  std::string command;      // As the kernel names the program.
  std::string host;         // Where it first opened a file.
  bool is_process = false;  // Has no MOSA_TASK.
};

enum class TracedKind : uint8_t { kOpen = 1, kRead, kWrite, kClose, kCut, kUnlink };

// One operation; indices refer to TracedRun's vectors.
struct TracedOperation {
  TracedKind kind = TracedKind::kOpen;
  bool made = false;       // The open created the file.
  bool cut = false;        // The open truncated it.
  bool reads = false;      // The open was for reading.
  bool writes = false;     // The open was for writing.
  bool estimated = false;  // Inferred: the kernel moved these bytes without the mount.
  uint32_t task = 0;
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;  // At an open or close the file's size; at a cut the size after it.
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

// The result depends only on the traces and their order.
TracedRun MergeTraces(const std::vector<TraceFile>& traces);

// Summarises what a task did with a file.
struct TraceSummaryRow {
  uint32_t task = 0;
  uint32_t file = 0;
  uint64_t opens = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  // Each read or write began where the previous one of its kind ended. Reads within 4 MiB may come
  // in any order.
  bool sequential = true;
  bool estimated = false;
  Duration waited;  // Total duration of its operations.
};
// Ordered by task and file.
std::vector<TraceSummaryRow> Summarize(const TracedRun& run);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_TRACE_TRACED_RUN_H_
