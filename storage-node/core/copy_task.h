// CopyTask: carries out one CopyOrder: what to ask, what to fetch, and when the copy is complete.
// Pure; one owner, which performs the actions of Next(), several at once if it likes, and reports
// each outcome.
//
// For each source the task keeps three sets of bytes: `dirty` (to be compared), `busy` (different,
// and being fetched) and `unsettled` (equal, but the source may still change it unseen). At first
// everything is dirty. A comparison takes a window of checksums from the source and from the own
// object. The source also reports what has changed since it was last asked; that becomes dirty
// again. The task is done when all three sets are empty and every source has reported, after the
// last fetch, that nothing has changed. So an answer from before a change never completes the task.
//
// While the file is followed, reported changes are fetched without being compared: that saves a
// round trip, and most of them are new bytes.
//
// Blocks that come from a source only in part (chunks or segments that are no multiple of a block)
// are fetched without being compared.
#ifndef MOSA_STORAGE_NODE_CORE_COPY_TASK_H_
#define MOSA_STORAGE_NODE_CORE_COPY_TASK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/block_sums.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"
#include "common/model/storage.h"

namespace mosa::node {

struct CopyLimits {
  // Size of one fetch; a multiple of a block. In a chain of nodes each hop delays the bytes by the
  // time of one fetch.
  uint64_t fetch_bytes = 128 << 10;
  // Changes of a followed file up to this size are fetched without being compared.
  uint64_t change_bytes = 2 << 20;
  uint64_t window_bytes = kSumsBytesMax;
  // In progress at once, so that a slow source does not delay the others.
  size_t fetches_per_source_max = 4;
  Duration give_up_after = Seconds(9);       // Without an answer from a source.
  Duration relay_wait_max = Seconds(10);     // For a relay to receive its own order.
  Duration retry_first = Milliseconds(100);  // Doubles up to `retry_max`.
  Duration retry_max = Seconds(1);
};

// A node reports a copy's progress this often.
inline constexpr Duration kCopyReportEvery = Seconds(1);

struct CopyAction {
  enum class Kind : uint8_t {
    // Asks for the source's checksums of `range` and its changes after `after_change`, then for the
    // own checksums. With `hold` the source may wait until something changes.
    kAsk = 1,
    // Fetches `range`, at most CopyLimits::fetch_bytes, from the source into the own object.
    kFetch,
    kClear,  // Clears `range` of the own object: it is a hole in the source.
    kCut,    // Cuts the own object at range.begin.
  };
  Kind kind = Kind::kAsk;
  NodeId source{};
  ByteRange range{};
  uint64_t after_change = 0;
  bool hold = false;
  // For a held question: only changes of these ranges end the wait.
  std::vector<ByteRange> about{};
  // Fetch and clear: these bytes will not change. Ask: nothing else is in progress.
  bool settles = false;
  Time begun{};
  uint64_t order = 0;  // The order under which it was begun.
};

// What the owner has capacity for now, besides questions that are answered at once.
struct CopyRoom {
  bool fetches = true;
  bool holds = true;
};

class CopyTask {
 public:
  // Precondition: order.sources is bound, names only nodes in order.nodes or kNoNode, and has
  // chunk_bytes > 0.
  explicit CopyTask(CopyOrder order, CopyLimits limits = {});

  // Returns true if `next` concerns the same bytes of the same sources as this order, which
  // follows.
  bool GoesOnAs(const CopyOrder& next) const;
  // Replaces the order by `next`. Everything is compared again, but fetches in progress continue:
  // their bytes are compared when they arrive, instead of being fetched twice. Precondition:
  // GoesOnAs(next).
  void GoOnAs(CopyOrder next);

  // Returns the next action, if one can begin now.
  std::optional<CopyAction> Next(Time now, CopyRoom room = {});
  // Returns when, after `now`, to call Next again even if nothing was reported; absent if not
  // needed.
  std::optional<Time> next_time(Time now) const;

