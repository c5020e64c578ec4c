// ObjectEngine: checksums stored beside the objects. They are written when an object is sealed,
// withdrawn before it changes, and verified after the machine crashed.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/checksum_blocks.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {
namespace {

// Obsolete records may take this much more space than valid ones.
constexpr uint64_t kGarbageBytesMin = 8 << 20;
// Number of blocks verified per hold of the object's lock.
constexpr size_t kComparedAtOnce = 64;
// Then a waiter for the lock gets this time to wake up: mutexes are not fair.
constexpr std::chrono::microseconds kPause{50};

SumsRecord DamagedRecord() { return {.damaged = true, .size_bytes = 0, .sums = {}}; }

}  // namespace

// ---- objects found at the start

const SumsRecord* ObjectEngine::RecordOf(FileId file,
                                         const std::map<FileId, SumsRecord>& records) const {
  static const SumsRecord kDamaged = DamagedRecord();
  const auto known = records.find(file);
  if (known != records.end()) return &known->second;
  return is_suspect_ ? &kDamaged : nullptr;
}

void ObjectEngine::AddFound(const StoredObject& found, const SumsRecord* record,
                            uint64_t generation) {
  auto object = std::make_shared<Object>(found.file);
  const SystemMutexLock lock(object->mutex);
  object->writer_generation = generation;
  record_bytes_ += generation > 0 ? kGenerationRecordBytes : 0;
  {
    const SystemMutexLock objects_lock(objects_mutex_);
    MOSA_CHECK(objects_.emplace(found.file, object).second);
  }
  TakeFound(*object, found, record);
}

void ObjectEngine::TakeFound(Object& object, const StoredObject& found, const SumsRecord* record) {
  object.size_bytes = found.size_bytes;
  AccountFor(object, {.size_bytes = found.size_bytes,
                      .allocated_bytes = found.allocated_bytes,
                      .modify_time = {}});
  TakeRecord(object, found, record);
  // Mounts keep their descriptors while a node is down. But none was passed out for writing after
  // the checksums were logged.
  object.lent = object.logged != LoggedState::kSums;
  if (object.lent) {
    const SystemMutexLock account_lock(account_mutex_);
    lent_.insert(found.file);
  }
  NoteChange(object, Duration{});
}

// If the object is shorter than recorded, the missing part is damaged, without a read.
void ObjectEngine::TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record) {
  object.checksums = ChecksumTable::ForUnknownBytes();
  if (record == nullptr) return;
  if (record->damaged) return MarkDamaged(object);
  if (found.size_bytes > record->size_bytes) {  // The record is no longer valid.
    object.logged = LoggedState::kSums;
    TryLog(object, LoggedState::kNothing);
    if (is_suspect_) MarkDamaged(object);
    return;
  }
  object.checksums = ChecksumTable::ForSums(record->sums);
  object.logged = LoggedState::kSums;
  object.recorded_size_bytes = record->size_bytes;
  const bool verifies = store_->is_after_crash() || store_->record().verifying;
  object.unverified = verifies;
  if (verifies) ++unverified_objects_;
  for (auto sum = record->sums.rbegin(); sum != record->sums.rend(); ++sum) {
    const uint64_t end = BeginOf(sum->block) + ExtentOf(sum->block, record->size_bytes);
    if (end <= found.size_bytes) break;
    NoteCorrupt(object, sum->block);
  }
  if (object.checksums.corrupt_count() > 0)
    LogError("the object of file {} has {} bytes instead of {}: {} blocks are lost",
             object.file.value, found.size_bytes, record->size_bytes,
             object.checksums.corrupt_count());
}

// Marks all blocks with data, or the first block if there are none.
void ObjectEngine::MarkDamaged(Object& object) {
  const Result<UniqueFd> fd = store_->Open(object.file, OpenMode::kRead);
  bool marked = false;
  for (uint64_t at = 0; fd.ok() && at < object.size_bytes;) {
    const Result<uint64_t> data = store_->Seek(fd->get(), at, /*data=*/true);
    if (!data.ok()) break;
    const Result<uint64_t> hole = store_->Seek(fd->get(), *data, /*data=*/false);
    const uint64_t end = hole.ok() ? *hole : object.size_bytes;
    for (at = *data; at < end; at = BeginOf(BlockOf(at)) + kChecksumBlockBytes)
      NoteCorrupt(object, BlockOf(at));
    marked = true;
  }
  if (!marked) NoteCorrupt(object, BlockIndex{0});
  LogError(
      "the object of file {} ({} bytes) counts as damaged until it is rewritten: damage was "
      "recorded, or nothing vouches for it after a machine crash",
      object.file.value, object.size_bytes);
}

