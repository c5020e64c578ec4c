// ObjectEngine: a storage node's operations on its objects, for many connections at once. Combines
// the store (bytes) with the core (admission, checksums, upkeep). It handles no sockets, except to
// pass a descriptor out, and no capabilities: the caller has verified them.
//
// Thread-safe, except that one thread at a time scrubs. Lock order: an object's mutex (object.h),
// then that of any one part. No part calls another's locking methods while it holds its own.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_ENGINE_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"
#include "common/model/residence.h"
#include "common/model/storage.h"
#include "storage-node/engine/aside_objects.h"
#include "storage-node/engine/change_waiters.h"
#include "storage-node/engine/found_objects.h"
#include "storage-node/engine/lent_files.h"
#include "storage-node/engine/local_writers.h"
#include "storage-node/engine/memory_budget.h"
#include "storage-node/engine/node_counters.h"
#include "storage-node/engine/node_reports.h"
#include "storage-node/engine/node_residence.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_opener.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_sums.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/room.h"
#include "storage-node/engine/scrubber.h"
#include "storage-node/engine/seal_work.h"
#include "storage-node/engine/sealer.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

struct ReadRequest {
  FileId file;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  bool verify = false;       // Verify the bytes against their checksums before they leave.
  std::string account = "";  // Account for buffer memory, if it needs any.
};
// The answer to a read: the range widened to whole blocks and cut at the object's end.
struct ReadPlan {
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  std::vector<uint32_t> crcs;
  UniqueFd fd;          // Send the range from this descriptor, if set;
  BudgetBuffer buffer;  // otherwise the bytes are here.
};

class ObjectEngine {
 public:
  // Lists the store. `clock` must outlive the engine.
  static Result<std::unique_ptr<ObjectEngine>> Open(std::unique_ptr<ObjectStore> store,
                                                    uint64_t limit_bytes, const Clock& clock);

  // NotFound if there is no such object: only the caller may know that this means zeroes. DataLoss
  // names the object and its corrupt block. `scratch` must hold a block.
  Result<ReadPlan> PlanRead(const ReadRequest& request, std::span<std::byte> scratch);

  // One write of a known range, in pieces as they arrive. Holds its reservation until destroyed.
  class Writer {
   public:
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) = delete;
    // Accounts for what was written, also after errors.
    ~Writer();
    // Pieces must come in order and end at block boundaries, except the last. The caller has
    // verified `crcs`. Aborted if a later layout was admitted since the previous piece.
    Status WritePiece(uint64_t offset, std::span<const std::byte> data,
                      std::span<const uint32_t> crcs);

