// GrantBook: the room on storage nodes that a mount holds ahead of need. It decides what may be
// used, when to ask the manager for more, and what to give back.
//
// A pure machine, driven by the mount (sai::Grants) and by the simulator: the caller sends the
// requests that it returns, tells it the replies, and repeats a call that has to wait. Not
// thread-safe.
#ifndef MOSA_CLIENT_SAI_CORE_GRANT_BOOK_H_
#define MOSA_CLIENT_SAI_CORE_GRANT_BOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/session.h"

namespace mosa::sai {

class GrantBook {
 public:
  // What one Take or Reserve has asked for. Pass the same one until the step is kDone or kRefused.
  struct Attempt {
    bool asked = false;
    bool failed = false;  // The last question was not answered with a grant.
    uint64_t wanted_bytes = 0;
    uint64_t granted_bytes = 0;
    uint64_t held_before = 0;
    uint32_t fruitless = 0;  // How often what was granted did not stay.
  };
  enum class Next : uint8_t {
    kDone,     // If there is a request, it is ahead of need: send it, and do not wait.
    kRefused,  // The node has no more room; nothing was taken.
    kAsk,      // Send the request, pass its reply to Settle() with the attempt, and repeat.
    kWait,     // The answer to another question is due: repeat after the next Settle().
  };
  struct Step {
    Next next = Next::kDone;
    std::optional<GrantRequest> request{};
  };

  // Uses `bytes` of the room on `node`.
  Step Take(NodeId node, uint64_t bytes, Attempt& attempt, Time now);
  // The same, but only from what is held: false, with nothing changed, if that is too little.
  // `ahead` becomes a request to send without waiting, if one is due.
  bool TakeHeld(NodeId node, uint64_t bytes, Time now, std::optional<GrantRequest>& ahead);
  // Reserves `bytes` for the kernel's direct writes. Reserved room is neither used by others nor
  // given back. Refused if the node lacks the room or does not have ample room besides
  // (PassthroughWriteAllowed). What the manager said up to a second ago counts.
  Step Reserve(NodeId node, uint64_t bytes, Attempt& attempt, Time now);
  // The reply to a request of this node; null if it failed. `attempt` is null for a request that
  // was ahead of need. Ignored if nothing was asked.
  void Settle(NodeId node, const GrantReply* reply, Time now, Attempt* attempt);

  // Returns room that was taken and not used.
  void PutBack(NodeId node, uint64_t bytes);
  // The kernel has used `used_bytes`, of which `reserved_bytes` were reserved.
  void Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes, Time now);
  // Releases a reservation that is no longer needed.
  void Unreserve(NodeId node, uint64_t bytes);
  // Returns what was used and not yet reported. The caller reports it.
  uint64_t TakeUnreported(NodeId node);

  // The request that returns all unused room of a node; nothing if there is none.
  std::optional<GrantRequest> GiveBack(NodeId node);
  // The nodes with room, or use to report, that were not used for five seconds.
  std::vector<NodeId> Idle(Time now) const;
  std::vector<NodeId> Nodes() const;
  // What a new session declares, reservations included.
  std::vector<HeldGrant> Held() const;
  // A new session knows only what is held. Earlier use was settled, or ended with the old session.
  void ForgetUnreported();

 private:
  struct Room {
    uint64_t held = 0;
    uint64_t unreported = 0;
    uint64_t last_wish = 0;
    uint64_t reserved = 0;  // Not part of `held`.
    bool asking = false;
    Time last_used;
    std::optional<Time> heard;  // When the manager last told the node's room.
    uint64_t free_bytes = 0;
    uint64_t limit_bytes = 0;
  };
  static GrantRequest Ask(NodeId node, Room& room, uint64_t bytes);
  static Step AskFor(NodeId node, Room& room, uint64_t bytes, Attempt& attempt);

  std::map<NodeId, Room> rooms_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_GRANT_BOOK_H_
