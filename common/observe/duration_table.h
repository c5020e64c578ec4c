// DurationTable: how long requests took, by their class and, where it matters, by the peer that was
// involved. What daemons keep of all requests at all times.
//
// To add is lock-free: three operations on counters of the class and peer, which requests
// of microseconds and more seldom touch at once. Counters are made with the first request of their
// class and peer (1.7 KiB each) and stay; their number is bounded: peers beyond the limit share one
// row. Safe from any thread; what is read while others add may miss their last additions, or have
// some of them only in their count and longest.
#ifndef MOSA_COMMON_OBSERVE_DURATION_TABLE_H_
#define MOSA_COMMON_OBSERVE_DURATION_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/duration_counts.h"
#include "common/base/strong_id.h"
#include "common/observe/request_log.h"

namespace mosa {

// Counters of one class and peer.
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
  // Its number in the list of classes.
  using ClassId = StrongId<struct DurationClassTag, size_t>;
  using PeerId = StrongId<struct DurationPeerTag, size_t>;
  static constexpr PeerId kNoPeer{0};
  // Whose row those share that came when the table was full. No node's name has a comma.
  static constexpr std::string_view kOtherPeers = "others, together";

  // A class without a name is never added to. `log`, if there is one, is told of what is logged
  // here; it outlives the table.
  DurationTable(std::vector<std::string> classes, size_t peers_max, RequestLog* log = nullptr);
  ~DurationTable();
  DurationTable(const DurationTable&) = delete;
  DurationTable& operator=(const DurationTable&) = delete;

  // The peer of this name, known from now on. Takes a lock: ask once per connection or call of some
  // length.
  PeerId PeerOf(std::string_view name);
  // Precondition: both are of this table.
  void Add(ClassId kind, PeerId peer, Duration duration);

  bool is_logged() const { return log_ != nullptr && log_->on(); }
  // The record of a request that began while is_logged.
  struct Logged {
    Span span;
    Time begin;  // Monotonic.
    Duration duration;
    uint64_t bytes = 0;
    uint64_t link = 0;  // The span whose work it waited for.
  };
  void Log(ClassId kind, PeerId peer, const Logged& request);

  // Rows that have counts: by class, then peer, in the order in which they became known.
  using Visitor = std::function<void(const std::string& kind, const std::string& peer,
                                     const DurationCounts& counts)>;
  void Visit(const Visitor& visit) const;

 private:
  size_t RowOf(ClassId kind, PeerId peer) const { return kind.value * row_peers_ + peer.value; }

  // Constant.
  const std::vector<std::string> classes_;
  const size_t peers_max_;
  RequestLog* const log_;
  const uint32_t log_table_;  // Its number there.
  const size_t row_peers_;    // Nobody, the peers, the others.
  const std::unique_ptr<std::atomic<DurationHistogram*>[]> rows_;

  mutable std::mutex mutex_;
  std::vector<std::string> peers_;  // Guarded by mutex_.
};

// Adds the time from its making to its end, if there is a table. While that is logged, what the
// thread does meanwhile is on behalf of this request.
class TimedRequest {
 public:
  // A part of what the thread works for; with `asked`, of what somebody else does.
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
  std::optional<ScopedSpan> scope_;  // While it is logged.
};

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_DURATION_TABLE_H_
