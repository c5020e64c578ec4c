// RequestLog: one record of each request that a daemon is through with, while somebody wants them:
// when, how long, of which class and peer, how many bytes, and on behalf of which request of which
// daemon.
//
// Who asks hands on a SpanContext: the id of the whole (its trace: what one call of a program
// caused, on all hosts) and of the part that asks (its span). Within a process it goes along with
// the thread (CurrentSpan). Without a log there are no ids: nothing is made, and nothing is sent.
//
// A thread puts its records into a ring of its own; one thread writes all rings to the file. What
// finds its ring full, or the file at its limit, is dropped and counted. While no log is written a
// request costs one load.
#ifndef MOSA_COMMON_BASE_REQUEST_LOG_H_
#define MOSA_COMMON_BASE_REQUEST_LOG_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/request_log_file.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"

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

// The task, for who runs it elsewhere, on behalf of what the calling thread works for.
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
  static constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;

  struct Options {
    std::string directory;
    std::string component;  // "manager", "storage" or "mount".
    std::string host;
  };
  // What it has written since it was last begun.
  struct State {
    bool is_on = false;
    std::string path;
    std::string fault;  // Why it ended before it was told to.
    uint64_t records = 0;
    uint64_t dropped = 0;
  };

  RequestLog();
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  // The number of a table of classes, and its peers: see DurationTable.
  uint32_t AddTable(const std::vector<std::string>& classes);
  void AddPeer(uint32_t table, std::string_view name);

  // Makes a file of its own in the directory, which nobody else can read. FailedPrecondition if it
  // cannot be made, or a log is written already.
  Status Start(const Options& options);
  // When it returns the file is whole. FailedPrecondition if none is written.
  Status Stop();
  State state() const;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Safe from any thread; waits for nobody.
  void Add(const RequestRecord& record);

 private:
  struct Ring;
  struct OwnRing;

  Ring* RingOfThread();
  Status Open(const Options& options);
  void Write();
  // Names that the file lacks, then what is in the rings.
  void WriteNames();
  void WriteRecords();
  void WriteBlock(RequestLogBlock kind, std::string_view payload);
  void DropUnread();

  const uint64_t number_;  // Of this log among those that the process has ever had.
  std::atomic<bool> on_ = false;
  std::atomic<uint64_t> dropped_ = 0;

  std::mutex control_mutex_;  // Before mutex_. Who begins and ends it.
  std::thread writer_;        // Guarded by control_mutex_.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::vector<std::shared_ptr<Ring>> rings_;
  std::vector<RequestLogNames> names_;
  std::optional<Status> opened_;
  bool ending_ = false;
  bool given_up_ = false;
  State state_;

  // Of the writer's thread.
  UniqueFd file_;
  std::vector<size_t> peers_written_;
  uint64_t bytes_ = 0;
  uint64_t records_ = 0;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_REQUEST_LOG_H_
