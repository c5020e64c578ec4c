#include "storage-node/engine/object_ledger.h"

#include <memory>

namespace mosa::node {

// ---- local writers

bool ObjectLedger::MayHaveWriters(Object& object, int fd) {
  if (!object.lent) return false;
  const Result<bool> writers = books_.store.HasWriters(fd);
  // It was lent before this process began. Its mount may have ended, so nobody else would report
  // it.
  if (writers.ok() && *writers && !object.told) object.told = SeenBytes{};
  if (!writers.ok() || *writers || !RefreshSize(object, fd).ok()) return true;
  object.lent = false;
  NoteLeft(object);
  NoteAllChanged(object);
  books_.lent.lent.Erase(object.file);
  NoteChange(object, Duration{});
  return false;
}

Status ObjectLedger::LookForWriters(Object& object) {
  if (object.dropped) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, books_.store.Open(object.file, OpenMode::kRead));
  return MayHaveWriters(object, fd.get()) ? RefreshSize(object, fd.get()) : OkStatus();
}

// Called when nobody can store into it any more. The next mount that asks reports the changes.
void ObjectLedger::NoteLeft(Object& object) {
  if (!object.told) return;
  object.left_untold = books_.clock.Monotonic();
  books_.lent.left_untold.Insert(object.file);
}

void ObjectLedger::NoteTold(Object& object) {
  object.told.reset();
  object.finished.reset();
  object.answered = false;
  object.left_untold.reset();
  books_.lent.left_untold.Erase(object.file);
}

// ---- sizes

Status ObjectLedger::RefreshSize(Object& object, int fd) {
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, books_.store.Stat(fd));
  object.size_bytes = stat.size_bytes;
  AccountFor(object, stat);
  return OkStatus();
}

void ObjectLedger::AccountFor(Object& object, const ObjectStat& stat) {
  if (object.dropped || stat.allocated_bytes == object.allocated_bytes) return;
  if (object.lent && stat.allocated_bytes > object.allocated_bytes)
    books_.counters.bytes_written_local += stat.allocated_bytes - object.allocated_bytes;
  books_.room.Account(object.allocated_bytes, stat.allocated_bytes);
  object.allocated_bytes = stat.allocated_bytes;
}

// ---- changes

void ObjectLedger::NoteChange(Object& object, Duration rest) {
  if (object.dropped) return;
  const uint64_t corrupt_blocks = object.checksums.corrupt_count();
  if (object.logged == LoggedState::kDamaged && corrupt_blocks == 0)
    books_.records.TryLog(object, LoggedState::kNothing);
  const bool unsealed = !object.checksums.sealed() || object.lent;
  if (unsealed != object.counted_unsealed) {
    books_.sealing.unsealed_count += unsealed ? 1 : uint64_t{0} - 1;
    object.counted_unsealed = unsealed;
  }
  books_.reports.SetCorruptBlocks(object.file, corrupt_blocks);
  const bool has_work = unsealed || object.unverified || books_.records.MayAppend(object);
  if (has_work && !object.lent) books_.sealing.Push(object.file, rest);
}

void ObjectLedger::NoteCorrupt(Object& object, BlockIndex block) {
  object.checksums.MarkCorrupt(block);
  // Logged checksums would reveal the damage again.
  if (object.logged != LoggedState::kSums) books_.records.TryLog(object, LoggedState::kDamaged);
  books_.reports.NoteDamage(object.file, object.checksums.corrupt_count());
}

void ObjectLedger::ForgetChecksums(Object& object) {
  object.checksums.Forget();
  ++object.forgotten_count;
  NoteAllChanged(object);
}

void ObjectLedger::NoteWritten(Object& object, ByteRange range) {
  if (object.told) object.told->sums = ChecksumTable::ForUnknownBytes();
  object.finished.reset();
  if (object.changes) object.changes->Note(range, NextChange());
  books_.waiters.Wake(object.file);
}

void ObjectLedger::NoteAllChanged(Object& object) {
  if (object.changes) object.changes->NoteAll(NextChange());
  books_.waiters.Wake(object.file);
}

void ObjectLedger::Remove(Object& object) {
  AccountFor(object, ObjectStat{});
  books_.records.Remove(object);
  object.dropped = true;
  if (object.counted_unsealed) --books_.sealing.unsealed_count;
  books_.sealing.Remove(object.file);
  books_.lent.lent.Erase(object.file);
  books_.lent.left_untold.Erase(object.file);
  books_.reports.Forget(object.file);
  // Last: whoever makes the file's object anew makes it known to all of these again.
  books_.table.Erase(object.file);
  books_.waiters.Wake(object.file);
}

}  // namespace mosa::node
