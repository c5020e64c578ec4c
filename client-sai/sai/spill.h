// Spiller: bytes without room on a file's nodes continue on other nodes. No stored byte moves. The
// layout is frozen, so that nobody stores by it; the hole that was to be filled is located on the
// nodes; and the manager assigns it to other nodes.
//
// Thread-safe. Calls manager and nodes and blocks within the thread's WaitBudget; the caller must
// not hold the inode's mutex, and must have no store in progress. Borrows the constructor's
// arguments.
#ifndef MOSA_CLIENT_SAI_SAI_SPILL_H_
#define MOSA_CLIENT_SAI_SAI_SPILL_H_

#include <cstdint>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class Spiller {
 public:
  Spiller(ManagerCalls& calls, NodeApi& nodes, RecallLog& recalls, AccessRights& rights,
          StoreGate& gate, NodeObjects& objects, Grants& grants, BlockCache& blocks, Stats& stats)
      : calls_(calls),
        nodes_(nodes),
        recalls_(recalls),
        rights_(rights),
        gate_(gate),
        objects_(objects),
        grants_(grants),
        blocks_(blocks),
        stats_(stats) {}

  // Moves the part of `range` that is not stored to nodes other than `full`. A failure changes
  // nothing. False: nothing had to change, or another client has changed it.
  Outcome<bool> Spill(Inode& inode, ByteRange range, const std::vector<NodeId>& full);

 private:
  Outcome<bool> GoOnElsewhere(Inode& inode, ByteRange range, const std::vector<NodeId>& full);
  Outcome<Done> CleanHole(Inode& inode, ByteRange hole, const std::vector<NodeId>& nodes);
  static Outcome<bool> LookAgain(Inode& inode, const Failure& failure);
  Outcome<ByteRange> HoleIn(Inode& inode, const DataAccess& access, ByteRange range,
                            const std::vector<NodeId>& full);
  Outcome<uint64_t> HoleBegin(Inode& inode, const Piece& piece);
  Outcome<ByteRange> HoleFrom(Inode& inode, const Layout& layout, uint64_t begin);
  void MoveRoom(Inode& inode, const Layout& from, const Layout& to, ByteRange hole);

  ManagerCalls& calls_;
  NodeApi& nodes_;
  RecallLog& recalls_;
  AccessRights& rights_;
  StoreGate& gate_;
  NodeObjects& objects_;
  Grants& grants_;
  BlockCache& blocks_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_SPILL_H_
