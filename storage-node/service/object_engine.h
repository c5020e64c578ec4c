// ObjectEngine: what a storage node does with its objects, for many connections at once. It joins
// the store (bytes) with the core (admission, checksums, order of upkeep). It knows no sockets but
// to hand a descriptor out, and no capabilities: the caller has checked them.
//
// Safe from any thread. Locks, in this order: an object's mutex, then objects_mutex_, then
// account_mutex_, aside_mutex_ or waiters_mutex_. An object's mutex is held while its bytes are
// read or written (memory speed), so that bytes and checksums agree; never while a socket is waited
// for.
//
// Local writers: any holder of a write descriptor may change an object at any time. Only the kernel
// knows them: mounts die, stop, and outlive this process. So an object is *lent* since such a
// descriptor was passed on, or it was found at the start, until the kernel says that nobody has it
// open for writing. It is asked whenever it matters, and with each Account. While an object is
// lent, checksums are computed for each reply and not kept.
#ifndef MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_
#define MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
  bool verify = false;       // Compare bytes and checksums before they leave.
  std::string account = "";  // Whose share of the buffers it takes, if it needs one.
};
// Identifies who changes an object. Bytes that a later layout of the file has stored must never
// give way to those of an earlier one, so every change of a byte says whose it is, and is admitted
// under the object's lock.
struct Changer {
  uint64_t generation = 0;  // The layout's generation.
  bool is_order = false;    // This node itself, which stores by no layout.

  static Changer OfLayout(uint64_t generation) { return {generation, false}; }
  // `latest`: GenerationOf when the order came. Any store by a later one ends it.
  static Changer OfOrder(uint64_t latest) { return {latest, true}; }
};
// What answers a read: the range widened to whole blocks and cut at the object's end.
struct ReadPlan {
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  std::vector<uint32_t> crcs;
  UniqueFd fd;          // Send the range from here, if there is one;
  BudgetBuffer buffer;  // else these are the bytes.
};

class ObjectEngine {
 private:
  // What the records beside the objects say of one.
  enum class LoggedState : uint8_t {
    kNothing = 1,
    kSums,     // All of its checksums.
    kDamaged,  // No byte of it can be believed.
  };
  // What is known of one object. The bytes are in the store.
  struct Object {
    explicit Object(FileId id) : file(id) {}
    const FileId file;
    std::mutex mutex;
    // Guarded by mutex:
    bool dropped = false;  // No longer in objects_: look the file up again.
    uint64_t size_bytes = 0;
    uint64_t allocated_bytes = 0;
    ChecksumTable checksums = ChecksumTable::ForNewObject();
    uint64_t forgotten_count = 0;        // How often all checksums were forgotten.
    std::unique_ptr<ChangeLog> changes;  // Kept since somebody first asked for it.
    uint64_t writer_generation = 0;      // The highest of those admitted to change it. Logged.
    bool lent = false;                   // Local programs may be writing. In lent_ as well.
    // What its blocks were when they were last looked at: since it was lent, until the mount that
    // it was lent to has told all. Nothing is known about what is written through this node.
    std::optional<ChecksumTable> told;
    uint64_t told_bytes = 0;  // Its size then.
    // A look has found that they differ. The asker may end before all know; what the bytes were,
    // which would tell it again, is gone.
    bool answered = false;
    // Since when nobody can store into it, while that is not told.
    std::optional<Time> left_untold;
    bool counted_unsealed = false;
    LoggedState logged = LoggedState::kNothing;  // Never kSums while it is lent.
    bool unverified = false;    // Its bytes were not compared with these since the machine crashed.
    BlockIndex compared_end{};  // While unverified: those before were.
    bool unrecordable = false;  // It has too many checksums to keep.
    uint64_t changes_begun = 0;  // Goes up whenever somebody may change bytes.
    // While its checksums are logged: the record's length, and the object's as it says.
    uint64_t record_bytes = 0, recorded_size_bytes = 0;
  };

 public:
  // Lists the store. `clock` must outlive the engine.
  static Result<std::unique_ptr<ObjectEngine>> Open(std::unique_ptr<ObjectStore> store,
                                                    uint64_t limit_bytes, const Clock& clock);
  ~ObjectEngine();

  // NotFound if there is no such object: only the asker may know that this means zeroes. DataLoss
  // names object and block that is corrupt. `scratch` has room for a block.
  Result<ReadPlan> PlanRead(const ReadRequest& request, std::span<std::byte> scratch);

