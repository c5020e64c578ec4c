// ObjectEngine: a storage node's operations on its objects, for many connections at once. Combines
// the store (bytes) with the core (admission, checksums, upkeep). It handles no sockets, except to
// pass a descriptor out, and no capabilities: the caller has verified them.
//
// Thread-safe. Lock order: an object's mutex, then objects_mutex_, then account_mutex_,
// aside_mutex_ or waiters_mutex_. An object's mutex is held while its bytes are read or written
// (memory speed), so that bytes and checksums agree; never while waiting for a socket.
//
// Local writers: any holder of a write descriptor may change an object at any time. Only the kernel
// knows all holders: mounts die, stop, and outlive this process. An object is *lent* from the time
// such a descriptor was passed out, or the object was found at the start, until the kernel reports
// that no process has it open for writing. The engine asks whenever it matters, and in each
// Account. While an object is lent, checksums are computed for each reply and not kept.
#ifndef MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_
#define MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/block_sums.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"
#include "common/model/residence.h"
#include "common/model/storage.h"
#include "storage-node/core/admission.h"
#include "storage-node/core/change_log.h"
#include "storage-node/core/checksum_table.h"
#include "storage-node/core/upkeep.h"
#include "storage-node/service/memory_budget.h"
#include "storage-node/service/node_residence.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

struct ReadRequest {
  FileId file;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  bool verify = false;       // Verify the bytes against their checksums before they leave.
  std::string account = "";  // Account for buffer memory, if it needs any.
};
// The author of a change. Bytes stored under a later layout of a file must never be overwritten
// under an earlier one. So every change names its author and is admitted under the object's lock.
struct Changer {
  uint64_t generation = 0;  // The layout's generation.
  bool is_order = false;    // This node itself, which stores under no layout.

  static Changer OfLayout(uint64_t generation) { return {generation, false}; }
  // A store under a later layout than that of the order ends it.
  static Changer OfOrder(uint64_t generation) { return {generation, true}; }
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
 private:
  // What the stored records say about one object.
  enum class LoggedState : uint8_t {
    kNothing = 1,
    kSums,     // Its complete checksums.
    kDamaged,  // No byte of it can be trusted.
  };
  // The state of one object. Its bytes are in the store.
  struct Object {
    explicit Object(FileId id) : file(id) {}
    const FileId file;
    SystemMutex mutex;
    // No longer in objects_: the caller must look the file up again.
    bool dropped ABSL_GUARDED_BY(mutex) = false;
    uint64_t size_bytes ABSL_GUARDED_BY(mutex) = 0;
    uint64_t allocated_bytes ABSL_GUARDED_BY(mutex) = 0;
    ChecksumTable checksums ABSL_GUARDED_BY(mutex) = ChecksumTable::ForNewObject();
    uint64_t forgotten_count ABSL_GUARDED_BY(mutex) = 0;  // How often all checksums were forgotten.
    // Kept from the first request for it on.
    std::unique_ptr<ChangeLog> changes ABSL_GUARDED_BY(mutex);
    // Highest generation that was admitted to change it. Logged.
    uint64_t writer_generation ABSL_GUARDED_BY(mutex) = 0;
    bool lent ABSL_GUARDED_BY(mutex) = false;  // Local programs may be writing. Also in lent_.
    // The checksums at the last look: from when it was lent until its mount has reported all
    // changes. A write through this node makes all of them unknown.
    std::optional<ChecksumTable> told ABSL_GUARDED_BY(mutex);
    uint64_t told_bytes ABSL_GUARDED_BY(mutex) = 0;  // The size at that look.
    // A look found a difference. Kept because the asker may die before it has told everybody, and
    // `told` no longer holds the earlier checksums.
    bool answered ABSL_GUARDED_BY(mutex) = false;
    // Since when no program can store into it while its changes are still unreported.
    std::optional<Time> left_untold ABSL_GUARDED_BY(mutex);
    bool counted_unsealed ABSL_GUARDED_BY(mutex) = false;
    // Never kSums while it is lent.
    LoggedState logged ABSL_GUARDED_BY(mutex) = LoggedState::kNothing;
    // Not verified against its record since the machine crashed.
    bool unverified ABSL_GUARDED_BY(mutex) = false;
    // While unverified: blocks before this one are verified.
    BlockIndex compared_end ABSL_GUARDED_BY(mutex){};
    bool unrecordable ABSL_GUARDED_BY(mutex) = false;  // It has too many checksums to record.
    // Incremented whenever bytes may be changed.
    uint64_t changes_begun ABSL_GUARDED_BY(mutex) = 0;
    // While its checksums are logged: the record's length, and the object's size in it.
    uint64_t record_bytes ABSL_GUARDED_BY(mutex) = 0;
    uint64_t recorded_size_bytes ABSL_GUARDED_BY(mutex) = 0;
  };

