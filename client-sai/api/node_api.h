// NodeApi: how a client reaches the bytes that storage nodes hold. Two implementations: the bulk
// plane (TCP and Unix sockets), and objects in the same process (tests).
//
// Thread-safe; calls block, at most the deadline of the options, and several may run at once.
// Offsets are the file's own. Errors: Unavailable (node unreachable or silent), DeadlineExceeded,
// ResourceExhausted (node full), PermissionDenied (capability refused: Failure reason in the
// message), Aborted (somebody writes by a newer layout), DataLoss (checksum), NotFound (there is no
// such object).
#ifndef MOSA_CLIENT_SAI_API_NODE_API_H_
#define MOSA_CLIENT_SAI_API_NODE_API_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::sai {

using mosa::UniqueFd;

struct ObjectTarget {
  NodeId node;
  FileId file;
  std::string_view capability;
};
struct ObjectStatus {
  uint64_t size_bytes = 0;  // The object's size: where its last byte ends in the file.
  uint64_t allocated_bytes = 0;
  Time modify_time;     // In the node's clock.
  bool sealed = false;  // The node knows a checksum of every block.
};

// A look at an object that programs on its host may have mapped: their stores are seen by nobody.
struct LookQuestion {
  uint64_t from_bytes = 0;
  bool while_written = false;  // Compare bytes though a program can still store.
};
struct LocalWrites {
  bool writers_left = false;  // Some program has it open for writing, or mapped from such an open.
  bool changed = false;       // Bytes differ from what they were at the last look.
  bool unknown = false;       // What some were then is not known.
  bool complete = true;       // Else the next step goes on from `next_bytes`.
  uint64_t next_bytes = 0;
};

class NodeApi {
 public:
  virtual ~NodeApi() = default;

  // The nodes as the manager last described them; connections to changed addresses are dropped.
  virtual void SetNodes(const std::vector<NodeAddress>& nodes) = 0;
  // Sets who asks from now on. Calls under way keep the identity they started with.
  virtual void SetIdentity(const BulkIdentity& identity) = 0;

  // Fills `out` from `offset`; bytes that the object does not have are zero. Every byte was checked
  // against its checksum. NotFound if there is no object: the caller may know that it has no bytes.
  virtual Status Read(const ObjectTarget& target, uint64_t offset, std::span<std::byte> out) = 0;
  // Writes all of `data`; the node verifies its checksum before it answers. The object is made if
  // absent.
  virtual Status Write(const ObjectTarget& target, uint64_t offset,
                       std::span<const std::byte> data) = 0;
  // Cuts the object at `size_bytes` if it reaches further.
  virtual Status Truncate(const ObjectTarget& target, uint64_t size_bytes) = 0;
  // Punches a hole, or allocates room, as fallocate(2) with these mode bits, KEEP_SIZE implied.
  virtual Status Allocate(const ObjectTarget& target, int mode, uint64_t offset,
                          uint64_t length) = 0;
  virtual Result<ObjectStatus> Stat(const ObjectTarget& target) = 0;
  // The next byte of data (or of a hole) at or after `offset` as lseek(2) SEEK_DATA and SEEK_HOLE;
  // OutOfRange if none, NotFound if there is no object.
  virtual Result<uint64_t> Seek(const ObjectTarget& target, uint64_t offset, bool data) = 0;
  // Appends `data` at the object's end, atomically among all writers; returns where it went.
  virtual Result<uint64_t> Append(const ObjectTarget& target, std::span<const std::byte> data) = 0;

  // True if the node's bytes can be had by descriptor: same host, same network namespace, socket
  // reachable.
  virtual bool IsLocal(NodeId node) const = 0;
  // The object itself: read-only, or read-write with a write capability (made if absent). Local
  // nodes only.
  virtual Result<UniqueFd> OpenLocal(const ObjectTarget& target, bool write) = 0;
  // Every descriptor that this client wrote through is closed or idle, and the manager knows all
  // that was written: the node may compute checksums.
  virtual Status FinishLocalWrites(const ObjectTarget& target) = 0;
  // One step of a look at what local programs store without telling anybody; the first is from 0.
  // If it fails, what it has found is lost: the bytes may have changed.
  virtual Result<LocalWrites> LookAtLocalWrites(const ObjectTarget& target,
                                                const LookQuestion& question) = 0;
  // Bytes were written through a descriptor: nodes that copy the file while it is written hear of
  // it.
  virtual Status NoteWritten(const ObjectTarget& target, uint64_t offset, uint64_t length) = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_NODE_API_H_
