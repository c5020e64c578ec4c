// SimulatedGrants: the room on storage nodes that one mount holds ahead of need, by the rules of a
// real mount (client-sai/core/rules.h).
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_

#include <cstdint>
#include <map>

#include "common/model/ids.h"
#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/simulated_manager.h"

namespace mosa::predict {

class SimulatedGrants {
 public:
  // All arguments must outlive this.
  SimulatedGrants(des::EventLoop& loop, SimulatedManager& manager, ClientId client)
      : loop_(loop), manager_(manager), client_(client) {}

  // Uses up `bytes` of the room on `node`, and asks the manager if too little is held. Returns
  // false if the node has no more.
  des::Activity<bool> Take(NodeId node, uint64_t bytes);
  // Like Take(), but only from what is held already. Returns false if that is too little.
  bool TakeHeld(NodeId node, uint64_t bytes);
  // Undoes a Take().
  void PutBack(NodeId node, uint64_t bytes);
  // Sets `bytes` aside for the kernel to write directly. Returns false if it may not.
  des::Activity<bool> Reserve(NodeId node, uint64_t bytes);
  // Ends a reservation: the kernel has used `used_bytes` of `reserved_bytes`.
  void Settle(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  // Returns the bytes used and not reported since the last call; the caller must report them.
  uint64_t TakeUnreported(NodeId node);

  // Returns unused room on `node`, as the manager has asked.
  void GiveBack(NodeId node);
  // Gives back room that was not used for five seconds.
  void GiveBackIdle();

 private:
  struct Room {
    uint64_t held = 0;
    uint64_t unreported = 0;
    uint64_t last_wish = 0;
    bool asking = false;
    Time last_used;
    bool heard = false;
    Time heard_at;
    uint64_t free_bytes = 0;
    uint64_t limit_bytes = 0;
  };
  des::Activity<void> Ask(NodeId node, uint64_t bytes);
  bool KnowsEnough(const Room& room, uint64_t bytes, bool* refused) const;

  des::EventLoop& loop_;
  SimulatedManager& manager_;
  const ClientId client_;
  std::map<NodeId, Room> rooms_;
  des::Signal answered_{loop_};
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_
