// SimulatedCopies: how storage nodes carry out the manager's orders to hold copies of files: each
// fetches what it lacks from the nodes that the order names, one stretch after the other, and
// reports when it has all, or no room for more.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_

#include <cstdint>
#include <map>
#include <utility>

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
      : loop_(loop), platform_(platform), machines_(machines), manager_(manager), changed_(loop) {}

  // In the place of any earlier order for the file.
  void Order(NodeId node, const CopyOrder& order);
  void Cancel(NodeId node, FileId file);
  // More of a file that is being written is there.
  void NoteWritten() { changed_.Give(); }

 private:
  using Key = std::pair<NodeId, FileId>;
  struct Task {
    CopyOrder order;
    uint64_t begin = 0;  // Below, the node has what it is to hold.
    uint64_t fetched_bytes = 0;
    bool runs = false;
    bool cancelled = false;
  };
  des::Activity<void> Carry(Key key);
  // False: the node has no room.
  des::Activity<bool> FetchNext(Key key, uint64_t limit);
  des::Activity<void> Report(Key key, bool is_full = false);

  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  SimulatedManager& manager_;
  std::map<Key, Task> tasks_;
  des::Signal changed_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