  // One write of a known range, in pieces as they arrive. Room is reserved for its life.
  class Writer {
   public:
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) = delete;
    // Accounts for what was written; after errors too.
    ~Writer();
    // Pieces come in order and end at block boundaries, but the last. `crcs` were checked. Aborted
    // if somebody was admitted by a later layout since the piece before.
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

  // Makes the object if absent. ResourceExhausted if it does not fit; holes count, bytes that are
  // there already do not.
  Result<Writer> BeginWrite(FileId file, const Changer& changer, uint64_t offset, uint64_t length);
  // Returns where the data went.
  Result<uint64_t> Append(FileId file, const Changer& changer, std::span<const std::byte> data);
  Status Truncate(FileId file, const Changer& changer, uint64_t size_bytes);
  // fallocate(2): mode 0 or KEEP_SIZE allocates without moving the end, PUNCH_HOLE | KEEP_SIZE
  // punches. Unimplemented for other modes.
  Status Allocate(FileId file, const Changer& changer, int mode, ByteRange range);
  struct Description {
    ObjectStat stat;
    bool sealed = false;
  };
  // NotFound if there is no such object.
  Result<Description> Describe(FileId file);
  // OutOfRange if there is none behind `offset`, NotFound if there is no such object.
  Result<uint64_t> Seek(FileId file, uint64_t offset, bool data);

  // The latest layout by which the object was changed; 0 if there is none.
  uint64_t GenerationOf(FileId file) const;
  // Aborted if the changer would be refused now. Spares who asks a payload, or what is no change.
  Status CheckChanger(FileId file, const Changer& changer);

  // A descriptor to pass on. NotFound if absent; DataLoss if some block is known to be corrupt.
  Result<UniqueFd> OpenLocal(FileId file);
  // As well, made if absent, and to be written. FailedPrecondition if a block is known to be
  // corrupt, or the kernel cannot tell who has a file open. Aborted as for other changes.
  Result<UniqueFd> OpenLocalToWrite(FileId file, const Changer& changer);
  // A local writer may have ended, and all that it wrote is told: looks now instead of with the
  // next Account, and remembers no longer what the bytes were.
  Status FinishLocalWrites(FileId file);
  // One step of a look at what local programs store without telling anybody: a store into a page
  // that is mapped leaves no trace but the bytes.
  struct LocalWrites {
    bool writers_left =
        false;                // Some program has it open for writing, or mapped from such an open.
    bool changed = false;     // Bytes differ from what they were at the last look.
    bool unknown = false;     // What some were then is not known.
    uint64_t next_bytes = 0;  // The next step begins there.
    bool complete = true;     // This was the last step.
  };
  // Compares at most kLookBytesMax from `from_bytes` on, and if a writer is left only if
  // `while_written`. `scratch` holds whole blocks.
  static constexpr uint64_t kLookBytesMax = uint64_t{256} << 20;
  Result<LocalWrites> LookAtLocalWrites(FileId file, uint64_t from_bytes, bool while_written,
                                        std::span<std::byte> scratch);

  // ---- for nodes that copy (object_sums.cc)

  // What has changed after `after_change` (from an earlier answer; 0: none), without blocks.
  BlockSums ChangesSince(FileId file, uint64_t after_change);
  // Adds the checksums of at most kSumsBytesMax, computing those that are not known. An absent
  // object is empty.
  Status SumBlocks(FileId file, ByteRange range, BlockSums& sums, std::span<std::byte> scratch);
  // Waits until ChangesSince would have something to say of one of the ranges, or, if there are
  // none, anything; at most `wait`, or until `give_up` (asked a few times a second) says so. Holds
  // no lock.
  void AwaitChange(FileId file, uint64_t after_change, std::span<const ByteRange> about,
                   Duration wait, const std::function<bool()>& give_up);
  // A local writer has written there.
  Status NoteLocalWrite(FileId file, ByteRange range);
  // There is something new to say of these ranges, though their bytes are the same.
  void NoteChanged(FileId file, std::span<const ByteRange> ranges);

  // Removes objects at once; they are no longer counted as used, though the pages of one that some
  // local program still has open are freed only when it closes it. What fails is logged and tried
  // again with each Account.
  void Drop(std::span<const FileId> files);
  // Looks at the lent objects, but those that somebody else is at, and repeats drops that failed.
  // What local programs have changed, and no mount has asked about for kTellAfter since they ended,
  // goes into the next heartbeat.
  // To be called a few times a second.
  static constexpr Duration kTellAfter = Seconds(6);
  void Account();
  // Seals one object if one is ready; false if there was nothing to do. `scratch` holds whole
  // blocks.
  bool SealNext(std::span<std::byte> scratch);
  // Waits until SealNext may have something to do, at most `wait`.
  void WaitForSealing(Duration wait);
  // Ends WaitForSealing and SealNext, for good.
  void StopSealing();
  // Has the records of what was sealed on the disk, where there is one.
  void SyncRecords();
  // The node stops: all that there is gets on the disk. Nothing may be under way any more.
  void End();
  // Compares the next blocks of the round with their checksums; returns how many bytes, 0 after the
  // last object.
  uint64_t ScrubNext(std::span<std::byte> scratch);

