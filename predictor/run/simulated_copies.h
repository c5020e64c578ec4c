// SimulatedCopies: how storage nodes carry out the manager's orders to hold copies of files: each
// asks its sources what they have, fetches what it lacks from them, a few stretches at once, and
// reports when it has all, or no room for more. A source may be fetching itself, as the
// order says (its relays): what it does not have yet by that order of its own is waited for, so
// that bytes pass through a chain of nodes stretch by stretch. If a source's order ends, the
// manager tells those that fetch from it anew where to fetch.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "common/model/ranges.h"
#include "common/model/storage.h"
#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"

namespace mosa::predict {

class SimulatedManager;

class SimulatedCopies {
 public:
  // All outlive this.
  SimulatedCopies(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager)
      : loop_(loop), platform_(platform), machines_(machines), manager_(manager) {}

  // In the place of any earlier order for the file. What is under way comes, unless it is of
  // another version.
  void Order(NodeId node, const CopyOrder& order);
  // What is under way comes for nobody.
  void Cancel(NodeId node, FileId file);
  // More of a file that is being written is there.
  void NoteWritten(FileId file);

 private:
  using Key = std::pair<FileId, NodeId>;
  struct Task {
    explicit Task(des::EventLoop& loop) : wake(loop) {}
    // Below, the node has what it is to hold.
    uint64_t has_end() const {
      return under_way.empty() ? asked_end : std::min(asked_end, under_way.begin()->first);
    }
    void DropUnderWay();
    void BeginAnew();

    CopyOrder order;
    uint64_t asked_end = 0;                  // Below, it is there or is being fetched.
    std::map<uint64_t, uint64_t> under_way;  // What is being fetched: begin and end.
    IntervalSet taken;                       // What was fetched, or is being.
    uint64_t times_dropped = 0;              // What came for an earlier time is old.
    uint64_t fetched_bytes = 0;
    NodeId waits_for = kNoNode;
    bool runs = false;
    bool cancelled = false;
    bool full = false;
    des::Signal wake;
  };
  des::Activity<void> Carry(Key key);
  // False: there is nothing to begin now.
  bool BeginNext(Key key, Task& task);
  bool Has(NodeId source, const CopyOrder& order, ByteRange range) const;
  des::Activity<void> Fetch(Key key, NodeId source, ByteRange range);
  void NotePassed(Key key);
  // All its sources.
  des::Activity<void> Ask(Key key, uint64_t answer_bytes);
  des::Activity<void> Report(Key key);

  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  SimulatedManager& manager_;
  std::map<Key, Task> tasks_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
