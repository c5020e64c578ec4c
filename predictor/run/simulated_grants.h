// SimulatedGrants: the room on storage nodes that one mount holds ahead of need. The GrantBook of a
// real mount decides; this waits for the manager.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_

#include <cstdint>

#include "client-sai/core/grant_book.h"
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

  // As in GrantBook. False: refused.
  des::Activity<bool> Take(NodeId node, uint64_t bytes) {
    return CarryOut(&sai::GrantBook::Take, node, bytes);
  }
  bool TakeHeld(NodeId node, uint64_t bytes);
  void PutBack(NodeId node, uint64_t bytes) { book_.PutBack(node, bytes); }
  des::Activity<bool> Reserve(NodeId node, uint64_t bytes) {
    return CarryOut(&sai::GrantBook::Reserve, node, bytes);
  }
  // Ends a reservation: the kernel has used `used_bytes` of `reserved_bytes`.
  void Settle(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  uint64_t TakeUnreported(NodeId node) { return book_.TakeUnreported(node); }

  // Returns unused room on `node`, as the manager has asked.
  void GiveBack(NodeId node);
  void GiveBackIdle();

 private:
  using Decision = sai::GrantBook::Step (sai::GrantBook::*)(NodeId, uint64_t,
                                                            sai::GrantBook::Attempt&, Time);
  des::Activity<bool> CarryOut(Decision decide, NodeId node, uint64_t bytes);
  des::Activity<void> Ask(GrantRequest request, sai::GrantBook::Attempt* attempt);

  des::EventLoop& loop_;
  SimulatedManager& manager_;
  const ClientId client_;
  sai::GrantBook book_;
  des::Signal answered_{loop_};
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_GRANTS_H_
