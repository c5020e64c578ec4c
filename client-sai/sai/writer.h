// Writer: puts bytes into a file: inline while the file is small, then on the nodes; at once on
// this host, by write-behind elsewhere. It also commits them, and merges inline content with what
// others have written.
//
// Thread-safe. The caller must hold the inode's io and not its mutex, unless a method says
// otherwise. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_WRITER_H_
#define MOSA_CLIENT_SAI_SAI_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class Writer {
 public:
  Writer(ManagerCalls& calls, NodeApi& nodes, Lease& lease, RecallLog& recalls,
         AccessRights& rights, StoreGate& gate, NodeObjects& objects, WriteBehind& write_behind,
         Commits& commits, Grants& grants, BlockCache& blocks, Stats& stats, const Clock& clock)
      : calls_(calls),
        nodes_(nodes),
        lease_(lease),
        recalls_(recalls),
        rights_(rights),
        gate_(gate),
        objects_(objects),
        write_behind_(write_behind),
        commits_(commits),
        grants_(grants),
        blocks_(blocks),
        stats_(stats),
        clock_(clock) {}

  // `memory`: the owner of the data, if they may be kept instead of copied.
  Outcome<Done> WriteAt(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                        const Memory& memory);
  // Tells the manager of everything that was written. `tells_close`: also if there is nothing else
  // to report.
  Outcome<Done> Commit(Inode& inode, bool last_close, bool tells_close = false);

  // Gives the file objects on nodes, if it has none, and moves its inline content there.
  Outcome<AccessPtr> EnsureBound(Inode& inode, uint64_t size_bytes);
  // Stores a piece by a layout. False if it was not stored, because the `refused` nodes have no
  // room or the layout has changed.
  using StorePiece = std::function<Outcome<bool>(const DataAccess& access, const Piece& piece,
                                                 std::vector<NodeId>* refused)>;
  // Stores `range` piece by piece, taking room for each. Pieces without room are spilled.
  Outcome<Done> StorePieces(Inode& inode, ByteRange range, uint64_t piece_bytes_max,
                            const StorePiece& store);

  // ---- inline content
  // Merges other mounts' changes into a file that this mount has written inline.
  Outcome<Done> MergeInline(Inode& inode);
  // Returns fresh access and attributes, with no commit in progress. Bytes written inline before
  // `lock`, that of the inode's mutex, is released go into the next commit. Releases it meanwhile.
  Outcome<Fresh> AwaitFresh(Inode& inode, MutexLock& lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Sets `inline_buffer` to the fresh content with this mount's own bytes on top.
  static void LayInline(Inode& inode, const Fresh& fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Writes bytes into the inline buffer.
  void PutInline(Inode& inode, const Fresh& fresh, uint64_t offset, std::span<const std::byte> data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void NoteInlineWritten(Inode& inode, ByteRange range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

 private:
  // False: the file does not stay inline.
  Outcome<bool> WriteInline(Inode& inode, uint64_t offset, std::span<const std::byte> data);
  Outcome<AccessPtr> Bind(Inode& inode, uint64_t size_bytes);
  static void MoveInlineToObjects(Inode& inode, const DataAccess& access, std::string* content,
                                  std::vector<ByteRange>* ranges);
  // `access` is the one with which the file was bound. Blocks until the bytes are stored if the
  // manager still holds them.
  Outcome<Done> PutInlineIntoObjects(Inode& inode, const DataAccess& access);

  Outcome<Done> WriteBound(Inode& inode, uint64_t offset, std::span<const std::byte> data,
                           const Memory& memory);
  Outcome<bool> WritePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                           std::span<const std::byte> data, const Memory& memory,
                           std::vector<NodeId>* refused);
  Outcome<Done> WriteLocal(Inode& inode, const DataAccess& access, NodeId node, uint64_t offset,
                           std::span<const std::byte> data);
  Outcome<bool> TakeRoom(Inode& inode, const DataAccess& access, const Piece& piece,
                         std::map<NodeId, uint64_t>* taken, std::vector<NodeId>* refused);
  static void NoteStored(Inode& inode, const Piece& piece);

  ManagerCalls& calls_;
  NodeApi& nodes_;
  Lease& lease_;
  RecallLog& recalls_;
  AccessRights& rights_;
  StoreGate& gate_;
  NodeObjects& objects_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Grants& grants_;
  BlockCache& blocks_;
  Stats& stats_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_WRITER_H_