  // Report the outcome of an action. `own` covers the same range as `source`; only its blocks and
  // object_bytes are used.
  void OnSums(const CopyAction& ask, const BlockSums& source, const BlockSums& own, Time now);
  void OnDone(const CopyAction& action, Time now);
  // ResourceExhausted, DataLoss and FailedPrecondition end the task. Other failures are retried
  // until the source has not answered for `give_up_after`.
  void OnFailed(const CopyAction& action, const Status& status, Time now);

  // Returns true if all bytes of `range` that have a source are final and as ordered. Always false
  // while the file is followed.
  bool Settled(ByteRange range) const;
  // Returns what has become settled since the last call, including bytes in between that are not
  // this node's.
  std::vector<ByteRange> TakeSettled();

  bool done() const { return done_; }
  const std::optional<Failure>& failure() const { return failure_; }
  bool finished() const { return done_ || failure_.has_value(); }
  uint64_t copied_bytes() const { return copied_bytes_; }
  uint64_t fetched_bytes() const { return fetched_bytes_; }
  const CopyOrder& order() const { return order_; }

 private:
  struct Source {
    NodeId node{};
    bool relay = false;
    uint64_t relay_order = 0;  // The relay vouches for its bytes under this order or a later one.
    uint64_t incarnation = 0;
    IntervalSet dirty{};
    IntervalSet busy{};
    IntervalSet unsettled{};
    std::deque<CopyAction> wanted{};  // Their ranges are in `busy`.
    size_t fetches = 0;               // In progress; their ranges are in `busy` too.
    uint64_t change = 0;
    bool asking = false;
    ByteRange asked{};       // While `asking`; in none of the sets.
    bool confirmed = false;  // Everything is settled, and nothing changed afterwards.
    uint32_t failures = 0;   // Since its last answer.
    Time failing_since{};
    uint32_t failed_fetches = 0;  // Since the last success.
    Time fetches_fail_since{};
    Time retry_at{};
    std::optional<Time> without_order_since{};

    bool settled() const { return dirty.empty() && busy.empty() && unsettled.empty(); }
  };

  std::optional<CopyAction> NextOf(Source& source, Time now, CopyRoom room);
  CopyAction Ask(Source& source, ByteRange window, bool hold);
  // Returns what a held question waits for: changes of bytes from this source that may still
  // change, as far as kAboutRangesMax ranges can name them, and of everything after these.
  std::vector<ByteRange> AwaitedOf(const Source& source) const;
  std::optional<ByteRange> NextWindow(const Source& source) const;
  // Returns the first contiguous bytes of [from, limit) that come from `node`.
  std::optional<ByteRange> NextRun(NodeId node, uint64_t from, uint64_t limit) const;
  void NoteChanges(Source& source, const CopyAction& ask, const BlockSums& sums);
  void FetchChanged(Source& source, ByteRange range, uint64_t object_bytes);
  // Sorts a window's blocks: equal, to fetch, or to clear.
  void Compare(Source& source, const CopyAction& ask, const BlockSums& theirs, const BlockSums& own,
               bool final);
  void CompareBlock(Source& source, ByteRange part, const BlockSums& theirs_all,
                    const BlockSums& own_all, size_t i, bool settles);
  void DropTail(Source& source, const BlockSums& theirs, const BlockSums& own, bool final);
  void Want(Source& source, CopyAction::Kind kind, ByteRange range, bool settles);
  // Returns false for a relay that has no order for this version (yet).
  bool CheckRelay(Source& source, const BlockSums& sums, Time now);
  bool AllConfirmed() const;
  void Finish();
  void Fail(StatusCode code, std::string message);
  Source* Find(NodeId node);
  void SetRelay(Source& source) const;

  CopyOrder order_;
  const CopyLimits limits_;
  bool owns_all_ = true;  // There is a source for every byte.
  std::vector<Source> sources_;
  size_t turn_ = 0;  // Index of the source to consider first.
  bool cut_begun_ = false;
  bool done_ = false;
  std::optional<Failure> failure_;
  std::vector<ByteRange> news_;
  uint64_t copied_bytes_ = 0;
  uint64_t fetched_bytes_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_COPY_TASK_H_
