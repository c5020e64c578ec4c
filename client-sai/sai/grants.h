// Grants: the room on storage nodes that this mount holds ahead of need.
//
// Thread-safe. Take and Reserve may call the manager; the other methods do not block.
#ifndef MOSA_CLIENT_SAI_SAI_GRANTS_H_
#define MOSA_CLIENT_SAI_SAI_GRANTS_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/outcome.h"
#include "common/base/clock.h"
#include "common/model/session.h"

namespace mosa::sai {

class Grants {
 public:
  Grants(ManagerApi& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

  // Uses `bytes` of the room on `node`, and requests more ahead of need. False if the node has no
  // more. A failure comes from the manager.
  Outcome<bool> Take(NodeId node, uint64_t bytes);
  // Returns room that was taken and not used.
  void PutBack(NodeId node, uint64_t bytes);
  // Returns what was used and not yet reported. The caller reports it.
  uint64_t TakeUnreported(NodeId node);

  // Reserves `bytes` for the kernel's direct writes. Reserved room is neither used by others nor
  // given back. False, without a reservation, if the node lacks the room or does not have ample
  // room besides (PassthroughWriteAllowed). What the manager said up to a second ago counts.
  bool Reserve(NodeId node, uint64_t bytes);
  // The kernel has used `used_bytes`, of which `reserved_bytes` were reserved.
  void Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  // Releases a reservation that is no longer needed.
  void Unreserve(NodeId node, uint64_t bytes);

  // Returns unused room at the manager's request.
  void GiveBack(NodeId node);
  // Returns room that nobody has used for kIdleAfter.
  void GiveBackIdle();
  void GiveBackAll();

  std::vector<HeldGrant> Held() const;
  // A new session knows only what is held. Earlier use was settled, or ended with the old session.
  void ForgetUnreported();

 private:
  static constexpr Duration kIdleAfter = Seconds(5);
  static constexpr Duration kKnownFor = Seconds(1);
  struct Room {
    uint64_t held = 0;
    uint64_t unreported = 0;
    uint64_t last_wish = 0;
    uint64_t reserved = 0;  // Not part of `held`.
    bool asking = false;
    Time last_used;
    // When the manager last reported the node's room; absent: never.
    std::optional<Time> heard;
    uint64_t free_bytes = 0;
    uint64_t limit_bytes = 0;
  };
  GrantRequest Ask(NodeId node, Room& room, uint64_t bytes);  // The caller must hold mutex_.
  void AskAhead(NodeId node, Room& room);                     // The caller must hold mutex_.
  void Settle(NodeId node, const std::vector<Reply>& replies);

  ManagerApi& manager_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::map<NodeId, Room> rooms_;  // Guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_GRANTS_H_