 public:
  // Lists the store. `clock` must outlive the engine.
  static Result<std::unique_ptr<ObjectEngine>> Open(std::unique_ptr<ObjectStore> store,
                                                    uint64_t limit_bytes, const Clock& clock);
  ~ObjectEngine();

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
  Status CheckChanger(FileId file, const Changer& changer);

  // Returns a descriptor to pass on. NotFound if absent; DataLoss if a block is known to be
  // corrupt.
  Result<UniqueFd> OpenLocal(FileId file);
  // Returns a writable descriptor to pass on; makes the object if absent. FailedPrecondition if a
  // block is known to be corrupt, or if the kernel cannot tell who has a file open. Aborted as for
  // other changes.
  Result<UniqueFd> OpenLocalToWrite(FileId file, const Changer& changer);
  // Call when a local writer may have ended and its changes are reported. Looks now instead of in
  // the next Account and, if no writer is left, forgets the earlier checksums.
  Status FinishLocalWrites(FileId file);
  // One step of a search for unreported local stores. A store into a mapped page leaves no trace
  // except the bytes.
  struct LocalWrites {
    bool writers_left = false;  // Some program can write it: opened, or mapped from such an open.
    bool changed = false;       // Bytes differ from the last look.
    bool unknown = false;       // Some earlier bytes are unknown.
    uint64_t next_bytes = 0;    // Where the next step begins.
    bool complete = true;       // This was the last step.
  };
  // Compares at most kLookBytesMax from `from_bytes` on. If a writer is left, it compares only with
  // `while_written`. `scratch` holds whole blocks.
  static constexpr uint64_t kLookBytesMax = uint64_t{256} << 20;
  Result<LocalWrites> LookAtLocalWrites(FileId file, uint64_t from_bytes, bool while_written,
                                        std::span<std::byte> scratch);

  // ---- for nodes that copy (object_sums.cc)

  // Returns the changes after `after_change` (from an earlier answer; 0: none), without blocks.
  BlockSums ChangesSince(FileId file, uint64_t after_change);
  // Adds the checksums of at most kSumsBytesMax and computes the unknown ones. An absent object
  // counts as empty.
  Status SumBlocks(FileId file, ByteRange range, BlockSums& sums, std::span<std::byte> scratch);
  // Blocks until ChangesSince would report a change in one of the ranges (any change if there are
  // none), for at most `wait`, or until `give_up`, polled a few times a second, returns true. Holds
  // no lock.
  void AwaitChange(FileId file, uint64_t after_change, std::span<const ByteRange> about,
                   Duration wait, const std::function<bool()>& give_up);
  // Call when a local writer has written `range`.
  Status NoteLocalWrite(FileId file, ByteRange range);
  // Reports a change of these ranges to copying nodes, although their bytes are the same.
  void NoteChanged(FileId file, std::span<const ByteRange> ranges);

  // Removes objects at once. They no longer count as used, although the pages of one that a local
  // program has open are freed only when it closes. Failures are logged and retried in each
  // Account. `number` is the order's, or 0 (NodeHeartbeat::drops_done).
  void Drop(std::span<const FileId> files, uint64_t number = 0);
  // Refuses changes of the file by this or an earlier layout generation for as long as a capability
  // can be valid. Call it before Drop, which forgets the object's generation.
  void RefuseStoresUpTo(FileId file, uint64_t generation);
  // Checks the lent objects, those in use by other threads last, and retries failed drops. Local
  // changes that no mount has asked about within kTellAfter of the last writer's end go into the
  // next heartbeat. Call a few times a second.
  static constexpr Duration kTellAfter = Seconds(6);
  void Account();
  // Seals one object if one is ready; returns false if there was nothing to do. `scratch` holds
  // whole blocks.
  bool SealNext(std::span<std::byte> scratch);
  // Blocks until SealNext may have something to do, for at most `wait`.
  void WaitForSealing(Duration wait);
  // Ends WaitForSealing and SealNext permanently.
  void StopSealing();
  // Syncs the records of sealed objects to disk, if the store has one.
  void SyncRecords();
  // Syncs everything to disk when the node stops. No operation may be in progress.
  void End();
  // Verifies the next blocks of the round. Returns the number of bytes, 0 after the last object.
  uint64_t ScrubNext(std::span<std::byte> scratch);

  // ---- objects put aside (object_aside.cc)

  // Carries out an order. A failure is logged and leaves the object as it was.
  void Obey(const AsideOrder& order);
  std::vector<AsideObject> ListAside() const;

