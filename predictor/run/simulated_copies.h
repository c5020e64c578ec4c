// SimulatedCopies: how storage nodes carry out the manager's orders to hold copies. A node asks the
// order's sources what they have, fetches what it lacks, a few stretches at once, and reports when
// it has everything or no more room. A source may itself be fetching (a relay of the order). The
// node then waits for what the relay does not have yet, so that bytes pass through a chain of nodes
// stretch by stretch. When a source's order ends, the manager sends new orders to the nodes that
// fetch from it.
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
  // All arguments must outlive this.
  SimulatedCopies(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager)
      : loop_(loop), platform_(platform), machines_(machines), manager_(manager) {}

  // Replaces any earlier order for the file. Fetches in progress are kept, unless they are of
  // another version.
  void Order(NodeId node, const CopyOrder& order);
  // Drops the order; the results of fetches in progress are discarded.
  void Cancel(NodeId node, FileId file);
  // More bytes of a file that is being written have been stored.
  void NoteWritten(FileId file);

 private:
  using Key = std::pair<FileId, NodeId>;
  struct Task {
    explicit Task(des::EventLoop& loop) : wake(loop) {}
    // The end of the prefix that the node has.
    uint64_t has_end() const {
      return under_way.empty() ? asked_end : std::min(asked_end, under_way.begin()->first);
    }
    void DropUnderWay();
    void BeginAnew();

    CopyOrder order;
    uint64_t asked_end = 0;                  // Everything below is present or being fetched.
    std::map<uint64_t, uint64_t> under_way;  // Fetches in progress: begin and end.
    IntervalSet taken;                       // Fetched, or being fetched.
    uint64_t times_dropped = 0;  // A fetch that began before the last drop is discarded.
    uint64_t fetched_bytes = 0;
    NodeId waits_for = kNoNode;
    bool runs = false;
    bool cancelled = false;
    bool full = false;
    des::Signal wake;
  };
  des::Activity<void> Carry(Key key);
  // Returns false if nothing can begin now.
  bool BeginNext(Key key, Task& task);
  bool Has(NodeId source, const CopyOrder& order, ByteRange range) const;
  des::Activity<void> Fetch(Key key, NodeId source, ByteRange range);
  void NotePassed(Key key);
  // Asks all sources.
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