   private:
    friend class ObjectEngine;
    Writer(ObjectEngine* engine, std::shared_ptr<Object> object, Changer changer, UniqueFd fd,
           uint64_t reserved)
        : engine_(engine),
          object_(std::move(object)),
          changer_(changer),
          fd_(std::move(fd)),
          reserved_(reserved) {}
    ObjectEngine* engine_;
    std::shared_ptr<Object> object_;
    Changer changer_;
    UniqueFd fd_;
    uint64_t reserved_ = 0;
  };
  // ---- changes: Aborted, with nothing changed, if the changer's layout is not the latest

  // Makes the object if absent. ResourceExhausted if the range does not fit; holes count, existing
  // bytes do not.
  Result<Writer> BeginWrite(FileId file, const Changer& changer, uint64_t offset, uint64_t length);
  // NotFound if there is no such object, unless nothing is to be left of it.
  Status Truncate(FileId file, const Changer& changer, uint64_t size_bytes);
  // fallocate(2): mode 0 or KEEP_SIZE allocates and keeps the end, PUNCH_HOLE | KEEP_SIZE punches.
  // Unimplemented for other modes. NotFound if there is no such object to punch.
  Status Allocate(FileId file, const Changer& changer, int mode, ByteRange range);
  struct Description {
    ObjectStat stat;
    bool sealed = false;
  };
  // NotFound if there is no such object.
  Result<Description> Describe(FileId file);
  // OutOfRange if there is none after `offset`, NotFound if there is no such object.
  Result<uint64_t> Seek(FileId file, uint64_t offset, bool data);

  // Aborted if the changer would be refused now. Saves receiving a payload; also for requests that
  // change nothing.
  Status CheckChanger(FileId file, const Changer& changer) const {
    return table_.CheckChanger(file, changer);
  }

  LocalWriters& local() { return local_; }
  ObjectSums& sums() { return sums_; }
  AsideObjects& aside() { return aside_; }

  // Removes objects at once. They no longer count as used, although the pages of one that a local
  // program has open are freed only when it closes. Failures are logged and retried in each
  // Account. `number` is the order's, or 0 (NodeHeartbeat::drops_done).
  void Drop(std::span<const FileId> files, uint64_t number = 0);
  // ObjectTable::RefuseStoresUpTo. Call it before Drop.
  void RefuseStoresUpTo(FileId file, uint64_t generation) {
    table_.RefuseStoresUpTo(file, generation);
  }
  // Looks at the lent objects (LocalWriters::LookAtAll), and retries failed drops. Call a few times
  // a second.
  void Account();
  // Sealer::SealNext, and SealWork::Wait and Stop, which also ends SealNext.
  bool SealNext(std::span<std::byte> scratch) { return sealer_.SealNext(scratch); }
  void WaitForSealing(Duration wait) { sealing_.Wait(wait); }
  void StopSealing() { sealing_.Stop(); }
  // Syncs the records of sealed objects to disk, if the store has one.
  void SyncRecords() { records_.Sync(); }
  // Syncs everything to disk when the node stops. No operation may be in progress.
  void End();
  // Scrubber::Next. One thread at a time.
  uint64_t ScrubNext(std::span<std::byte> scratch) { return scrubber_.Next(scratch); }

  std::vector<FileId> ListObjects() const { return table_.List(); }
  // Returns all objects, ascending, with their current sizes; without sizes if the store cannot
  // list them.
  void ListHeld(std::vector<FileId>& files, std::vector<HeldSize>& sizes) const;
  // Returns the current counters, and some of the objects found corrupt, healed or stored into that
  // no earlier call has named.
  NodeHeartbeat TakeHeartbeat();
  BulkUse UseOfBulkPlane() const;
  // Call for a new stream to the manager. The next heartbeats name every corrupt and every healed
  // object again, and those objects stored into whose report the old stream may have lost. Drop
  // orders are numbered anew.
  void RepeatReports() { reports_.Repeat(); }
  uint64_t used_bytes() const { return room_.used_bytes(); }
  uint64_t unsealed_objects() const { return sealing_.unsealed_count; }
  ObjectStore& store() { return *store_; }
  MemoryBudget& budget() { return budget_; }
  void CountSent(uint64_t bytes) { counters_.bytes_read_remote += bytes; }
  NodeResidence& residence() { return residence_; }
  // Residence times of this node's requests, and what it holds.
  ResidenceSnapshot SnapshotOfResidence() const;

 private:
  ObjectEngine(std::unique_ptr<ObjectStore> store, uint64_t limit_bytes, const Clock& clock,
               bool is_suspect);

  Status SumMissing(Object& object, int fd, const ReadPlan& plan, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status FillBuffer(Object& object, int fd, ReadPlan& plan, bool verify)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Result<uint64_t> HoleBytes(int fd, uint64_t offset, uint64_t length);
  Result<uint64_t> ReserveRange(FileId file, int fd, uint64_t offset, uint64_t length);
  bool DropOne(FileId file);

  const std::unique_ptr<ObjectStore> store_;
  const Clock& clock_;
  MemoryBudget budget_;
  NodeResidence residence_;

  // Each uses only those above it.
  NodeCounters counters_;
  Room room_;
  LentFiles lent_;
  NodeReports reports_;
  ChangeWaiters waiters_;
  ObjectTable table_;
  SealWork sealing_;
  ObjectRecords records_;
  ObjectLedger ledger_;
  Verifier verifier_;
  ObjectOpener opener_;
  FoundObjects found_;
  LocalWriters local_;
  ObjectSums sums_;
  AsideObjects aside_;
  Sealer sealer_;
  Scrubber scrubber_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_ENGINE_H_