  std::vector<FileId> ListObjects() const;
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
  void RepeatReports();
  uint64_t used_bytes() const;
  uint64_t unsealed_objects() const;
  ObjectStore& store() { return *store_; }
  MemoryBudget& budget() { return budget_; }
  void CountSent(uint64_t bytes) { bytes_read_remote_ += bytes; }
  NodeResidence& residence() { return residence_; }
  // Residence times of this node's requests, and what it holds.
  ResidenceSnapshot SnapshotOfResidence() const;

 private:
  ObjectEngine(std::unique_ptr<ObjectStore> store, uint64_t limit_bytes, const Clock& clock);

  using ObjectRef = std::shared_ptr<Object>;  // Shared by connections; freed by the last one.

  // Adds an object from the store to the table, with its recorded state.
  void AddFound(const StoredObject& found, const SumsRecord* record, uint64_t generation);
  // The same for an object that is in the table.
  void TakeFound(Object& object, const StoredObject& found, const SumsRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void MarkDamaged(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Returns null if absent.
  ObjectRef Find(FileId file) const;
  ObjectRef FindOrAdd(FileId file, const Changer* changer);
  // A locked object with a descriptor. `object` is null if absent.
  struct Opened {
    ObjectRef object;
    std::unique_lock<SystemMutex> lock;
    UniqueFd fd;
  };
  Result<Opened> OpenToRead(FileId file) { return OpenObject(file, OpenMode::kRead, nullptr); }
  // Makes the object if absent and `mode` allows it; begins a change.
  Result<Opened> OpenToChange(FileId file, OpenMode mode, const Changer& changer) {
    return OpenObject(file, mode, &changer);
  }
  Result<Opened> OpenObject(FileId file, OpenMode mode, const Changer* changer);

  // ---- one object
  Status Admits(const Object& object, const Changer& changer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // `fd` is for reading.
  bool MayHaveWriters(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status LookForWriters(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteLeft(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteTold(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status ComparePiece(Object& object, int fd, LocalWrites& look, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status RefreshSize(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void AccountFor(Object& object, const ObjectStat& stat)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Counts it as sealed or unsealed, and queues it.
  void NoteChange(Object& object, Duration rest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteCorrupt(Object& object, BlockIndex block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void ForgetChecksums(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void Remove(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteWritten(Object& object, ByteRange range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void NoteAllChanged(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status MarkData(Object& object, int fd, ByteRange range, BlockSums& sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status SumBlock(Object& object, int fd, BlockIndex block, BlockSum& sum,
                  std::span<std::byte> scratch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status SumMissing(Object& object, int fd, const ReadPlan& plan, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status FillBuffer(Object& object, int fd, ReadPlan& plan, bool verify)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Result<uint64_t> HoleBytes(int fd, uint64_t offset, uint64_t length);

  // ---- records (object_records.cc)
  // Must be called before any byte of the object changes.
  Status BeginChange(Object& object, int fd, const Changer& changer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Invalidates its record, unless of damage.
  Status ForgetRecord(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Precondition: not kSums.
  Status Log(Object& object, LoggedState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void TryLog(Object& object, LoggedState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void SetGeneration(Object& object, uint64_t generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  bool MayRecord(const Object& object) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status AppendRecord(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void Verify(Object& object, int fd, std::span<const KnownSum> sums, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Verifies the next unverified blocks, at most so many.
  void VerifyNext(Object& object, int fd, size_t blocks_max, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void VerifyRest(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void VerifyAll(const ObjectRef& object, std::span<std::byte> scratch);
  void Record(const ObjectRef& object);
  Status RewriteRecords();

  void TellUntold();
  void Wake(FileId file);
  // If false, `after_change` becomes the latest change, up to which nothing needs checking.
  bool HasChanged(FileId file, uint64_t& after_change, std::span<const ByteRange> about);
  Result<uint64_t> ReserveRange(FileId file, int fd, uint64_t offset, uint64_t length);
  void GiveBack(uint64_t reserved_bytes);
  bool DropOne(FileId file);
  Status CheckRefusals(FileId file, const Changer& changer) const;
  bool IsRefused(FileId file, const Changer& changer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(objects_mutex_);
  void EndRefusals();
  // An object put aside, with its recorded state at that time.
  struct Aside {
    AsideObject object;
    std::optional<SumsRecord> record;  // Also in the log.
    uint64_t record_bytes = 0;
    uint64_t generation = 0;
  };
  Status FindAside(SumsFound& found);
  void AddAside(Aside aside);
  // Removes its state; returns nothing if it is not aside.
  std::optional<Aside> RemoveAside(FileId file);
  Status RewriteAsideRecords();
  // Replaces an object in the table by the one aside.
  Status TakeFromAside(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Returns the record of an object that was found; `damaged` if a record was required and is
  // missing.
  const SumsRecord* RecordOf(FileId file, const std::map<FileId, SumsRecord>& records) const;
  AsideObject DescribeAside(const StoredObject& stored) const;
  Status SetAside(FileId file);
  Status RestoreAside(FileId file);
  Status DiscardAside(FileId file);
  Status SealObject(const ObjectRef& object, std::span<std::byte> scratch);
  Status SumPiece(Object& object, int fd, uint64_t& offset, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status SumStale(const ObjectRef& object, int fd, uint64_t epoch, std::span<std::byte> scratch);
  uint64_t ScrubPiece(Object& object, uint64_t& offset, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  // ---- constant or thread-safe
  const std::unique_ptr<ObjectStore> store_;
  const Clock& clock_;
  MemoryBudget budget_;
  std::atomic<uint64_t> bytes_read_remote_{0};
  std::atomic<uint64_t> bytes_written_remote_{0};
  std::atomic<uint64_t> bytes_written_local_{0};
  std::atomic<uint64_t> descriptors_passed_{0};
  std::atomic<uint64_t> measurements_{0};
  NodeResidence residence_;

  std::atomic<bool> stopped_{false};
  // Starts at the current time, so it exceeds all numbers before a restart.
  std::atomic<uint64_t> last_change_;

  // After a crash of the machine, an object without a record is damaged, if records were kept.
  bool is_suspect_ = false;                // Constant after Open.
  std::atomic<uint64_t> record_bytes_{0};  // Bytes in records that are still valid.
  std::atomic<uint64_t> unverified_objects_{0};
  std::atomic<bool> has_unsynced_records_{false};

  SystemMutex waiters_mutex_;
  SystemCondVar woken_;
  std::multiset<FileId> waiters_ ABSL_GUARDED_BY(waiters_mutex_);
  uint64_t wakes_ ABSL_GUARDED_BY(waiters_mutex_) = 0;
  std::atomic<uint64_t> waiter_count_{0};

  mutable SystemMutex objects_mutex_;
  std::map<FileId, ObjectRef> objects_ ABSL_GUARDED_BY(objects_mutex_);
  // For objects that are to be dropped, or were: until when stores up to a generation are refused.
  struct Refusal {
    uint64_t generation = 0;
    Time until;
  };
  std::map<FileId, Refusal> refusals_ ABSL_GUARDED_BY(objects_mutex_);
  // Ascending.
  std::deque<std::pair<Time, FileId>> refusal_ends_ ABSL_GUARDED_BY(objects_mutex_);
  std::atomic<bool> has_refusals_{false};  // There are any.

  mutable SystemMutex aside_mutex_;
  std::map<FileId, Aside> aside_ ABSL_GUARDED_BY(aside_mutex_);

  mutable SystemMutex account_mutex_;
  SystemCondVar sealable_;
  Admission admission_ ABSL_GUARDED_BY(account_mutex_);
  SealQueue seal_queue_ ABSL_GUARDED_BY(account_mutex_);
  std::set<FileId> lent_ ABSL_GUARDED_BY(account_mutex_);
  std::set<FileId> drops_to_repeat_ ABSL_GUARDED_BY(account_mutex_);
  // The last order since the node registered, and the last one when all drops had succeeded.
  uint64_t last_drop_order_ ABSL_GUARDED_BY(account_mutex_) = 0;
  uint64_t drops_done_ ABSL_GUARDED_BY(account_mutex_) = 0;
  // Objects whose left_untold is set.
  std::set<FileId> left_untold_ ABSL_GUARDED_BY(account_mutex_);
  std::set<FileId> untold_to_report_ ABSL_GUARDED_BY(account_mutex_);
  // When a heartbeat named it.
  std::map<FileId, Time> untold_reported_ ABSL_GUARDED_BY(account_mutex_);
  std::map<FileId, uint64_t> corrupt_blocks_of_ ABSL_GUARDED_BY(account_mutex_);
  std::set<FileId> corrupt_to_report_ ABSL_GUARDED_BY(account_mutex_);
  // Objects whose damage was replaced, and those of them that no heartbeat has named yet.
  std::set<FileId> healed_ ABSL_GUARDED_BY(account_mutex_);
  std::set<FileId> healed_to_report_ ABSL_GUARDED_BY(account_mutex_);
  uint64_t unsealed_objects_ ABSL_GUARDED_BY(account_mutex_) = 0;

  // ---- used only by the scrubbing thread
  FileId scrub_file_;
  uint64_t scrub_offset_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_