  // ---- objects that are put aside (object_aside.cc)

  // Carries an order out; what fails is logged, and stays as it was.
  void Obey(const AsideOrder& order);
  std::vector<AsideObject> ListAside() const;

  std::vector<FileId> ListObjects() const;
  // All objects with their sizes as the store has them now, ascending; without sizes if the store
  // does not say.
  void ListHeld(std::vector<FileId>& files, std::vector<HeldSize>& sizes) const;
  // Counters now, and some of the objects found corrupt, healed, or stored into, that no call has
  // named yet.
  NodeHeartbeat TakeHeartbeat();
  BulkUse UseOfBulkPlane() const;
  // The stream to the manager is a new one. The next heartbeats name every corrupt and every healed
  // object, and those stored into that were named so lately that the old stream may have lost it.
  void RepeatReports();
  uint64_t used_bytes() const;
  uint64_t unsealed_objects() const;
  ObjectStore& store() { return *store_; }
  MemoryBudget& budget() { return budget_; }
  void CountSent(uint64_t bytes) { bytes_read_remote_ += bytes; }
  NodeResidence& residence() { return residence_; }
  // How long requests have stayed in this node, and what it holds.
  ResidenceSnapshot SnapshotOfResidence() const;

 private:
  ObjectEngine(std::unique_ptr<ObjectStore> store, uint64_t limit_bytes, const Clock& clock);

  using ObjectRef = std::shared_ptr<Object>;  // Shared by connections; the last one frees it.

