// RequestLog: one record for each request that a daemon has finished, while somebody wants them:
// when, how long, its class and peer, how many bytes, and for which request of which daemon it
// was made.
//
// A caller passes on a SpanContext: the id of the whole (its trace: what one call of a program
// caused, on all hosts) and of the part that asks (its span). Within a process it travels with the
// thread (CurrentSpan). Without a log there are no ids: nothing is made, and nothing is sent.
//
// A thread puts its records into a ring of its own, 72 KiB that it keeps until it ends; one thread
// writes all rings to the file and does everything that a disk can delay. A record is dropped and
// counted if its ring is full, or the file at its limit. With no log, a request costs one load.
#ifndef MOSA_COMMON_OBSERVE_REQUEST_LOG_H_
#define MOSA_COMMON_OBSERVE_REQUEST_LOG_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/observe/request_log_file.h"
#include "common/observe/thread_rings.h"

namespace mosa {

// On behalf of what: no trace, of nothing that is logged.
struct SpanContext {
  uint64_t trace = 0;
  uint64_t span = 0;
};

// What the calling thread works for.
SpanContext CurrentSpan();

// The calling thread works for `span` until this ends.
class ScopedSpan {
 public:
  explicit ScopedSpan(SpanContext span);
  ~ScopedSpan();
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  const SpanContext before_;
};

// The task, to be run elsewhere on behalf of what the calling thread works for.
std::function<void()> InThisSpan(std::function<void()> task);

// A part of a trace that is under way.
struct Span {
  SpanContext own;
  uint64_t parent = 0;
};
// A part of what `asked` is, or a trace of its own.
Span BeginSpan(SpanContext asked);

class RequestLog {
 public:
  struct Options {
    std::string directory;
    std::string component;  // "manager", "storage" or "mount".
    std::string host;
    // Two million requests: a reader of the file has all of them in memory.
    uint64_t file_bytes_max = uint64_t{128} << 20;
    // What is left of the disk for others; 5 % of a disk that is smaller than 20 GiB.
    uint64_t free_bytes_min = uint64_t{1} << 30;
  };
  // What it has written since it was last begun.
  struct State {
    bool is_on = false;
    bool is_busy = false;  // Its file is being made, or what is left is being written.
    std::string path;
    std::string fault;  // Why it was not begun, or ended before it was told to, or is not whole.
    uint64_t records = 0;
    uint64_t dropped = 0;
  };

  RequestLog() = default;
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  // The number of a table of classes, and its peers: see DurationTable.
  uint32_t AddTable(const std::vector<std::string>& classes);
  void AddPeer(uint32_t table, std::string_view name);

  // InvalidArgument if it is no absolute path, or longer than a system takes.
  static Status CheckDirectory(std::string_view directory);
  // Has a file of its own made in the directory, which nobody else can read: once `state` is not
  // busy any more it is, or a fault says why not. The caller that names the directory may lack the
  // daemon's rights: only one as of OpenPrivateDirectory will do. InvalidArgument if it cannot
  // be; FailedPrecondition if a log is written already. Waits for no disk, as Stop.
  Status Start(const Options& options);
  // Ends it, if one is written: once `state` is not busy any more the file is whole.
  void Stop();
  State state() const;
  // The state once it is not busy, however long that takes.
  State Settled() const;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Safe from any thread; waits for nobody.
  void Add(const RequestRecord& record);

 private:
  void Run(const Options& options);
  Status Open(const Options& options);
  Status Write(const Options& options);
  // Names that the file lacks, then what is in the rings.
  Status WriteNames();
  Status WriteRings(const Options& options);
  Status WriteRecords(const Options& options);
  Status WriteBytes(std::string_view bytes);
  void DropUnread();

  ThreadRings<RequestRecord, size_t{72} << 10> rings_;  // Drained by the writer.
  std::atomic<bool> on_ = false;
  std::atomic<bool> is_ring_filling_ = false;  // The writer is not to wait longer.
  std::atomic<uint64_t> dropped_ = 0;

  std::mutex control_mutex_;  // Before mutex_. Held while a log is begun.
  std::thread writer_;        // Guarded by control_mutex_.

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by mutex_, under which nothing is asked of a disk:
  std::vector<RequestLogNames> names_;
  bool ending_ = false;
  State state_;

  // Used only by the writer thread.
  UniqueFd file_;
  std::vector<size_t> peers_written_;
  std::vector<RequestRecord> drained_;
  uint64_t bytes_ = 0;
  uint64_t records_ = 0;
};

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_REQUEST_LOG_H_
