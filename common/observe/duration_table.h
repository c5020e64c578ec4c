// DurationTable: histograms of request durations, by class and, where it matters, by peer. Daemons
// keep one for all their requests.
//
// Add is lock-free: three atomic operations on the counters of the class and peer, which are rarely
// contended for requests of microseconds and more. The first request of a class and peer allocates
// its counters (1.7 KiB), which stay. Memory is bounded: peers beyond the limit share one row.
// Thread-safe. A read that runs during additions may miss the latest ones, or see some of them only
// in the count and maximum.
#ifndef MOSA_COMMON_OBSERVE_DURATION_TABLE_H_
#define MOSA_COMMON_OBSERVE_DURATION_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/duration_counts.h"
#include "common/base/mutex.h"
#include "common/base/strong_id.h"
#include "common/observe/request_log.h"

namespace mosa {

// The counters of one class and peer.
class DurationHistogram {
 public:
  void Add(Duration duration);
  DurationCounts Read() const;

 private:
  std::array<std::atomic<uint64_t>, kDurationBuckets> counts_{};
  std::atomic<uint64_t> sum_ns_ = 0;
  std::atomic<uint64_t> max_ns_ = 0;
};

class DurationTable {
 public:
  // Index in the list of classes.
  using ClassId = StrongId<struct DurationClassTag, size_t>;
  using PeerId = StrongId<struct DurationPeerTag, size_t>;
  static constexpr PeerId kNoPeer{0};
  // The row shared by peers that came after the table was full. No node's name contains a comma.
  static constexpr std::string_view kOtherPeers = "others, together";

  // A class without a name is never added to. `log` may be null; it receives the requests logged
  // here and must outlive the table.
  DurationTable(std::vector<std::string> classes, size_t peers_max, RequestLog* log = nullptr);
  ~DurationTable();
  DurationTable(const DurationTable&) = delete;
  DurationTable& operator=(const DurationTable&) = delete;

  // Returns the id of the peer of this name, adding it if it is new. Takes a lock: call it once per
  // connection or per long call.
  PeerId PeerOf(std::string_view name);
  // Precondition: both ids are from this table.
  void Add(ClassId kind, PeerId peer, Duration duration);

  bool is_logged() const { return log_ != nullptr && log_->on(); }
  // The log record of a request that began while is_logged().
  struct Logged {
    Span span;
    Time begin;  // Monotonic.
    Duration duration;
    uint64_t bytes = 0;
    uint64_t link = 0;  // The span whose work the request waited for.
  };
  void Log(ClassId kind, PeerId peer, const Logged& request);

  // Visits the non-empty rows by class, then by peer, in the order in which they were added.
  using Visitor = std::function<void(const std::string& kind, const std::string& peer,
                                     const DurationCounts& counts)>;
  void Visit(const Visitor& visit) const;

 private:
  size_t RowOf(ClassId kind, PeerId peer) const { return kind.value * row_peers_ + peer.value; }

  // Constant.
  const std::vector<std::string> classes_;
  const size_t peers_max_;
  RequestLog* const log_;
  const uint32_t log_table_;  // This table's number in log_.
  const size_t row_peers_;    // No peer, the peers, the others.
  const std::unique_ptr<std::atomic<DurationHistogram*>[]> rows_;

  mutable SystemMutex mutex_;
  std::vector<std::string> peers_ ABSL_GUARDED_BY(mutex_);
};

// Adds its own lifetime to the table, if there is one. If the table is logged, the thread's work
// until the end is recorded on behalf of this request.
class TimedRequest {
 public:
  // The request belongs to the thread's current span, or with `asked` to another daemon's span.
  TimedRequest(DurationTable* table, DurationTable::ClassId kind,
               DurationTable::PeerId peer = DurationTable::kNoPeer)
      : TimedRequest(table, kind, peer, CurrentSpan()) {}
  TimedRequest(DurationTable* table, DurationTable::ClassId kind, DurationTable::PeerId peer,
               SpanContext asked)
      : table_(table), kind_(kind), peer_(peer), begin_(Now()) {
    if (table_ != nullptr && table_->is_logged()) {
      logged_.span = BeginSpan(asked);
      scope_.emplace(logged_.span.own);
    }
  }
  ~TimedRequest() {
    if (table_ == nullptr) return;
    const Duration duration = Now() - begin_;
    table_->Add(kind_, peer_, duration);
    if (!scope_) return;
    logged_.begin = begin_;
    logged_.duration = duration;
    table_->Log(kind_, peer_, logged_);
  }
  TimedRequest(const TimedRequest&) = delete;
  TimedRequest& operator=(const TimedRequest&) = delete;

  void set_bytes(uint64_t bytes) { logged_.bytes = bytes; }
  void set_link(uint64_t span) { logged_.link = span; }

 private:
  static Time Now() { return SystemClock().Monotonic(); }

  DurationTable* const table_;
  const DurationTable::ClassId kind_;
  const DurationTable::PeerId peer_;
  const Time begin_;
  DurationTable::Logged logged_;
  std::optional<ScopedSpan> scope_;  // Set if the request is logged.
};

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_DURATION_TABLE_H_
