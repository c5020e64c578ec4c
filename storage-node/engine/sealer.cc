#include "storage-node/engine/sealer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {
namespace {

// Delay before an object that changed meanwhile, or whose store failed, is sealed again.
constexpr Duration kSealAgainAfter = Seconds(1);

}  // namespace

bool Sealer::SealNext(std::span<std::byte> scratch) {
  const std::optional<FileId> file = sealing_.Pop();
  if (!file) return false;
  const ObjectRef object = table_.Find(*file);
  if (object == nullptr) return true;
  const Status sealed = SealObject(object, scratch);
  if (!sealed.ok())
    LogWarning("cannot seal the object of file {}: {}", file->value, MessageOf(sealed));
  verifier_.VerifyAll(object, scratch);
  Record(object);
  const SystemMutexLock lock(object->mutex);
  ledger_.NoteChange(*object, kSealAgainAfter);
  return true;
}

// One pass over the object; its lock is held for one piece at a time. Blocks changed meanwhile stay
// unsealed, and the object is queued again.
Status Sealer::SealObject(const ObjectRef& object, std::span<std::byte> scratch) {
  UniqueFd fd;
  uint64_t epoch = 0;
  bool complete = false;
  {
    const SystemMutexLock lock(object->mutex);
    if (object->dropped || object->lent) return OkStatus();
    MOSA_ASSIGN_OR_RETURN(fd, store_.Open(object->file, OpenMode::kRead));
    epoch = object->forgotten_count;
    complete = object->checksums.complete();
  }
  for (uint64_t offset = 0; !complete;) {
    const SystemMutexLock lock(object->mutex);
    if (sealing_.stopped() || object->dropped || object->forgotten_count != epoch)
      return OkStatus();
    MOSA_RETURN_IF_ERROR(SumPiece(*object, fd.get(), offset, scratch));
    complete = offset >= object->size_bytes;
    if (complete) object->checksums.SetComplete();
  }
  return SumStale(object, fd.get(), epoch, scratch);
}

// Sums the blocks with data in the next piece from `offset` on, and moves `offset` past it.
Status Sealer::SumPiece(Object& object, int fd, uint64_t& offset, std::span<std::byte> scratch) {
  const Result<uint64_t> data = store_.Seek(fd, offset, /*data=*/true);
  if (!data.ok()) {
    if (data.status().code() != StatusCode::kNotFound) return data.status();
    offset = std::max(offset, object.size_bytes);
    return OkStatus();
  }
  const uint64_t begin = BeginOf(BlockOf(*data));
  MOSA_ASSIGN_OR_RETURN(const size_t got, store_.Read(fd, begin, scratch));
  for (uint64_t at = 0; at < got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    if (object.checksums.Get(block, object.size_bytes)) continue;
    const uint64_t extent = std::min(ExtentOf(block, object.size_bytes), got - at);
    object.checksums.Set(block, Crc32c(scratch.data() + at, extent));
  }
  offset = begin + std::max<uint64_t>(got, kChecksumBlockBytes);
  return OkStatus();
}

Status Sealer::SumStale(const ObjectRef& object, int fd, uint64_t epoch,
                        std::span<std::byte> scratch) {
  for (BlockIndex from{0};; ++from.value) {
    const SystemMutexLock lock(object->mutex);
    if (sealing_.stopped() || object->dropped || object->forgotten_count != epoch)
      return OkStatus();
    const auto block = object->checksums.NextStale(from);
    if (!block) return OkStatus();
    from = *block;
    const auto bytes = scratch.first(ExtentOf(from, object->size_bytes));
    MOSA_ASSIGN_OR_RETURN(const size_t got, store_.Read(fd, BeginOf(from), bytes));
    if (got == bytes.size()) object->checksums.Set(from, Crc32c(bytes.data(), got));
  }
}

// The bytes must be on disk before a record vouches for them.
void Sealer::Record(const ObjectRef& object) {
  uint64_t changes = 0;
  {
    const SystemMutexLock lock(object->mutex);
    if (!records_.MayAppend(*object)) return;
    changes = object->changes_begun;
  }
  if (store_.syncs()) {
    const Result<UniqueFd> fd = store_.Open(object->file, OpenMode::kRead);
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
    if (!records_.MayAppend(*object) || object->changes_begun != changes) return;
    const Status recorded = records_.Append(*object);
    if (!recorded.ok()) LogWarning("{}", MessageOf(recorded));
  }
  if (!records_.HasGarbage()) return;
  Status status = records_.log()->BeginNext();
  if (status.ok()) status = RewriteRecords();
  if (!status.ok()) LogWarning("{}", MessageOf(status));
}

// Rewrites all valid records into the last file, which replaces all earlier files.
Status Sealer::RewriteRecords() {
  SumsLog* const sums = records_.log();
  if (sums == nullptr) return OkStatus();
  for (const FileId file : table_.List()) {
    const ObjectRef object = table_.Find(file);
    if (object == nullptr) continue;
    const SystemMutexLock lock(object->mutex);
    if (object->dropped) continue;
    if (object->writer_generation > 0)
      MOSA_RETURN_IF_ERROR(sums->Append(EncodeGeneration(file, object->writer_generation)));
    if (object->logged == LoggedState::kSums) {
      MOSA_RETURN_IF_ERROR(records_.Append(*object));
    } else if (object->logged == LoggedState::kDamaged) {
      MOSA_RETURN_IF_ERROR(sums->Append(EncodeSums(file, ObjectRecords::Damaged())));
    }
  }
  // After the objects: one put aside meanwhile is found here; one restored meanwhile has been
  // recorded.
  MOSA_RETURN_IF_ERROR(aside_.RewriteRecords());
  if (store_.syncs()) MOSA_RETURN_IF_ERROR(sums->Sync());
  return sums->FinishNext();
}

}  // namespace mosa::node
