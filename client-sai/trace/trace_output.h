// The file of a mount's trace (common/model/trace.h describes its format).
#ifndef MOSA_CLIENT_SAI_TRACE_TRACE_OUTPUT_H_
#define MOSA_CLIENT_SAI_TRACE_TRACE_OUTPUT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/model/trace.h"

namespace mosa::sai {

struct TraceOptions {
  std::string directory;  // Where the file is created.
  std::string host;
  std::string mount_point;
  bool light = false;
  bool cold = false;      // Full traces only: no open finds cached pages of the file.
  std::string file = {};  // The file's name; default HOST.trace.

  std::string Path() const;
};

// Writes the files of traces, one after another. One thread calls Create, Begin, then Add and Flush
// as often as it likes, End and Close. Any thread may call written(), NoteReason and the counts.
//
// If a block cannot be written, the output calls `failing`, cuts the file after its last whole
// block, and notes why in its foot. Add, Flush and End do nothing while no file is open.
// Invariant: the first written().foot.bytes bytes of the file are its head, its foot and whole
// blocks.
class TraceOutput {
 public:
  // The trace that began last.
  struct Written {
    std::string path;
    bool light = false;
    TraceFoot foot;
  };

  // `failing` runs on the thread that writes, with no lock held.
  explicit TraceOutput(std::function<void()> failing) : failing_(std::move(failing)) {}

  // Creates the file, with a head and room for the foot. AlreadyExists if it exists.
  // InvalidArgument if it would lie on the mount itself. FailedPrecondition if it cannot be created
  // or written.
  Status Create(const TraceOptions& options, Time now);
  // Makes the created file the one of written(), with nothing counted.
  void Begin(const TraceOptions& options);
  // Adds a record, except one of a name that the file already has. Writes full blocks.
  void Add(const TraceRecord& record);
  // Writes the records so far.
  void Flush();
  // Flushes, and writes the foot.
  void End(std::string_view reason);
  void Close() { file_ = UniqueFd(); }
  bool is_open() const { return static_cast<bool>(file_); }

  Written written() const;
  // Sets the reason in written(), not in the file.
  void NoteReason(std::string_view reason);
  void CountStat() { stats_.fetch_add(1, std::memory_order_relaxed); }
  void CountLookup() { lookups_.fetch_add(1, std::memory_order_relaxed); }
  void CountDropped(uint64_t events) { dropped_.fetch_add(events, std::memory_order_relaxed); }

 private:
  bool IsNewName(const TraceRecord& record);
  void Fail(int error);
  void WriteFoot(std::string_view reason);

  const std::function<void()> failing_;
  std::atomic<uint64_t> stats_ = 0;
  std::atomic<uint64_t> lookups_ = 0;
  std::atomic<uint64_t> dropped_ = 0;

  mutable SystemMutex mutex_;  // Held to copy; no other lock is taken under it.
  Written written_ ABSL_GUARDED_BY(mutex_);

  // Used only by the writer thread.
  UniqueFd file_;
  TraceBlock block_;
  std::unordered_map<uint64_t, uint64_t> names_;  // Per file, a hash of its last name.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACE_OUTPUT_H_