// ---- changes

Status ObjectEngine::Log(Object& object, LoggedState state) {
  MOSA_CHECK(state != LoggedState::kSums);
  SumsLog* const sums = store_->sums();
  if (sums == nullptr || object.logged == state) return OkStatus();
  MOSA_RETURN_IF_ERROR(sums->Append(state == LoggedState::kDamaged
                                        ? EncodeSums(object.file, DamagedRecord())
                                        : EncodeForgotten(object.file)));
  object.logged = state;
  record_bytes_ -= std::exchange(object.record_bytes, 0);
  return OkStatus();
}

// Logged, so that later stores are not overwritten by older ones after a restart either.
void ObjectEngine::SetGeneration(Object& object, uint64_t generation) {
  const uint64_t before = std::exchange(object.writer_generation, generation);
  SumsLog* const sums = store_->sums();
  if (before == generation || sums == nullptr) return;
  record_bytes_ += generation > 0 ? kGenerationRecordBytes : 0;
  record_bytes_ -= before > 0 ? kGenerationRecordBytes : 0;
  const Status logged = sums->Append(EncodeGeneration(object.file, generation));
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
  has_unsynced_records_ = true;
}

void ObjectEngine::TryLog(Object& object, LoggedState state) {
  const Status logged = Log(object, state);
  if (!logged.ok()) LogWarning("{}", MessageOf(logged));
}

Status ObjectEngine::ForgetRecord(Object& object) {
  return Log(object,
             object.checksums.corrupt_count() > 0 ? LoggedState::kDamaged : LoggedState::kNothing);
}

Status ObjectEngine::BeginChange(Object& object, int fd, const Changer& changer) {
  MOSA_RETURN_IF_ERROR(Admits(object, changer));
  if (!changer.is_order) SetGeneration(object, changer.generation);
  // A partial write relies on the rest of its block, so all blocks are verified first.
  VerifyRest(object, fd);
  ++object.changes_begun;
  return ForgetRecord(object);
}

// ---- recording

bool ObjectEngine::MayRecord(const Object& object) const {
  return object.logged != LoggedState::kSums && !object.unrecordable && !object.dropped &&
         !object.lent && object.checksums.sealed() && object.checksums.corrupt_count() == 0 &&
         store_->sums() != nullptr && !store_->sums()->given_up();
}

Status ObjectEngine::AppendRecord(Object& object) {
  if (object.logged != LoggedState::kSums) object.recorded_size_bytes = object.size_bytes;
  SumsRecord record{.damaged = false,
                    .size_bytes = object.recorded_size_bytes,
                    .sums = object.checksums.ListKnown()};
  if (record.sums.size() > kSumsPerRecordMax) {
    object.unrecordable = true;
    return OkStatus();
  }
  const std::string bytes = EncodeSums(object.file, record);
  MOSA_RETURN_IF_ERROR(store_->sums()->Append(bytes));
  record_bytes_ -= object.record_bytes;
  record_bytes_ += bytes.size();
  object.record_bytes = bytes.size();
  object.logged = LoggedState::kSums;
  has_unsynced_records_ = true;
  return OkStatus();
}

// The bytes must be on disk before a record vouches for them.
void ObjectEngine::Record(const ObjectRef& object) {
  uint64_t changes = 0;
  {
    const SystemMutexLock lock(object->mutex);
    if (!MayRecord(*object)) return;
    changes = object->changes_begun;
  }
  if (store_->syncs()) {
    const Result<UniqueFd> fd = store_->Open(object->file, OpenMode::kRead);
    if (!fd.ok()) return;
    if (::fdatasync(fd->get()) != 0) {
      LogWarning("the object of file {} cannot be synced and gets no record: {}",
                 object->file.value, std::strerror(errno));
      const SystemMutexLock lock(object->mutex);
      object->unrecordable = true;
      return;
    }
  }
  {
    const SystemMutexLock lock(object->mutex);
    if (!MayRecord(*object) || object->changes_begun != changes) return;
    const Status recorded = AppendRecord(*object);
    if (!recorded.ok()) LogWarning("{}", MessageOf(recorded));
  }
  if (store_->sums()->bytes() <= 2 * record_bytes_ + kGarbageBytesMin) return;
  Status status = store_->sums()->BeginNext();
  if (status.ok()) status = RewriteRecords();
  if (!status.ok()) LogWarning("{}", MessageOf(status));
}

