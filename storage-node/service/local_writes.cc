// ObjectEngine: finds what local programs store through mappings.
#include <algorithm>

#include "common/base/crc32c.h"
#include "common/base/mutex.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

Result<ObjectEngine::LocalWrites> ObjectEngine::LookAtLocalWrites(FileId file, uint64_t from_bytes,
                                                                  bool while_written,
                                                                  std::span<std::byte> scratch) {
  LocalWrites look;
  const ObjectRef object = Find(file);
  if (object == nullptr) return look;
  UniqueFd fd;
  {
    const SystemMutexLock lock(object->mutex);
    MOSA_RETURN_IF_ERROR(LookForWriters(*object));
    look.writers_left = object->lent;
    if (object->left_untold) object->left_untold = clock_.Monotonic();  // A mount is asking.
    if (object->dropped || (look.writers_left && !while_written)) return look;
    if (!object->told) {
      // Lent since before this process began, or to a mount that has reported all changes.
      object->told = ChecksumTable::ForUnknownBytes();
    }
    MOSA_ASSIGN_OR_RETURN(fd, store_->Open(file, OpenMode::kRead));
  }
  look.next_bytes = from_bytes;
  look.complete = false;
  while (!look.complete && look.next_bytes - from_bytes < kLookBytesMax) {
    const SystemMutexLock lock(object->mutex);
    if (object->dropped) return LocalWrites{};
    MOSA_RETURN_IF_ERROR(ComparePiece(*object, fd.get(), look, scratch));
    object->answered = object->answered || look.changed || look.unknown;
  }
  return look;
}

// Compares the blocks with data in the next piece, and records their current checksums.
Status ObjectEngine::ComparePiece(Object& object, int fd, LocalWrites& look,
                                  std::span<std::byte> scratch) {
  if (!object.told) object.told = ChecksumTable::ForUnknownBytes();
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_->Stat(fd));
  const Result<uint64_t> data = store_->Seek(fd, look.next_bytes, /*data=*/true);
  if (!data.ok() && data.status().code() != StatusCode::kNotFound) return data.status();
  if (!data.ok()) {
    if (object.told_bytes != stat.size_bytes)
      (object.told->complete() ? look.changed : look.unknown) = true;
    object.told->SetComplete();
    object.told_bytes = stat.size_bytes;
    look.complete = true;
    return OkStatus();
  }
  const uint64_t begin = BeginOf(BlockOf(*data));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_->Read(fd, begin, scratch));
  for (uint64_t at = 0; at < got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    const uint64_t extent = std::min<uint64_t>(kChecksumBlockBytes, got - at);
    const uint32_t crc = Crc32c(scratch.data() + at, extent);
    const std::optional<uint32_t> before = object.told->Get(block, object.told_bytes);
    look.unknown = look.unknown || !before;
    look.changed = look.changed || (before && *before != crc);
    object.told->Set(block, crc);
    // Nobody can store into it any more, so this checksum stays valid.
    if (!object.lent && stat.size_bytes == object.size_bytes &&
        extent == ExtentOf(block, object.size_bytes) &&
        !object.checksums.Get(block, object.size_bytes))
      object.checksums.Set(block, crc);
  }
  look.next_bytes = begin + std::max<uint64_t>(got, kChecksumBlockBytes);
  return OkStatus();
}

// Called when nobody can store into it any more. The next mount that asks reports the changes.
void ObjectEngine::NoteLeft(Object& object) {
  if (!object.told) return;
  object.left_untold = clock_.Monotonic();
  const SystemMutexLock lock(account_mutex_);
  left_untold_.insert(object.file);
}

void ObjectEngine::NoteTold(Object& object) {
  object.told.reset();
  object.answered = false;
  object.left_untold.reset();
  const SystemMutexLock lock(account_mutex_);
  left_untold_.erase(object.file);
}

void ObjectEngine::TellUntold() {
  std::set<FileId> left;
  {
    const SystemMutexLock lock(account_mutex_);
    left = left_untold_;
  }
  for (const FileId file : left) {
    const ObjectRef object = Find(file);
    if (object == nullptr) continue;
    if (!object->mutex.try_lock()) continue;
    const SystemMutexLock lock(object->mutex, std::adopt_lock);
    if (!object->left_untold || object->lent) continue;
    if (clock_.Monotonic() - *object->left_untold < kTellAfter) continue;
    if (!object->checksums.sealed()) continue;  // Its checksums are still being computed.
    const bool changed =
        object->answered || ChecksumTable::MayDiffer(*object->told, object->told_bytes,
                                                     object->checksums, object->size_bytes);
    NoteTold(*object);
    if (!changed) continue;
    const SystemMutexLock account(account_mutex_);
    untold_to_report_.insert(file);
  }
}

}  // namespace mosa::node
