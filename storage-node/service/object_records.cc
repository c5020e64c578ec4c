// The part of ObjectEngine that keeps checksums beside the objects: written when an object is
// sealed, withdrawn before the object changes, compared with the bytes after the machine crashed.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {
namespace {

// Records that do not hold any more may take so much more room than those that do.
constexpr uint64_t kGarbageBytesMin = 8 << 20;
// An object's lock is held for so many comparisons.
constexpr size_t kBlocksAtOnce = 16;

}  // namespace

// ---- what is found

void ObjectEngine::AddFound(const StoredObject& found, const SumsRecord* record, bool is_suspect) {
  auto object = std::make_shared<Object>(found.file);
  object->size_bytes = found.size_bytes;
  const std::lock_guard lock(object->mutex);
  {
    const std::lock_guard objects_lock(objects_mutex_);
    // Somebody who was to write it was faster, and has found the same bytes.
    if (!objects_.emplace(found.file, object).second) return;
  }
  AccountFor(*object, {.size_bytes = found.size_bytes,
                       .allocated_bytes = found.allocated_bytes,
                       .modify_time = {}});
  object->lent = true;  // Mounts keep their descriptors while a node is away.
  {
    const std::lock_guard account_lock(account_mutex_);
    lent_.insert(found.file);
  }
  TakeRecord(*object, found, record, is_suspect);
  NoteChange(*object, Duration{});
}

// What an object lacks of what was recorded is damage at once: nobody need read it to know.
void ObjectEngine::TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record,
                              bool is_suspect) {
  object.checksums = ChecksumTable::ForUnknownBytes();
  const bool has_grown =
      record != nullptr && !record->damaged && found.size_bytes > record->size_bytes;
  if (record == nullptr || record->damaged || has_grown) {
    if (is_suspect || (record != nullptr && record->damaged)) MarkDamaged(object);
    return;
  }
  object.checksums = ChecksumTable::ForSums(record->sums);
  object.recorded = true;
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
    LogError("the object of file {} has {} bytes and had {}: {} blocks are lost", object.file.value,
             found.size_bytes, record->size_bytes, object.checksums.corrupt_count());
}

// All blocks with data; the first one, if there are none.
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
      "nothing vouches for the object of file {} ({} bytes) after a crash of the machine: it "
      "counts as damaged",
      object.file.value, object.size_bytes);
}

// ---- changes

Status ObjectEngine::ForgetRecord(Object& object) {
  SumsLog* const sums = store_->sums();
  if (sums == nullptr || !object.recorded) return OkStatus();
  const bool damaged = object.checksums.corrupt_count() > 0;
  MOSA_RETURN_IF_ERROR(
      sums->Append(damaged ? EncodeSums(object.file, {.damaged = true, .size_bytes = 0, .sums = {}})
                           : EncodeForgotten(object.file)));
  object.recorded = false;
  record_bytes_ -= std::exchange(object.record_bytes, 0);
  return OkStatus();
}

Status ObjectEngine::BeginChange(Object& object, int fd, const Changer& changer) {
  MOSA_RETURN_IF_ERROR(Admits(object, changer));
  if (changer.generation) object.writer_generation = *changer.generation;
  ++object.changes_begun;
  if (object.unverified) {
    // A part of a block is written over what is there, which then is believed.
    std::vector<std::byte> scratch(kChecksumBlockBytes);
    Verify(object, fd, object.checksums.ListKnown(), scratch);
    SetVerified(object);
  }
  return ForgetRecord(object);
}

// ---- recording

bool ObjectEngine::MayRecord(const Object& object) const {
  return !object.recorded && !object.unrecordable && !object.dropped && !object.lent &&
         object.checksums.sealed() && object.checksums.corrupt_count() == 0 &&
         store_->sums() != nullptr && !store_->sums()->given_up();
}

Status ObjectEngine::AppendRecord(Object& object) {
  if (!object.recorded) object.recorded_size_bytes = object.size_bytes;
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
  object.recorded = true;
  has_unsynced_records_ = true;
  return OkStatus();
}

// The bytes are on the disk before a record vouches for them.
void ObjectEngine::Record(const ObjectRef& object) {
  uint64_t changes = 0;
  {
    const std::lock_guard lock(object->mutex);
    if (!MayRecord(*object)) return;
    changes = object->changes_begun;
  }
  if (store_->syncs()) {
    const Result<UniqueFd> fd = store_->Open(object->file, OpenMode::kRead);
    if (!fd.ok()) return;
    if (::fdatasync(fd->get()) != 0) {
      LogWarning("the object of file {} cannot be synced, and gets no record: {}",
                 object->file.value, std::strerror(errno));
      const std::lock_guard lock(object->mutex);
      object->unrecordable = true;
      return;
    }
  }
  {
    const std::lock_guard lock(object->mutex);
    if (!MayRecord(*object) || object->changes_begun != changes) return;
    const Status recorded = AppendRecord(*object);
    if (!recorded.ok()) LogWarning("{}", MessageOf(recorded));
  }
  if (store_->sums()->bytes() <= 2 * record_bytes_ + kGarbageBytesMin) return;
  Status status = store_->sums()->BeginNext();
  if (status.ok()) status = RewriteRecords();
  if (!status.ok()) LogWarning("{}", MessageOf(status));
}

// Into the last file, in the place of all that is in files before it.
Status ObjectEngine::RewriteRecords() {
  SumsLog* const sums = store_->sums();
  if (sums == nullptr) return OkStatus();
  for (const FileId file : ListObjects()) {
    const ObjectRef object = Find(file);
    if (object == nullptr) continue;
    const std::lock_guard lock(object->mutex);
    if (object->dropped) continue;
    if (object->recorded) {
      MOSA_RETURN_IF_ERROR(AppendRecord(*object));
    } else if (object->checksums.corrupt_count() > 0) {
      MOSA_RETURN_IF_ERROR(
          sums->Append(EncodeSums(file, {.damaged = true, .size_bytes = 0, .sums = {}})));
    }
  }
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

// ---- comparing

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

// In pieces, so that others need not wait for the whole object.
void ObjectEngine::VerifyAll(const ObjectRef& object, std::span<std::byte> scratch) {
  UniqueFd fd;
  std::vector<KnownSum> sums;
  uint64_t changes = 0;
  {
    const std::lock_guard lock(object->mutex);
    if (!object->unverified || object->dropped || object->lent) return;
    Result<UniqueFd> opened = store_->Open(object->file, OpenMode::kRead);
    if (!opened.ok()) return;
    fd = *std::move(opened);
    sums = object->checksums.ListKnown();
    changes = object->changes_begun;
  }
  std::span<const KnownSum> rest = sums;
  bool done = false;
  while (!done) {
    const std::lock_guard lock(object->mutex);
    // Who changes it has compared all of it before.
    if (stopped_ || object->dropped || object->changes_begun != changes || !object->unverified)
      return;
    Verify(*object, fd.get(), rest.first(std::min(rest.size(), kBlocksAtOnce)), scratch);
    rest = rest.subspan(std::min(rest.size(), kBlocksAtOnce));
    done = rest.empty();
    if (done) SetVerified(*object);
  }
}

void ObjectEngine::SetVerified(Object& object) {
  if (!std::exchange(object.unverified, false) || --unverified_objects_ > 0) return;
  const Status marked = store_->MarkRun(RunState::kVerified);
  if (!marked.ok()) LogWarning("{}", MessageOf(marked));
  LogInfo("all objects were compared with their checksums");
}

}  // namespace mosa::node