  // An object that is in the store and not in the table, with what was recorded of it.
  void AddFound(const StoredObject& found, const SumsRecord* record, uint64_t generation);
  // The same for an object that is in the table, under its lock.
  void TakeFound(Object& object, const StoredObject& found, const SumsRecord* record);
  void TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record);
  void MarkDamaged(Object& object);
  // Null if absent.
  ObjectRef Find(FileId file) const;
  ObjectRef FindOrAdd(FileId file);
  // A locked object with a descriptor; no object if absent.
  struct Opened {
    ObjectRef object;
    std::unique_lock<std::mutex> lock;
    UniqueFd fd;
  };
  Result<Opened> OpenToRead(FileId file) { return OpenObject(file, OpenMode::kRead, nullptr); }
  // Made if absent and `mode` says so; a change has begun.
  Result<Opened> OpenToChange(FileId file, OpenMode mode, const Changer& changer) {
    return OpenObject(file, mode, &changer);
  }
  Result<Opened> OpenObject(FileId file, OpenMode mode, const Changer* changer);

  // These need the object's lock.
  static Status Admits(const Object& object, const Changer& changer);
  bool MayHaveWriters(Object& object, int fd);  // `fd` is for reading.
  Status LookForWriters(Object& object);
  void NoteLeft(Object& object);
  void NoteTold(Object& object);
  void TellUntold();
  Status ComparePiece(Object& object, int fd, LocalWrites& look, std::span<std::byte> scratch);
  Status RefreshSize(Object& object, int fd);
  void AccountFor(Object& object, const ObjectStat& stat);
  void NoteChange(Object& object, Duration rest);  // Counts sealed or not, and queues for sealing.
  void NoteCorrupt(Object& object, BlockIndex block);
  void ForgetChecksums(Object& object);
  void Remove(Object& object);
  void NoteWritten(Object& object, ByteRange range);
  void NoteAllChanged(Object& object);
  Status MarkData(Object& object, int fd, ByteRange range, BlockSums& sums);
  Status SumBlock(Object& object, int fd, BlockIndex block, BlockSum& sum,
                  std::span<std::byte> scratch);
  Status SumMissing(Object& object, int fd, const ReadPlan& plan, std::span<std::byte> scratch);
  Status FillBuffer(Object& object, int fd, ReadPlan& plan, bool verify);
  Result<uint64_t> HoleBytes(int fd, uint64_t offset, uint64_t length);

  // ---- records (object_records.cc); but for the last three these need the object's lock
  // To be called before any byte of the object changes.
  Status BeginChange(Object& object, int fd, const Changer& changer);
  Status ForgetRecord(Object& object);            // No record of it holds any more, but of damage.
  Status Log(Object& object, LoggedState state);  // But kSums.
  void TryLog(Object& object, LoggedState state);
  void SetGeneration(Object& object, uint64_t generation);
  bool MayRecord(const Object& object) const;
  Status AppendRecord(Object& object);
  void Verify(Object& object, int fd, std::span<const KnownSum> sums, std::span<std::byte> scratch);
  // The next blocks that were not compared yet, at most so many.
  void VerifyNext(Object& object, int fd, size_t blocks_max, std::span<std::byte> scratch);
  void VerifyRest(Object& object, int fd);
  void VerifyAll(const ObjectRef& object, std::span<std::byte> scratch);
  void Record(const ObjectRef& object);
  Status RewriteRecords();

  void Wake(FileId file);
  // If not, `after_change` becomes the last change, which need not be looked at again.
  bool HasChanged(FileId file, uint64_t& after_change, std::span<const ByteRange> about);
  Result<uint64_t> ReserveRange(FileId file, int fd, uint64_t offset, uint64_t length);
  void GiveBack(uint64_t reserved_bytes);
  bool DropOne(FileId file);
  // What is aside, with what was recorded of it when it was put there.
  struct Aside {
    AsideObject object;
    std::optional<SumsRecord> record;  // The log has it as well.
    uint64_t record_bytes = 0;
    uint64_t generation = 0;
  };
  Status FindAside(SumsFound& found);
  void AddAside(Aside aside);
  // Gives up what is known of it; nothing if it is not aside.
  std::optional<Aside> RemoveAside(FileId file);
  Status RewriteAsideRecords();
  // Puts what is aside in the place of an object that is in the table, under its lock.
  Status TakeFromAside(Object& object);
  // What vouches for what was found; `damaged` where something had to.
  const SumsRecord* RecordOf(FileId file, const std::map<FileId, SumsRecord>& records) const;
  AsideObject DescribeAside(const StoredObject& stored) const;
  Status SetAside(FileId file);
  Status RestoreAside(FileId file);
  Status DiscardAside(FileId file);
  Status SealObject(const ObjectRef& object, std::span<std::byte> scratch);
  Status SumPiece(Object& object, int fd, uint64_t& offset, std::span<std::byte> scratch);
  Status SumStale(const ObjectRef& object, int fd, uint64_t epoch, std::span<std::byte> scratch);
  uint64_t ScrubPiece(Object& object, uint64_t& offset, std::span<std::byte> scratch);

  // Constant, or safe by themselves.
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
  std::atomic<uint64_t> last_change_;  // Begins with the time: higher than any before a restart.

  // Where checksums were kept before a crash of the machine, what none was kept of is damage.
  bool is_suspect_ = false;                // Constant after Open.
  std::atomic<uint64_t> record_bytes_{0};  // In records that still hold.
  std::atomic<uint64_t> unverified_objects_{0};
  std::atomic<bool> has_unsynced_records_{false};

  std::mutex waiters_mutex_;
  std::condition_variable woken_;
  std::multiset<FileId> waiters_;  // Guarded by waiters_mutex_.
  uint64_t wakes_ = 0;             // Guarded by waiters_mutex_.
  std::atomic<uint64_t> waiter_count_{0};

  mutable std::mutex objects_mutex_;
  std::map<FileId, ObjectRef> objects_;  // Guarded by objects_mutex_.

  mutable std::mutex aside_mutex_;
  std::map<FileId, Aside> aside_;  // Guarded by aside_mutex_.

  mutable std::mutex account_mutex_;
  std::condition_variable sealable_;
  // Guarded by account_mutex_:
  Admission admission_;
  SealQueue seal_queue_;
  std::set<FileId> lent_;
  std::set<FileId> drops_to_repeat_;
  std::set<FileId> left_untold_;  // Those whose left_untold is set.
  std::set<FileId> untold_to_report_;
  std::map<FileId, Time> untold_reported_;  // When a heartbeat has named it.
  std::map<FileId, uint64_t> corrupt_blocks_of_;
  std::set<FileId> corrupt_to_report_;
  // Objects whose damage was replaced, and the ones that no heartbeat has named yet.
  std::set<FileId> healed_, healed_to_report_;
  uint64_t unsealed_objects_ = 0;

  // Used only by the scrubbing thread.
  FileId scrub_file_;
  uint64_t scrub_offset_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_OBJECT_ENGINE_H_
