// NodeObjects: the objects of files on storage nodes, by the rights of this mount. Chooses copies,
// tries again while a node may return, and keeps what the answers say about nodes.
//
// Thread-safe. All methods but LocalHolder, CheckAlive and the static ones call nodes and block
// within the thread's WaitBudget; the caller must not hold the inode's mutex. Their failures are
// those of NodeApi. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_NODE_OBJECTS_H_
#define MOSA_CLIENT_SAI_SAI_NODE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/ranges.h"

namespace mosa::sai {

class NodeObjects {
 public:
  // `reads`: runs the parts of a parallel fetch. `client` spreads the mounts' first reads.
  NodeObjects(NodeApi& nodes, ClientId client, Lease& lease, NodeStates& node_states,
              Executor& reads, Stats& stats, const Clock& clock)
      : nodes_(nodes),
        client_(client),
        lease_(lease),
        node_states_(node_states),
        reads_(reads),
        stats_(stats),
        clock_(clock) {}

  // Returns the node of this host, if it has a copy of every byte.
  std::optional<NodeId> LocalHolder(const DataAccess& access) const;
  // Returns the object on a node of this host.
  Outcome<std::shared_ptr<LocalObject>> Local(Inode& inode, const DataAccess& access, NodeId node,
                                              bool write);
  // Returns the local node's object; null if it has not all bytes.
  std::shared_ptr<LocalObject> WholeLocal(Inode& inode, const DataAccess& access, bool write);

  // Runs `operation` on a node, and repeats it while the node is unreachable and may return.
  // Aborted if the node refuses the right: the caller starts over with a new one from the manager.
  Status WithRetries(Inode& inode, NodeId node, bool write,
                     const std::function<Status(const ObjectTarget&)>& operation);
  Status Write(Inode& inode, NodeId node, uint64_t offset, std::span<const std::byte> data);
  // Removes bytes on a node that keeps others. OK without an object if the file is known to have no
  // byte there. Aborted if the object is missing, or the access does not tell yet.
  Status RemoveOn(Inode& inode, const DataAccess& access, NodeId node,
                  const std::function<Status(const ObjectTarget&)>& operation);
  Status Punch(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);

  // Reads bytes from whichever copies serve. `parallel`: from several nodes at a time.
  Outcome<Done> Fetch(Inode& inode, const DataAccess& access, ByteRange range, std::byte* out,
                      bool parallel);
  // Returns the CRC-32C of each checksum block of a file of `file_bytes`, holes as zeroes: what the
  // nodes know, or else computed from the bytes that Fetch() returns.
  Outcome<std::vector<uint32_t>> BlockChecksums(Inode& inode, const DataAccess& access,
                                                uint64_t file_bytes);
  // Returns the object's next data or hole; absent if there is none, or no object.
  Outcome<std::optional<uint64_t>> Seek(Inode& inode, NodeId node, uint64_t offset, SeekKind kind);
  // True if overwriting these bytes takes no room on the node.
  bool IsAllocated(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);

  // Reports writes through a descriptor, from time to time, to nodes that copy the file eagerly.
  void NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node, ByteRange range);

  // Fails if one of the nodes is silent: what changes all nodes changes all or none, as far as this
  // can be known beforehand.
  Outcome<Done> CheckAlive(const Inode& inode, const std::vector<NodeId>& nodes) const;

  // True if a missing object on this node means that it has no bytes: the manager has said that
  // none was committed there. This mount's own stores create the object.
  static bool IsKnownEmpty(const DataAccess& access, NodeId node);
  // The failure of whoever needs bytes that no node has any more. Holds until the file is truncated
  // to 0 bytes: bytes written into it could not be read either.
  static Failure LostBytes(const Inode& inode);

 private:
  Outcome<Done> FetchPiece(Inode& inode, const DataAccess& access, const Piece& piece,
                           std::byte* out);
  // False: ask the node instead.
  bool ReadLocal(Inode& inode, const DataAccess& access, NodeId node, ByteRange range,
                 std::byte* out);
  // The node lacks an object that it should have. Makes the next access ask the manager, who may
  // know why.
  static Failure Missing(Inode& inode, NodeId node);

  NodeApi& nodes_;
  const ClientId client_;
  Lease& lease_;
  NodeStates& node_states_;
  Executor& reads_;
  Stats& stats_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_NODE_OBJECTS_H_
