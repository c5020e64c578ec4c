// SimulatedGrants: the room on storage nodes that one mount holds ahead of need, by the same rules
// (client-sai/core/rules.h) as a real one.
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
  // All outlive this.
  SimulatedGrants(des::EventLoop& loop, SimulatedManager& manager, ClientId client)
      : loop_(loop), manager_(manager), client_(client) {}

  // Uses up `bytes` of the room on `node`. False: the node has no more.
  des::Activity<bool> Take(NodeId node, uint64_t bytes);
  // The same of what is held already. False: that is less.
  bool TakeHeld(NodeId node, uint64_t bytes);
  // What was taken is not used after all.
  void PutBack(NodeId node, uint64_t bytes);
  // Sets `bytes` aside for what the kernel writes by itself. False: it may not.
  des::Activity<bool> Reserve(NodeId node, uint64_t bytes);
  // The kernel has used `used_bytes` of `reserved_bytes`, and is done.
  void Settle(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  // What was used and not reported since the last call; the caller reports it.
  uint64_t TakeUnreported(NodeId node);

  // The manager wants unused room back.
  void GiveBack(NodeId node);
  // Gives back what nobody has used for five seconds.
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
