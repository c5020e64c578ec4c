// CopyTask: how a node carries out one CopyOrder: what to ask, what to fetch, when it is done.
// Pure; one owner, which performs what Next() says, several things at once if it likes, and reports
// what came of each.
//
// For each source the task keeps three sets of bytes: `dirty` (to be compared), `busy` (different,
// and being fetched) and `unsettled` (equal, but the source may still change it unseen). All begins
// dirty. A comparison takes a window of checksums from the source and from the own object; the
// source also says what has changed there since it was last asked, which becomes dirty again. The
// task is done when all three sets are empty and every source has said, after the last fetch, that
// nothing has changed. So it is never done by what a source said before a change.
//
// While the file is followed, what a source says to have changed is fetched without being compared:
// that saves a round trip, and most of it is new.
//
// Blocks that only partly come from a source (chunks or segments that are no multiple of a block)
// are not compared but fetched.
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
  // At once; a multiple of a block. What passes through a chain of nodes is late by the time that
  // one fetch takes for each of them.
  uint64_t fetch_bytes = 128 << 10;
  // A change of at most so much is fetched from a followed file without being compared.
  uint64_t change_bytes = 2 << 20;
  uint64_t window_bytes = kSumsBytesMax;
  // Under way at once: a source that is slow must not keep others waiting.
  size_t fetches_per_source_max = 4;
  Duration give_up_after = Seconds(9);       // Without an answer of a source.
  Duration relay_wait_max = Seconds(10);     // For a relay to hear of its own order.
  Duration retry_first = Milliseconds(100);  // Doubles up to the next.
  Duration retry_max = Seconds(1);
};

struct CopyAction {
  enum class Kind : uint8_t {
    kAsk = 1,  // The source's checksums of `range`, with its changes after `after_change`, and then
               // the own ones. With `hold` the source may wait until something changes.
    kFetch,    // `range` of the source, at most CopyLimits::fetch_bytes, into the own object.
    kClear,    // `range` of the own object: it is a hole in the source.
    kCut,      // The own object at range.begin.
  };
  Kind kind = Kind::kAsk;
  NodeId source{};
  ByteRange range{};
  uint64_t after_change = 0;
  bool hold = false;
  std::vector<ByteRange> about{};  // For a held question: changes that end the wait.
  // A fetch or clear: the bytes that come will not change. A question: nothing else is under way.
  bool settles = false;
  Time begun{};
  uint64_t order = 0;  // Under which it was begun.
};

// What there is room for now, besides questions that are answered at once.
struct CopyRoom {
  bool fetches = true;
  bool holds = true;
};

class CopyTask {
 public:
  // Precondition: order.sources is bound and names no node that is not in order.nodes, or only
  // kNoNode; chunk_bytes > 0.
  explicit CopyTask(CopyOrder order, CopyLimits limits = {});

  // True if `next` is about the same bytes of the same sources as this order, which follows.
  bool GoesOnAs(const CopyOrder& next) const;
  // `next` takes the place of the order. All is compared (again), but what is being fetched goes on
  // and is compared when it has come, instead of being fetched twice. Precondition: GoesOnAs(next).
  void GoOnAs(CopyOrder next);

  // What to do next, if there is anything to do now that is not under way.
  std::optional<CopyAction> Next(Time now, CopyRoom room = {});
  // When, after `now`, Next should be asked again though nothing was reported: absent if not
  // needed.
  std::optional<Time> next_time(Time now) const;

  // What came of an action. Own checksums cover the same range; of them only blocks, and
  // object_bytes, count.
  void OnSums(const CopyAction& ask, const BlockSums& source, const BlockSums& own, Time now);
  void OnDone(const CopyAction& action, Time now);
  // ResourceExhausted, DataLoss and FailedPrecondition end the task; others are tried again until
  // the source has not answered for too long.
  void OnFailed(const CopyAction& action, const Status& status, Time now);

  // True if all of `range` that the order names a source for is as the order wants it, for good.
  // Never while the file is followed.
  bool Settled(ByteRange range) const;
  // What has become so since the last call (with what is not this node's in between).
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
    uint64_t relay_order = 0;  // By which, or by a later one, it settles what counts.
    uint64_t incarnation = 0;
    IntervalSet dirty{};
    IntervalSet busy{};
    IntervalSet unsettled{};
    std::deque<CopyAction> wanted{};  // Its ranges are in `busy`.
    size_t fetches = 0;               // Under way; theirs too.
    uint64_t change = 0;
    bool asking = false;
    ByteRange asked{};       // While asking; it is in none of the sets.
    bool confirmed = false;  // All is settled, and nothing changed after that.
    uint32_t failures = 0;   // Since it last answered.
    Time failing_since{};
    uint32_t failed_fetches = 0;  // Since one succeeded.
    Time fetches_fail_since{};
    Time retry_at{};
    std::optional<Time> without_order_since{};

    bool settled() const { return dirty.empty() && busy.empty() && unsettled.empty(); }
  };

  std::optional<CopyAction> NextOf(Source& source, Time now, CopyRoom room);
  CopyAction Ask(Source& source, ByteRange window, bool hold);
  // What a held question waits for: changes of what comes from this source and may yet change, as
  // far as kAboutRangesMax ranges say it, and of all that lies behind them.
  std::vector<ByteRange> AwaitedOf(const Source& source) const;
  std::optional<ByteRange> NextWindow(const Source& source) const;
  // The first bytes of [from, limit) that come from `node`, as far as they lie together.
  std::optional<ByteRange> NextRun(NodeId node, uint64_t from, uint64_t limit) const;
  void NoteChanges(Source& source, const CopyAction& ask, const BlockSums& sums);
  void FetchChanged(Source& source, ByteRange range, uint64_t object_bytes);
  // Sorts a window's blocks: equal, to be fetched, to be cleared.
  void Compare(Source& source, const CopyAction& ask, const BlockSums& theirs, const BlockSums& own,
               bool final);
  void CompareBlock(Source& source, ByteRange part, const BlockSums& theirs_all,
                    const BlockSums& own_all, size_t i, bool settles);
  void DropTail(Source& source, const BlockSums& theirs, const BlockSums& own, bool final);
  void Want(Source& source, CopyAction::Kind kind, ByteRange range, bool settles);
  // False: a relay that has no order for this version (yet).
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
  size_t turn_ = 0;  // Whose turn it is first.
  bool cut_begun_ = false;
  bool done_ = false;
  std::optional<Failure> failure_;
  std::vector<ByteRange> news_;
  uint64_t copied_bytes_ = 0;
  uint64_t fetched_bytes_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_COPY_TASK_H_
