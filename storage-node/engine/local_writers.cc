#include "storage-node/engine/local_writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {

LocalWriters::LocalWriters(const Borrowed& borrowed)
    : store_(borrowed.store),
      clock_(borrowed.clock),
      table_(borrowed.table),
      opener_(borrowed.opener),
      verifier_(borrowed.verifier),
      ledger_(borrowed.ledger),
      sealing_(borrowed.sealing),
      reports_(borrowed.reports),
      lent_(borrowed.lent),
      counters_(borrowed.counters) {}

// ---- descriptors

// Those to pass out are opened under the object's lock, like all others.

Result<UniqueFd> LocalWriters::OpenToRead(FileId file) {
  // Reads through a descriptor are not verified, so verify now.
  if (const ObjectRef found = table_.Find(file)) verifier_.VerifyAll(found, {});
  MOSA_ASSIGN_OR_RETURN(OpenedObject opened, opener_.ToRead(file));
  if (opened.object == nullptr) return AbsentError(file);
  Object& object = *opened.object;
  object.mutex.AssertHeld();
  verifier_.VerifyRest(object, opened.fd.get());
  const auto corrupt = object.checksums.CorruptIn(BlockIndex{0}, BlockIndex{UINT64_MAX});
  if (corrupt) {
    return DataLossError(
        fmt::format("block {} of the object of file {} is corrupt", corrupt->value, file.value));
  }
  ++counters_.descriptors_passed;
  return std::move(opened.fd);
}

Result<UniqueFd> LocalWriters::OpenToWrite(FileId file, const Changer& changer) {
  // The passed descriptor itself counts as a writer.
  MOSA_ASSIGN_OR_RETURN(OpenedObject opened, opener_.ToChange(file, OpenMode::kCreate, changer));
  Object& object = *opened.object;
  object.mutex.AssertHeld();
  // A write through a descriptor would not show whether a damaged block was rewritten.
  if (object.checksums.corrupt_count() > 0) {
    return FailedPreconditionError(fmt::format(
        "cannot pass a descriptor of file {} for writing: {} blocks of its object are damaged",
        file.value, object.checksums.corrupt_count()));
  }
  // If the kernel does not see this descriptor as a writer, it would not see any.
  MOSA_ASSIGN_OR_RETURN(const UniqueFd look, store_.Open(file, OpenMode::kRead));
  MOSA_ASSIGN_OR_RETURN(const bool seen, store_.HasWriters(look.get()));
  if (!seen) {
    return FailedPreconditionError(
        fmt::format("cannot pass a descriptor of file {} for writing: the objects' file system has "
                    "no leases, or fs.leases-enable is 0",
                    file.value));
  }
  if (!object.told) {
    object.told = SeenBytes{.size_bytes = object.size_bytes};
    if (!object.lent) object.told->sums = object.checksums;
  }
  object.left_untold.reset();
  ledger_.ForgetChecksums(object);
  object.lent = true;
  lent_.lent.Insert(file);
  sealing_.Remove(file);
  ledger_.NoteChange(object, Duration{});
  ++counters_.descriptors_passed;
  return std::move(opened.fd);
}

Status LocalWriters::Finish(FileId file, std::span<std::byte> scratch) {
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return OkStatus();
  UniqueFd fd;
  {
    const SystemMutexLock lock(object->mutex);
    MOSA_RETURN_IF_ERROR(ledger_.LookForWriters(*object));
    if (!object->lent) ledger_.NoteTold(*object);
    if (!object->lent || !object->told) return OkStatus();
    // The program's close has not dropped the kernel's reference yet, or somebody else has one,
    // whose changes its own mount reports.
    object->told->sums = ChecksumTable::ForUnknownBytes();
    object->finished.reset();
    if (object->size_bytes > kLookBytesMax) return OkStatus();
    MOSA_ASSIGN_OR_RETURN(fd, store_.Open(file, OpenMode::kRead));
  }
  SeenBytes seen;
  for (LocalWrites look{.complete = false}; !look.complete;) {
    const SystemMutexLock lock(object->mutex);
    // Such files are compared as if nothing had been reported: rarely in vain.
    if (object->dropped || !object->told || look.next_bytes > kLookBytesMax) return OkStatus();
    MOSA_RETURN_IF_ERROR(ComparePiece(*object, seen, fd.get(), look, scratch));
    if (look.complete) object->finished = std::move(seen);
  }
  return OkStatus();
}

