// SizeChanges: truncate and fallocate, which change the objects of a file on all of its nodes or on
// none, as far as this can be known beforehand.
//
// Thread-safe. All methods but NoteCut call manager and nodes and block within the thread's
// WaitBudget; the caller must not hold the inode's mutex. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_SIZE_CHANGES_H_
#define MOSA_CLIENT_SAI_SAI_SIZE_CHANGES_H_

#include <cstdint>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/sync.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class SizeChanges {
 public:
  // `reads`: runs what is done on several nodes at a time.
  SizeChanges(NodeApi& nodes, HandleTable& handles, Lease& lease, NodeStates& node_states,
              AttributeCache& attributes, AccessRights& rights, StoreGate& gate,
              NodeObjects& objects, WriteBehind& write_behind, Writer& writer, Releases& releases,
              BlockCache& blocks, Executor& reads, Stats& stats)
      : nodes_(nodes),
        handles_(handles),
        lease_(lease),
        node_states_(node_states),
        attributes_(attributes),
        rights_(rights),
        gate_(gate),
        objects_(objects),
        write_behind_(write_behind),
        writer_(writer),
        releases_(releases),
        blocks_(blocks),
        reads_(reads),
        stats_(stats) {}

  // Does everything that a new size requires before the manager records it. The caller must hold
  // the inode's io, and call EndResize in the end, however this ends.
  Outcome<Done> Resize(Inode& inode, uint64_t size_bytes);
  // The manager has the new size.
  void NoteCut(Inode& inode, uint64_t size_bytes, const AttributesReply& reply, Mark mark);
  void EndResize(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);

  // fallocate(2).
  Outcome<Done> Allocate(HandleId handle, int mode, uint64_t offset, uint64_t length);

 private:
  // Removes the bytes from `removed.begin` on; `removed.end` is the size before.
  Outcome<Done> CutObjects(Inode& inode, ByteRange removed);
  Outcome<Done> CutObjectsOf(Inode& inode, const DataAccess& access, ByteRange removed);
  static Outcome<Done> LayOutAnew(Inode& inode, const DataAccess& access);
  void EndPartialChange(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);

  Outcome<Done> AllocateRange(Inode& inode, int mode, ByteRange range);
  Outcome<bool> AllocatePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                              bool zeroes, std::vector<NodeId>* refused);
  Outcome<Done> PunchInline(Inode& inode, ByteRange range);
  Outcome<Done> PunchObjects(Inode& inode, ByteRange range);

  NodeApi& nodes_;
  HandleTable& handles_;
  Lease& lease_;
  NodeStates& node_states_;
  AttributeCache& attributes_;
  AccessRights& rights_;
  StoreGate& gate_;
  NodeObjects& objects_;
  WriteBehind& write_behind_;
  Writer& writer_;
  Releases& releases_;
  BlockCache& blocks_;
  Executor& reads_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_SIZE_CHANGES_H_
