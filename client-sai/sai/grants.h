// Grants: the room on storage nodes that this mount holds ahead of need.
//
// Thread-safe. Take and Reserve may call the manager; the rest does not wait.
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

  // Uses up `bytes` of the room on `node`, and asks for more ahead of need. False: the node has no
  // more. The failure is the manager's.
  Outcome<bool> Take(NodeId node, uint64_t bytes);
  // Room that was taken and then not used.
  void PutBack(NodeId node, uint64_t bytes);
  // What was used and not reported since the last call; the caller reports it.
  uint64_t TakeUnreported(NodeId node);

  // Sets `bytes` aside for what the kernel is going to write by itself; nobody else uses them, and
  // they are not given back. False, and nothing is set aside, if the node has not so much, or no
  // ample room besides (PassthroughWriteAllowed) by what the manager said a second ago at most.
  bool Reserve(NodeId node, uint64_t bytes);
  // The kernel has used `used_bytes`, of which `reserved_bytes` had been set aside.
  void Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes);
  // Set aside and no longer needed.
  void Unreserve(NodeId node, uint64_t bytes);

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
  static constexpr Duration kKnownFor = Seconds(1);
  struct Room {
    uint64_t held = 0;
    uint64_t unreported = 0;
    uint64_t last_wish = 0;
    uint64_t reserved = 0;  // Not in `held`.
    bool asking = false;
    Time last_used;
    // What the manager last said of the node; never, if `heard` is absent.
    std::optional<Time> heard;
    uint64_t free_bytes = 0;
    uint64_t limit_bytes = 0;
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
