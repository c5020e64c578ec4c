// LocalWriters: descriptors of objects for programs of this host, and what these programs store
// through them. Thread-safe.
//
// Any holder of a write descriptor may change an object at any time. Only the kernel knows all
// holders: mounts die, stop, and outlive this process. An object is *lent* from the time such a
// descriptor was passed out, or the object was found at the start, until the kernel reports that no
// process has it open for writing. The engine asks whenever it matters, and in each LookAtAll.
// While an object is lent, checksums are computed for each reply and not kept.
#ifndef MOSA_STORAGE_NODE_ENGINE_LOCAL_WRITERS_H_
#define MOSA_STORAGE_NODE_ENGINE_LOCAL_WRITERS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"
#include "storage-node/engine/lent_files.h"
#include "storage-node/engine/node_counters.h"
#include "storage-node/engine/node_reports.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_opener.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/seal_work.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

// One step of a search for unreported local stores. A store into a mapped page leaves no trace
// except the bytes.
struct LocalWrites {
  bool writers_left = false;  // Some program can write it: opened, or mapped from such an open.
  bool changed = false;       // Bytes differ from the last look.
  bool unknown = false;       // Some earlier bytes are unknown.
  uint64_t next_bytes = 0;    // Where the next step begins.
  bool complete = true;       // This was the last step.
};

class LocalWriters {
 public:
  struct Borrowed {
    ObjectStore& store;
    const Clock& clock;
    ObjectTable& table;
    ObjectOpener& opener;
    Verifier& verifier;
    ObjectLedger& ledger;
    SealWork& sealing;
    NodeReports& reports;
    LentFiles& lent;
    NodeCounters& counters;
  };
  // All must outlive it.
  explicit LocalWriters(const Borrowed& borrowed);

  // Returns a descriptor to pass on. NotFound if absent; DataLoss if a block is known to be
  // corrupt.
  Result<UniqueFd> OpenToRead(FileId file);
  // Returns a writable descriptor to pass on; makes the object if absent. FailedPrecondition if a
  // block is known to be corrupt, or if the kernel cannot tell who has a file open. Aborted as for
  // other changes.
  Result<UniqueFd> OpenToWrite(FileId file, const Changer& changer);
  // Call when a local writer may have ended and its changes are reported. Looks now instead of in
  // the next LookAtAll and, if no writer is left, forgets the earlier checksums. Otherwise it
  // records those of now, unless the object exceeds kLookBytesMax: a close often arrives here
  // before the kernel has dropped its reference, and bytes that were reported must not be reported
  // again. `scratch` holds whole blocks.
  Status Finish(FileId file, std::span<std::byte> scratch);
  // Compares at most kLookBytesMax from `from_bytes` on. If a writer is left, it compares only with
  // `while_written`. `scratch` holds whole blocks.
  static constexpr uint64_t kLookBytesMax = uint64_t{256} << 20;
  Result<LocalWrites> Look(FileId file, uint64_t from_bytes, bool while_written,
                           std::span<std::byte> scratch);
  // Checks all lent objects, those in use by other threads last. Local changes that no mount has
  // asked about within kTellAfter of the last writer's end go into the next heartbeat.
  static constexpr Duration kTellAfter = Seconds(6);
  void LookAtAll();

 private:
  Status ComparePiece(Object& object, SeenBytes& seen, int fd, LocalWrites& look,
                      std::span<std::byte> scratch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void TellUntold();

  ObjectStore& store_;
  const Clock& clock_;
  ObjectTable& table_;
  ObjectOpener& opener_;
  Verifier& verifier_;
  ObjectLedger& ledger_;
  SealWork& sealing_;
  NodeReports& reports_;
  LentFiles& lent_;
  NodeCounters& counters_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_LOCAL_WRITERS_H_
