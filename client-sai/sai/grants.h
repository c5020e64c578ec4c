// Grants: the room on storage nodes that this mount holds ahead of need.
//
// Thread-safe. Take and Pin may call the manager; the rest does not wait.
#ifndef MOSA_CLIENT_SAI_SAI_GRANTS_H_
#define MOSA_CLIENT_SAI_SAI_GRANTS_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/outcome.h"
#include "common/base/clock.h"
#include "common/model/session.h"

namespace mosa::sai {

class Grants {
 public:
  Grants(ManagerApi& manager, const Clock& clock) : manager_(manager), clock_(clock) {}

  // Uses up `bytes` of the room on `node`, and asks for more ahead of need. False: the node has no
  // more. The failure is the manager's.
  Outcome<bool> Take(NodeId node, uint64_t bytes);
  // Room that was taken and then not used.
  void PutBack(NodeId node, uint64_t bytes);
  // The kernel has used `bytes` by itself.
  void Charge(NodeId node, uint64_t bytes);
  // What was used and not reported since the last call; the caller reports it.
  uint64_t TakeUnreported(NodeId node);

  // Tries to hold at least `bytes`, and keeps what is held from being given back until Unpin.
  // Returns how much is held. May call the manager.
  uint64_t Pin(NodeId node, uint64_t bytes);
  void Unpin(NodeId node);

  // The manager wants unused room back.
  void GiveBack(NodeId node);
  // Gives back what nobody has used for kIdleAfter.
  void GiveBackIdle();
  void GiveBackAll();

  std::vector<HeldGrant> Held() const;
  // A new session knows only what is held: earlier use was settled, or went with the old one.
  void ForgetUnreported();

 private:
  static constexpr Duration kIdleAfter = Seconds(5);
  struct Room {
    uint64_t held = 0;
    uint64_t unreported = 0;
    uint64_t last_wish = 0;
    uint32_t pins = 0;
    bool asking = false;
    Time last_used;
  };
  GrantRequest Ask(NodeId node, Room& room, uint64_t bytes);  // Caller holds mutex_.
  void AskAhead(NodeId node, Room& room);                     // Caller holds mutex_.
  void Settle(NodeId node, const std::vector<Reply>& replies);

  ManagerApi& manager_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::map<NodeId, Room> rooms_;  // Guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_GRANTS_H_
