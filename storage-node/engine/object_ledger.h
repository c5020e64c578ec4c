// ObjectLedger: keeps what follows from the state of an object true after it has changed: the room
// that is used, the checksums, the records, what waits to be sealed, what is to be reported, and
// who waits for a change. All is called under the object's lock. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_LEDGER_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_LEDGER_H_

#include <atomic>
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/ranges.h"
#include "storage-node/engine/change_waiters.h"
#include "storage-node/engine/lent_files.h"
#include "storage-node/engine/node_counters.h"
#include "storage-node/engine/node_reports.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/room.h"
#include "storage-node/engine/seal_work.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

// A recently written object is likely to be written again, so sealing waits this long.
inline constexpr Duration kRestAfterWrite = Milliseconds(200);

class ObjectLedger {
 public:
  // All that it keeps true; each must outlive it.
  struct Books {
    ObjectStore& store;
    const Clock& clock;
    ObjectTable& table;
    Room& room;
    ObjectRecords& records;
    SealWork& sealing;
    NodeReports& reports;
    LentFiles& lent;
    ChangeWaiters& waiters;
    NodeCounters& counters;
  };
  explicit ObjectLedger(const Books& books) : books_(books) {}

  // ---- local writers

  // Asks the kernel whether a local program may be writing the object. If none is left, it is no
  // longer lent. `fd` is for reading.
  bool MayHaveWriters(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status LookForWriters(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Its mount has reported all that local programs changed, or somebody else has.
  void NoteTold(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  // ---- sizes

  Status RefreshSize(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void AccountFor(Object& object, const ObjectStat& stat)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  // ---- changes

  // Counts it as sealed or unsealed, and queues it for after `rest`.
  void NoteChange(Object& object, Duration rest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteCorrupt(Object& object, BlockIndex block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void ForgetChecksums(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteWritten(Object& object, ByteRange range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteAllChanged(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Takes it out of the table.
  void Remove(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // The number of the next change of any object.
  uint64_t NextChange() { return ++last_change_; }

 private:
  void NoteLeft(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  const Books books_;
  // Starts at the current time, so it exceeds all numbers before a restart.
  std::atomic<uint64_t> last_change_{static_cast<uint64_t>(SystemClock().Now().ns)};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_LEDGER_H_
