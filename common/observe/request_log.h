// RequestLog: while it is on, one record for each request that a daemon finishes: begin, duration,
// class, peer, bytes, and the calling request on whichever daemon.
//
// Callers pass a SpanContext: the id of the trace (everything that one call of a program caused, on
// all hosts) and the id of the calling span. Within a process the context travels with the thread
// (CurrentSpan). Without a log there are no ids: none are created and none are sent.
//
// Each thread puts its records into a ring of its own, 72 KiB that it keeps until it ends. One
// thread writes all rings to the file and does everything that may wait for a disk. A record is
// dropped and counted if its ring is full or the file is at its limit. While the log is off, a
// request costs one load.
#ifndef MOSA_COMMON_OBSERVE_REQUEST_LOG_H_
#define MOSA_COMMON_OBSERVE_REQUEST_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/observe/request_log_file.h"
#include "common/observe/thread_rings.h"

namespace mosa {

// The trace and span on whose behalf work is done; 0: nothing that is logged.
struct SpanContext {
  uint64_t trace = 0;
  uint64_t span = 0;
};

// The context of the calling thread.
SpanContext CurrentSpan();

// Sets the calling thread's context to `span` until destroyed.
class ScopedSpan {
 public:
  explicit ScopedSpan(SpanContext span);
  ~ScopedSpan();
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  const SpanContext before_;
};

// Wraps a task so that it runs elsewhere in the calling thread's context.
std::function<void()> InThisSpan(std::function<void()> task);

// A span in progress.
struct Span {
  SpanContext own;
  uint64_t parent = 0;
};
// Begins a span below `asked`, or a new trace if `asked` is empty.
Span BeginSpan(SpanContext asked);

class RequestLog {
 public:
  struct Options {
    std::string directory;
    std::string component;  // "manager", "storage" or "mount".
    std::string host;
    // About two million requests, because a reader loads the whole file into memory.
    uint64_t file_bytes_max = uint64_t{128} << 20;
    // Free space to leave on the disk; on disks below 20 GiB, 5 % of the disk.
    uint64_t free_bytes_min = uint64_t{1} << 30;
  };
  // State of the current or last log.
  struct State {
    bool is_on = false;
    bool is_busy = false;  // The file is being created, or the rest is being written.
    std::string path;
    std::string fault;  // Why it did not start, ended by itself, or is incomplete.
    uint64_t records = 0;
    uint64_t dropped = 0;
  };

  RequestLog() = default;
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  // Adds a table of classes, whose peers are added by AddPeer (see DurationTable). Returns its
  // number.
  uint32_t AddTable(const std::vector<std::string>& classes);
  void AddPeer(uint32_t table, std::string_view name);

  // InvalidArgument if the path is not absolute, or too long for the system.
  static Status CheckDirectory(std::string_view directory);
  // Starts a log: a new file in the directory that only the daemon's user can read. It exists, or a
  // fault says why not, once state().is_busy is false. The user who names the directory may lack
  // the daemon's rights, so it must satisfy OpenPrivateDirectory. InvalidArgument if it cannot be;
  // FailedPrecondition if a log is already being written. Does not wait for a disk; nor does Stop.
  Status Start(const Options& options);
  // Ends the log, if it is on. The file is complete once state().is_busy is false.
  void Stop();
  State state() const;
  // Blocks until the state is not busy, and returns it.
  State Settled() const;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Thread-safe; never blocks.
  void Add(const RequestRecord& record);

 private:
  void Run(const Options& options);
  Status Open(const Options& options);
  Status Write(const Options& options);
  // Writes new names, then the contents of the rings.
  Status WriteNames();
  Status WriteRings(const Options& options);
  Status WriteRecords(const Options& options);
  Status WriteBytes(std::string_view bytes);
  void DropUnread();

  ThreadRings<RequestRecord, size_t{72} << 10> rings_;  // Drained by the writer.
  std::atomic<bool> on_ = false;
  std::atomic<bool> is_ring_filling_ = false;  // Tells the writer not to wait longer.
  std::atomic<uint64_t> dropped_ = 0;

  SystemMutex control_mutex_;  // Before mutex_. Held while a log is started.
  std::thread writer_ ABSL_GUARDED_BY(control_mutex_);

  mutable SystemMutex mutex_;  // Never held during disk access.
  mutable SystemCondVar changed_;
  std::vector<RequestLogNames> names_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  State state_ ABSL_GUARDED_BY(mutex_);

  // Used only by the writer thread.
  UniqueFd file_;
  std::vector<size_t> peers_written_;
  std::vector<RequestRecord> drained_;
  uint64_t bytes_ = 0;
  uint64_t records_ = 0;
};

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_REQUEST_LOG_H_