// Rewrites all valid records into the last file, which replaces all earlier files.
Status ObjectEngine::RewriteRecords() {
  SumsLog* const sums = store_->sums();
  if (sums == nullptr) return OkStatus();
  for (const FileId file : ListObjects()) {
    const ObjectRef object = Find(file);
    if (object == nullptr) continue;
    const SystemMutexLock lock(object->mutex);
    if (object->dropped) continue;
    if (object->writer_generation > 0)
      MOSA_RETURN_IF_ERROR(sums->Append(EncodeGeneration(file, object->writer_generation)));
    if (object->logged == LoggedState::kSums) {
      MOSA_RETURN_IF_ERROR(AppendRecord(*object));
    } else if (object->logged == LoggedState::kDamaged) {
      MOSA_RETURN_IF_ERROR(sums->Append(EncodeSums(file, DamagedRecord())));
    }
  }
  // After the objects: one put aside meanwhile is found here; one restored meanwhile has been
  // recorded.
  MOSA_RETURN_IF_ERROR(RewriteAsideRecords());
  if (store_->syncs()) MOSA_RETURN_IF_ERROR(sums->Sync());
  return sums->FinishNext();
}

void ObjectEngine::SyncRecords() {
  if (!store_->syncs() || !has_unsynced_records_.exchange(false)) return;
  const Status synced = store_->sums()->Sync();
  if (!synced.ok()) LogWarning("{}", MessageOf(synced));
}

void ObjectEngine::End() {
  SyncRecords();
  const Status ended = store_->MarkRun(RunState::kEnded);
  if (!ended.ok()) LogWarning("{}", MessageOf(ended));
}

// ---- verifying

void ObjectEngine::Verify(Object& object, int fd, std::span<const KnownSum> sums,
                          std::span<std::byte> scratch) {
  for (const KnownSum& sum : sums) {
    if (object.checksums.CorruptIn(sum.block, BlockIndex{sum.block.value + 1})) continue;
    const auto bytes = scratch.first(ExtentOf(sum.block, object.size_bytes));
    const Result<size_t> got = store_->Read(fd, BeginOf(sum.block), bytes);
    if (got.ok() && *got == bytes.size() && Crc32c(bytes.data(), bytes.size()) == sum.crc) continue;
    NoteCorrupt(object, sum.block);
    LogError(
        "block {} of the object of file {} is not what was recorded before the machine "
        "crashed",
        sum.block.value, object.file.value);
  }
}

void ObjectEngine::VerifyNext(Object& object, int fd, size_t blocks_max,
                              std::span<std::byte> scratch) {
  const std::vector<KnownSum> sums = object.checksums.ListKnown(object.compared_end, blocks_max);
  Verify(object, fd, sums, scratch);
  if (sums.size() == blocks_max) {
    object.compared_end = BlockIndex{sums.back().block.value + 1};
    return;
  }
  object.unverified = false;
  if (--unverified_objects_ > 0) return;
  const Status marked = store_->MarkRun(RunState::kVerified);
  if (!marked.ok()) LogWarning("{}", MessageOf(marked));
  LogInfo("all objects have been verified against their checksums");
}

// Verifies what VerifyAll left.
void ObjectEngine::VerifyRest(Object& object, int fd) {
  if (!object.unverified) return;
  std::vector<std::byte> scratch(kChecksumBlockBytes);
  VerifyNext(object, fd, SIZE_MAX, scratch);
}

// Verifies in pieces, so that others need not wait for the whole object. Several callers share the
// work. The object is not changed until all of it is verified.
void ObjectEngine::VerifyAll(const ObjectRef& object, std::span<std::byte> scratch) {
  UniqueFd fd;
  std::vector<std::byte> own_scratch;
  while (unverified_objects_ > 0) {
    {
      const SystemMutexLock lock(object->mutex);
      if (stopped_ || object->dropped || !object->unverified) return;
      if (!fd) {
        Result<UniqueFd> opened = store_->Open(object->file, OpenMode::kRead);
        if (!opened.ok() || MayHaveWriters(*object, opened->get())) return;
        fd = *std::move(opened);
        if (scratch.empty()) own_scratch.resize(kChecksumBlockBytes);
        if (scratch.empty()) scratch = own_scratch;
      }
      VerifyNext(*object, fd.get(), kComparedAtOnce, scratch);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace mosa::node