Result<LocalWrites> LocalWriters::Look(FileId file, uint64_t from_bytes, bool while_written,
                                       std::span<std::byte> scratch) {
  LocalWrites look;
  const ObjectRef object = table_.Find(file);
  if (object == nullptr) return look;
  UniqueFd fd;
  {
    const SystemMutexLock lock(object->mutex);
    MOSA_RETURN_IF_ERROR(ledger_.LookForWriters(*object));
    look.writers_left = object->lent;
    if (object->left_untold) object->left_untold = clock_.Monotonic();  // A mount is asking.
    if (object->dropped || (look.writers_left && !while_written)) return look;
    if (!object->told) {
      // Lent since before this process began, or to a mount that has reported all changes.
      object->told = SeenBytes{};
    }
    MOSA_ASSIGN_OR_RETURN(fd, store_.Open(file, OpenMode::kRead));
  }
  look.next_bytes = from_bytes;
  look.complete = false;
  while (!look.complete && look.next_bytes - from_bytes < kLookBytesMax) {
    const SystemMutexLock lock(object->mutex);
    if (object->dropped) return LocalWrites{};
    if (!object->told) object->told = SeenBytes{};
    MOSA_RETURN_IF_ERROR(ComparePiece(*object, *object->told, fd.get(), look, scratch));
    object->answered = object->answered || look.changed || look.unknown;
  }
  return look;
}

// Compares the blocks with data in the next piece with `seen`, and records their current checksums
// there.
Status LocalWriters::ComparePiece(Object& object, SeenBytes& seen, int fd, LocalWrites& look,
                                  std::span<std::byte> scratch) {
  MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, store_.Stat(fd));
  const Result<uint64_t> data = store_.Seek(fd, look.next_bytes, /*data=*/true);
  if (!data.ok() && data.status().code() != StatusCode::kNotFound) return data.status();
  if (!data.ok()) {
    if (seen.size_bytes != stat.size_bytes)
      (seen.sums.complete() ? look.changed : look.unknown) = true;
    seen.sums.SetComplete();
    seen.size_bytes = stat.size_bytes;
    look.complete = true;
    return OkStatus();
  }
  const uint64_t begin = BeginOf(BlockOf(*data));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_.Read(fd, begin, scratch));
  for (uint64_t at = 0; at < got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    const uint64_t extent = std::min<uint64_t>(kChecksumBlockBytes, got - at);
    const uint32_t crc = Crc32c(scratch.data() + at, extent);
    const std::optional<uint32_t> before = seen.sums.Get(block, seen.size_bytes);
    look.unknown = look.unknown || !before;
    look.changed = look.changed || (before && *before != crc);
    seen.sums.Set(block, crc);
    // Nobody can store into it any more, so this checksum stays valid.
    if (!object.lent && stat.size_bytes == object.size_bytes &&
        extent == ExtentOf(block, object.size_bytes) &&
        !object.checksums.Get(block, object.size_bytes))
      object.checksums.Set(block, crc);
  }
  look.next_bytes = begin + std::max<uint64_t>(got, kChecksumBlockBytes);
  return OkStatus();
}

void LocalWriters::TellUntold() {
  for (const FileId file : lent_.left_untold.Get()) {
    const ObjectRef object = table_.Find(file);
    if (object == nullptr) continue;
    if (!object->mutex.try_lock()) continue;
    const SystemMutexLock lock(object->mutex, std::adopt_lock);
    if (!object->left_untold || object->lent) continue;
    if (clock_.Monotonic() - *object->left_untold < kTellAfter) continue;
    if (!object->checksums.sealed()) continue;  // Its checksums are still being computed.
    const SeenBytes& seen = object->finished ? *object->finished : *object->told;
    const bool changed =
        object->answered ||
        ChecksumTable::MayDiffer(seen.sums, seen.size_bytes, object->checksums, object->size_bytes);
    ledger_.NoteTold(*object);
    if (changed) reports_.NoteUntold(file);
  }
}

// ---- all lent objects

void LocalWriters::LookAtAll() {
  const auto look = [&](Object& object) {
    object.mutex.AssertHeld();
    const Status looked = ledger_.LookForWriters(object);
    if (!looked.ok()) LogWarning("file {}: {}", object.file.value, MessageOf(looked));
  };
  std::vector<ObjectRef> busy;
  for (const FileId file : lent_.lent.Get()) {
    const ObjectRef object = table_.Find(file);
    if (object == nullptr) continue;
    // The lock may be held long: an fallocate of gigabytes must not delay the other objects.
    if (!object->mutex.try_lock()) {
      busy.push_back(object);
      continue;
    }
    const SystemMutexLock lock(object->mutex, std::adopt_lock);
    look(*object);
  }
  TellUntold();
  for (const ObjectRef& object : busy) {
    const SystemMutexLock lock(object->mutex);
    look(*object);
  }
}

}  // namespace mosa::node
