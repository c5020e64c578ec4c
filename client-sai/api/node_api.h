// NodeApi: a client's access to the bytes on storage nodes, and that of a node which copies from
// others. Two implementations: the bulk plane (TCP and Unix sockets), and objects in the same
// process (tests).
//
// Thread-safe. Calls block, up to the deadline in the options, and may run concurrently. Offsets
// are the file's own. Errors: Unavailable (node unreachable or silent), DeadlineExceeded,
// ResourceExhausted (node full), PermissionDenied (capability refused; the message carries the
// Failure's reason), Aborted (another client writes by a newer layout), DataLoss (checksum
// mismatch), NotFound (no such object).
#ifndef MOSA_CLIENT_SAI_API_NODE_API_H_
#define MOSA_CLIENT_SAI_API_NODE_API_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/block_sums.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"
#include "common/model/session.h"

namespace mosa::sai {

using mosa::UniqueFd;

struct ObjectTarget {
  NodeId node;
  FileId file;
  std::string_view capability;
};
struct ObjectStatus {
  uint64_t size_bytes = 0;  // Where the object's last byte ends in the file.
  uint64_t allocated_bytes = 0;
  Time modify_time;     // In the node's clock.
  bool sealed = false;  // The node knows a checksum of every block.
};

// Asks whether local programs changed a mapped object. Nobody sees their stores, so the node
// compares the bytes.
struct LookQuestion {
  uint64_t from_bytes = 0;
  bool while_written = false;  // Compare bytes even while a program can still store.
};
struct LocalWrites {
  bool writers_left = false;  // A program has it open for writing, or mapped from such an open.
  bool changed = false;       // Bytes differ from the last look.
  bool unknown = false;       // For some bytes, the earlier content is not known.
  bool complete = true;       // If false, the next step continues at `next_bytes`.
  uint64_t next_bytes = 0;
};

// Asks for the checksums of `range` and the changes after `after_change` (BulkSums in bulk.proto).
struct SumsQuestion {
  ByteRange range;  // At most kSumsBytesMax.
  uint64_t after_change = 0;
  Duration wait{};                 // For how long the node may wait for a change before it answers.
  std::vector<ByteRange> about{};  // Changes to wait for, at most kAboutRangesMax; empty: any.
};

class NodeApi {
 public:
  virtual ~NodeApi() = default;

  // Sets the nodes as the manager last described them; drops connections to changed addresses.
  virtual void SetNodes(const std::vector<NodeAddress>& nodes) = 0;
  // Sets the client's identity for later calls. Calls in progress keep theirs.
  virtual void SetIdentity(const BulkIdentity& identity) = 0;

  // Fills `out` from `offset`; bytes beyond the object's data are zero. Every byte is verified
  // against its checksum. NotFound if there is no object; the caller may know that the file has no
  // bytes there.
  virtual Status Read(const ObjectTarget& target, uint64_t offset, std::span<std::byte> out) = 0;
  // Writes all of `data`; the node verifies its checksum before it replies. Creates the object if
  // it is absent.
  virtual Status Write(const ObjectTarget& target, uint64_t offset,
                       std::span<const std::byte> data) = 0;
  // Truncates the object to `size_bytes` if it is longer. NotFound if there is no object, unless
  // nothing is to be left of it.
  virtual Status Truncate(const ObjectTarget& target, uint64_t size_bytes) = 0;
  // Punches a hole or allocates space, by fallocate(2)'s mode bits. KEEP_SIZE is implied.
  // NotFound if there is no object to punch.
  virtual Status Allocate(const ObjectTarget& target, int mode, uint64_t offset,
                          uint64_t length) = 0;
  virtual Result<ObjectStatus> Stat(const ObjectTarget& target) = 0;
  // Returns the next byte of data (or of a hole) at or after `offset`, like lseek(2) with SEEK_DATA
  // or SEEK_HOLE. OutOfRange if there is none, NotFound if there is no object.
  virtual Result<uint64_t> Seek(const ObjectTarget& target, uint64_t offset, bool data) = 0;

  // True if the node can pass descriptors: same host, same network namespace, socket reachable.
  virtual bool IsLocal(NodeId node) const = 0;
  // Returns a descriptor of the object: read-only, or read-write with a write capability (created
  // if absent). Local nodes only.
  virtual Result<UniqueFd> OpenLocal(const ObjectTarget& target, bool write) = 0;
  // Declares that this client's write descriptors are closed or idle and that the manager knows
  // everything written, so the node may compute checksums.
  virtual Status FinishLocalWrites(const ObjectTarget& target) = 0;
  // One step of a look for stores by local programs; the first step starts at 0. If a step fails,
  // its findings are lost: assume that the bytes have changed.
  virtual Result<LocalWrites> LookAtLocalWrites(const ObjectTarget& target,
                                                const LookQuestion& question) = 0;
  // Reports bytes written through a descriptor, so that nodes which copy the file eagerly learn of
  // them.
  virtual Status NoteWritten(const ObjectTarget& target, uint64_t offset, uint64_t length) = 0;
  // An object that does not exist counts as empty, and the answer says so.
  virtual Result<BlockSums> Sums(const ObjectTarget& target, const SumsQuestion& question) = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_NODE_API_H_
