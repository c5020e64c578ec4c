// WriteBehind: the bytes that a mount has taken and has yet to store on other nodes. Sends them in
// extents, and moves on to other nodes when those of a file are full.
//
// Thread-safe. Buffer, Drain, DrainOverlap and SpillPatiently block within the thread's WaitBudget;
// the caller must hold the inode's io and not its mutex. What cannot be stored is reported by the
// inode's error. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_WRITE_BEHIND_H_
#define MOSA_CLIENT_SAI_SAI_WRITE_BEHIND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client-sai/core/outcome.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/buffered_bytes.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_set.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/spill.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class WriteBehind {
 public:
  WriteBehind(const FilesystemOptions& options, InodeTable& inodes, NodeStates& node_states,
              StoreGate& gate, NodeObjects& objects, Spiller& spiller, BlockCache& blocks,
              KernelPages& pages, Stats& stats, const Clock& clock);

  // Takes the data of a piece, once there is room for them.
  Outcome<Done> Buffer(Inode& inode, const Piece& piece, std::span<const std::byte> data,
                       uint64_t chunk_bytes, const Memory& memory);
  // Stores everything buffered, and spills what nodes had no room for.
  void Drain(Inode& inode);
  // The same, if any of it overlaps `range`.
  void DrainOverlap(Inode& inode, ByteRange range);

  // What is known of the spills of one piece.
  struct SpillProgress {
    std::vector<NodeId> full;
    size_t attempt = 0;  // How often no node had room.
    std::optional<Time> fruitless_since;
  };
  // Spills after the `refused` nodes have reported that they are full. When no node has room, it
  // waits, longer with each attempt, asks all nodes again, and fails after the last attempt.
  Outcome<Done> SpillPatiently(Inode& inode, ByteRange range, const std::vector<NodeId>& refused,
                               SpillProgress* progress);

  // Runs `store` on a thread of this class, in the node's lane. `end`: a program waits for it until
  // then.
  void RunStore(NodeId node, std::function<void()> store, std::optional<SteadyTime> end = {});

  // Bytes could not be stored: all open handles are told.
  void NoteError(Inode& inode, Failure failure);
  // Bytes that could not be stored may be in cached pages here, while others read what the nodes
  // have. A page under writeback is dropped once that has failed; nothing waits for it.
  void DropFailedPages(Inode& inode);

  // Runs the stores that are queued, and joins the threads.
  void Stop() { io_.Stop(); }

 private:
  void Send(Inode& inode, bool all, std::optional<SteadyTime> end = {});
  void SendExtent(const InodePtr& inode, const std::shared_ptr<const Extent>& extent);
  Outcome<Done> StoreExtent(Inode& inode, const Extent& extent, std::vector<NodeId>* full);
  void AwaitRoom(Inode& inode, uint64_t bytes);
  // Accounts for bytes that left the inode's buffer.
  void NoteUnbuffered(Inode& inode, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

  const FilesystemOptions& options_;
  InodeTable& inodes_;
  NodeStates& node_states_;
  StoreGate& gate_;
  NodeObjects& objects_;
  Spiller& spiller_;
  BlockCache& blocks_;
  KernelPages& pages_;
  Stats& stats_;
  const Clock& clock_;
  BufferedBytes buffered_;
  InodeSet buffering_;  // Inodes with a non-empty buffer.
  Executor io_;
  Lanes store_lanes_;  // What io_ runs, by node: a hanging node does not delay writes to others.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_WRITE_BEHIND_H_
