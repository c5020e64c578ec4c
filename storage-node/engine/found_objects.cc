#include "storage-node/engine/found_objects.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {

const SumsRecord* FoundObjects::RecordOf(FileId file,
                                         const std::map<FileId, SumsRecord>& records) const {
  static const SumsRecord kDamaged = ObjectRecords::Damaged();
  const auto known = records.find(file);
  if (known != records.end()) return &known->second;
  return is_suspect_ ? &kDamaged : nullptr;
}

void FoundObjects::Add(const StoredObject& found, const SumsRecord* record, uint64_t generation) {
  auto object = std::make_shared<Object>(found.file);
  const SystemMutexLock lock(object->mutex);
  object->writer_generation = generation;
  records_.CountBytes(0, ObjectRecords::BytesOf(generation));
  MOSA_CHECK(table_.Add(object));
  Take(*object, found, record);
}

void FoundObjects::Take(Object& object, const StoredObject& found, const SumsRecord* record) {
  object.size_bytes = found.size_bytes;
  ledger_.AccountFor(object, {.size_bytes = found.size_bytes,
                              .allocated_bytes = found.allocated_bytes,
                              .modify_time = {}});
  TakeRecord(object, found, record);
  // Mounts keep their descriptors while a node is down. But none was passed out for writing after
  // the checksums were logged.
  object.lent = object.logged != LoggedState::kSums;
  if (object.lent) lent_.lent.Insert(found.file);
  ledger_.NoteChange(object, Duration{});
}

// If the object is shorter than recorded, the missing part is damaged, without a read.
void FoundObjects::TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record) {
  object.checksums = ChecksumTable::ForUnknownBytes();
  if (record == nullptr) return;
  if (record->damaged) return MarkDamaged(object);
  if (found.size_bytes > record->size_bytes) {  // The record is no longer valid.
    object.logged = LoggedState::kSums;
    records_.TryLog(object, LoggedState::kNothing);
    if (is_suspect_) MarkDamaged(object);
    return;
  }
  object.checksums = ChecksumTable::ForSums(record->sums);
  object.logged = LoggedState::kSums;
  object.recorded_size_bytes = record->size_bytes;
  const bool verifies = store_.is_after_crash() || store_.record().verifying;
  object.unverified = verifies;
  if (verifies) ++records_.unverified_count;
  for (auto sum = record->sums.rbegin(); sum != record->sums.rend(); ++sum) {
    const uint64_t end = BeginOf(sum->block) + ExtentOf(sum->block, record->size_bytes);
    if (end <= found.size_bytes) break;
    ledger_.NoteCorrupt(object, sum->block);
  }
  if (object.checksums.corrupt_count() > 0)
    LogError("the object of file {} has {} bytes instead of {}: {} blocks are lost",
             object.file.value, found.size_bytes, record->size_bytes,
             object.checksums.corrupt_count());
}

// Marks all blocks with data, or the first block if there are none.
void FoundObjects::MarkDamaged(Object& object) {
  const Result<UniqueFd> fd = store_.Open(object.file, OpenMode::kRead);
  bool marked = false;
  for (uint64_t at = 0; fd.ok() && at < object.size_bytes;) {
    const Result<uint64_t> data = store_.Seek(fd->get(), at, /*data=*/true);
    if (!data.ok()) break;
    const Result<uint64_t> hole = store_.Seek(fd->get(), *data, /*data=*/false);
    const uint64_t end = hole.ok() ? *hole : object.size_bytes;
    for (at = *data; at < end; at = BeginOf(BlockOf(at)) + kChecksumBlockBytes)
      ledger_.NoteCorrupt(object, BlockOf(at));
    marked = true;
  }
  if (!marked) ledger_.NoteCorrupt(object, BlockIndex{0});
  LogError(
      "the object of file {} ({} bytes) counts as damaged until it is rewritten: damage was "
      "recorded, or nothing vouches for it after a machine crash",
      object.file.value, object.size_bytes);
}

}  // namespace mosa::node
